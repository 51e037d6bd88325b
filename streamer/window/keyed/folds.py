"""Folds the messages of a micro-batch into the windows of keys.

A window is folded for the mapping that it began with, from its first message to its end. Of a
message that is folded into all its windows, and is the first of none, nothing is kept.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from streamer.window.folds.running.fold import Brought, RunningFold, running_fold
from streamer.window.folds.running.part import Span
from streamer.window.keyed.folded import Brokenness, Folded
from streamer.window.keyed.pages import Page
from streamer.window.keyed.state import KeyState, Window


class Folds:
    """The folding of one shard in one micro-batch.

    Attributes:
        texts: the mappings that windows are folded for; a window knows the number of its own.
        uses: by mapping, how many open windows are folded for it.
        held: how many messages are held that are not kept.
        released: how many such were given back in this micro-batch.
    """

    def __init__(
        self, text: str | None, texts: list[str], uses: list[int], held: int, joins: bool
    ) -> None:
        """Prepare.

        Args:
            text: the mapping for which windows that begin are folded; None to keep them whole.
            texts: what the head of the shard's state knows of mappings.
            uses: see above.
            held: see above.
            joins: whether windows of a key may become one.
        """
        self.texts, self.uses = texts[:], uses[:]
        if text is not None and text not in texts:
            self._begin(text)
        self.held = held
        self.released = 0
        self._number = None if text is None else self.texts.index(text)
        self._joins = joins
        self._kept: list[tuple[Page, int]] = []
        self._brought: dict[tuple[int, int], Brought] = {}
        self._page: Page | None = None
        self._last = -1
        self._here = Brought((), {})

    @property
    def needed(self) -> bool:
        """Whether there may be a window that is folded."""
        return bool(self.texts)

    def number_of(self, text: str) -> int:
        """Return the number of a mapping that windows which come here are folded for."""
        if text not in self.texts:
            self._begin(text)
        return self.texts.index(text)

    def counted(self, state: KeyState, by: int) -> None:
        """Count the open windows of a key, by mapping: 1 for each that there is, -1 to undo it."""
        for window in state.windows:
            if window.folded is not None:
                self.uses[window.folded.number] += by

    def forget(self) -> None:
        """Forget the mappings that no window is folded for any more; others keep their numbers."""
        self.texts = [
            text if uses else "" for text, uses in zip(self.texts, self.uses, strict=True)
        ]
        while self.texts and not self.texts[-1]:
            self.texts.pop()
        del self.uses[len(self.texts) :]

    def open(self, state: KeyState) -> None:
        """Read what the windows of a key have come to."""
        for window in state.windows:
            if window.folded is not None:
                window.folded.open(self._fold(window.folded.number))

    def take(
        self, state: KeyState, changed: list[Window], time: int, arrival: int, page: Page, row: int
    ) -> None:
        """Fold a message into the windows that it has changed.

        Args:
            state: of its key.
            changed: these windows; they have counted it.
            time: its event time, ns.
            arrival: its arrival number.
            page: where it is.
            row: and where there.
        """
        kept = False
        for window in changed:
            folded = window.folded
            if folded is None:
                number = self._number_of(state, window) if window.count == 1 else None
                kept = True
                if number is None:
                    continue
                fold = self._fold(number)
                folded = window.folded = Folded(number, fold.begin(), time, fold=fold)
            elif time > folded.newest:
                folded.newest = time
            if page is not self._page or folded.number != self._last:
                self._look_at(page, folded)
            columns, broken = self._here
            assert folded.fold is not None
            place = window.count - 1
            folded.states = folded.fold.add(folded.states, columns, row, arrival, place)
            if broken and folded.broken is None and row in broken:
                folded.broken = Brokenness(arrival, broken[row])
        if kept:
            self._kept.append((page, row))
        elif (last := changed[0].folded) is not None:
            # Held until the last of its windows closes, which is the first that is named.
            last.absorbed += 1
            self.held += 1

    def take_together(self, window: Window, page: Page, first: int, last: int, newest: int) -> None:
        """Fold messages into the only window that they change, of which none is the first.

        Args:
            window: the window; it has not counted them yet.
            page: where they are.
            first: the first row.
            last: the one after the last.
            newest: the largest of their event times, ns.
        """
        folded = window.folded
        if folded is None:
            self._kept += [(page, row) for row in range(first, last)]
            return
        if page is not self._page or folded.number != self._last:
            self._look_at(page, folded)
        columns, broken = self._here
        arrivals, _ = page.listed
        fold, span = folded.fold, Span(first, last, arrivals)
        assert fold is not None
        if newest > folded.newest:
            folded.newest = newest
        folded.states = fold.add_all(folded.states, columns, span, window.count)
        folded.absorbed += last - first
        self.held += last - first
        if broken and folded.broken is None:
            bad = next((row for row in range(first, last) if row in broken), None)
            if bad is not None:
                folded.broken = Brokenness(arrivals[bad], broken[bad])

    def let_go(self, window: Window) -> None:
        """Count the messages of a window that has closed as given back."""
        if window.folded is not None:
            self.held -= window.folded.absorbed
            self.released += window.folded.absorbed

    def settle(self, pages: Iterable[Page]) -> None:
        """Let the pages of this micro-batch have no message that need not be kept."""
        if self.needed:
            rows: dict[int, list[int]] = {}
            for page, row in self._kept:
                rows.setdefault(id(page), []).append(row)
            for page in pages:
                page.keep_only(np.array(rows.get(id(page), ()), np.int64))
        self._kept.clear()
        self._brought.clear()
        self._page = None

    def _begin(self, text: str) -> None:
        """Give a mapping the number of one that is forgotten, or a new one."""
        if "" in self.texts:
            self.texts[self.texts.index("")] = text
        else:
            self.texts.append(text)
            self.uses.append(0)

    def _look_at(self, page: Page, folded: Folded) -> None:
        """Have at hand what the messages of a page bring to a fold."""
        place = (id(page), folded.number)
        found = self._brought.get(place)
        if found is None:
            assert folded.fold is not None
            found = self._brought[place] = folded.fold.brought(page.payloads)
        self._page, self._last, self._here = page, folded.number, found

    def _number_of(self, state: KeyState, window: Window) -> int | None:
        """Return the mapping that a window which begins is folded for; None to keep it whole.

        A session goes on with the mapping of the others that its key has open, for it may become
        one with them.
        """
        if self._joins and len(state.windows) > 1:
            other = next(one for one in state.windows if one is not window)
            return None if other.folded is None else other.folded.number
        return self._number

    def _fold(self, number: int) -> RunningFold:
        return running_fold(self.texts[number])
