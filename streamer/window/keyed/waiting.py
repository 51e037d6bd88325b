"""One side of a join: the messages that wait for a match, and which of them have found one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from streamer.window.ints import Ints
from streamer.window.keyed.found import rows_of
from streamer.window.keyed.joins import Events
from streamer.window.keyed.ledger import Ledger
from streamer.window.keyed.matched import Matched
from streamer.window.keyed.pages import Page
from streamer.window.store import Store

_LEAST = -(2**63)
_MOST = 2**63 - 1


class Alone(NamedTuple):
    """A message that leaves without a match.

    Attributes:
        time: its event time, ns.
        arrival: its number.
        key: its key, empty without keys.
        page: what it is on.
        row: and where there.
    """

    time: int
    arrival: int
    key: bytes
    page: Page
    row: int


class Waiting:
    """A side in one micro-batch.

    Attributes:
        ledger: its messages.
        matched: those that have found a match.
        sheets: the pages of the events that were given, by their number.
        came: the keys that came in, and their numbers.
    """

    def __init__(
        self,
        store: Store,
        pane: int,
        entries: list[list[int]],
        seq: int,
        names: dict[bytes, int],
    ) -> None:
        """Take what the head of the shard's state knows of it.

        Args:
            store: the shard's state.
            pane: 0 for the left side, 1 for the right.
            entries: its packs.
            seq: the number of its next pack.
            names: the numbers of keys, which both sides share; it grows.
        """
        self.ledger = Ledger(store, False, entries, seq)
        self.matched = Matched(store, pane)
        self.sheets: list[Page] = []
        self.came: dict[bytes, int] = {}
        self._names = names
        self._new: list[Events] = []

    def take(self, page: Page, rows: Ints) -> int:
        """Take the messages of a page that came in, by their rows; return how many they are."""
        if len(rows):
            names, keys = self._names, page.pack.keys or [b""]
            numbers = [names.setdefault(key, len(names)) for key in keys]
            self.came.update(zip(keys, numbers, strict=True))
            of_all = np.repeat(np.array(numbers, np.int64), np.diff(np.array(page.pack.starts)))
            self._new.append(self._on_page(page, rows, of_all[rows]))
        return len(rows)

    def events(self) -> Events:
        """Return what was taken."""
        return Events.of(self._new)

    def near(self, came: dict[bytes, int], lows: Ints, highs: Ints) -> Events:
        """Return what waits since earlier micro-batches and may be near other events.

        Args:
            came: the numbers of their keys.
            lows: by event, the least time of what is near it.
            highs: the largest.
        """
        if not len(lows):
            return Events.of([])
        found = []
        for page in self.ledger.pages(int(lows.min()), int(highs.max())):
            if page.entry is not None:
                rows, keys = rows_of(page, came)
                here = ~page.gone[rows]
                if here.any():
                    found.append(self._on_page(page, rows[here], keys[here]))
        return Events.of(found)

    def leave(self, until: int | None, listed: bool) -> tuple[int, int, list[Alone]]:
        """Give back what is older than a time, or all.

        Args:
            until: the time, ns; None for all.
            listed: whether it is asked which of them are without a match.

        Returns:
            How many there are, how many of them are without a match, and these if asked for.
        """
        count = without = 0
        alone: list[Alone] = []
        for page in list(self.ledger.pages(_LEAST, _MOST if until is None else until)):
            going = ~page.gone if until is None else ~page.gone & (page.times < until)
            rows = np.flatnonzero(going)
            if len(rows):
                count += len(rows)
                page.give_back(rows)
                unmatched = rows[~self.matched.remove(page.pack.arrivals[rows])]
                without += len(unmatched)
                if listed:
                    alone += self._alone(page, unmatched)
        return count, without, alone

    def settle(self) -> None:
        """Write what has changed."""
        self.ledger.settle()
        self.matched.write()

    def _on_page(self, page: Page, rows: Ints, keys: Ints) -> Events:
        number = np.full(len(rows), len(self.sheets))
        self.sheets.append(page)
        return Events(keys, page.times[rows], page.pack.arrivals[rows], number, rows)

    def _alone(self, page: Page, rows: Ints) -> Iterable[Alone]:
        pack = page.pack
        if not len(rows):
            return
        groups = np.searchsorted(np.array(pack.starts), rows, "right") - 1
        keys = [pack.keys[group] if pack.keys else b"" for group in groups.tolist()]
        times, arrivals = page.times[rows].tolist(), pack.arrivals[rows].tolist()
        for time, arrival, key, row in zip(times, arrivals, keys, rows.tolist(), strict=True):
            yield Alone(time, arrival, key, page, row)
