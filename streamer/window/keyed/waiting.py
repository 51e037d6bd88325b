"""One side of a join: the messages that wait for a match, and what came in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from streamer.window.ints import Ints
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


class Share(NamedTuple):
    """Some messages of a page.

    Attributes:
        page: the page.
        rows: where they are on it.
    """

    page: Page
    rows: Ints

    @property
    def times(self) -> Ints:
        """Their event times, ns."""
        return self.page.times[self.rows]


class Waiting:
    """A side in one micro-batch.

    Attributes:
        ledger: its messages.
        came: the messages that came in.
        sheets: the pages of the events that were given, by their number.
    """

    def __init__(self, store: Store, matched: Matched, entries: list[list[int]], seq: int) -> None:
        """Take what the head of the shard's state knows of it.

        Args:
            store: the shard's state.
            matched: the messages that have found a match.
            entries: its packs.
            seq: the number of its next pack.
        """
        self.ledger = Ledger(store, False, entries, seq)
        self.came: list[Share] = []
        self.sheets: list[Page] = []
        self._matched = matched

    def take(self, page: Page, rows: Ints) -> int:
        """Take the messages of a page that came in, by their rows; return how many they are."""
        if len(rows):
            self.came.append(Share(page, rows))
        return len(rows)

    def near(self, lows: Ints, highs: Ints) -> Iterator[Share]:
        """Give what waits since earlier micro-batches and may be near other events.

        Args:
            lows: by event, the least time of what is near it.
            highs: the largest.
        """
        if not len(lows):
            return
        low, high = int(lows.min()), int(highs.max())
        for page in self.ledger.pages(low, high):
            if page.entry is not None:
                times = page.times
                rows = np.flatnonzero((times >= low) & (times <= high) & ~page.gone)
                if len(rows):
                    yield Share(page, rows)

    def events(self, shares: Sequence[Share], keys: Iterable[Ints], below: int) -> Events:
        """Return messages as events.

        Args:
            shares: the messages.
            keys: by share and message, the numbers of the keys.
            below: leave those out whose keys have larger numbers.
        """
        found = []
        for (page, rows), of_rows in zip(shares, keys, strict=True):
            some = of_rows < below
            if not some.all():
                rows, of_rows = rows[some], of_rows[some]
            if len(rows):
                number = np.full(len(rows), len(self.sheets))
                self.sheets.append(page)
                times, arrivals = page.times[rows], page.pack.arrivals[rows]
                found.append(Events(of_rows, times, arrivals, number, rows))
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
                unmatched = rows[~self._matched.remove(page.pack.arrivals[rows])]
                without += len(unmatched)
                if listed:
                    alone += self._alone(page, unmatched)
        return count, without, alone

    def _alone(self, page: Page, rows: Ints) -> Iterable[Alone]:
        pack = page.pack
        if not len(rows):
            return
        groups = np.searchsorted(np.array(pack.starts), rows, "right") - 1
        keys = [pack.keys[group] if pack.keys else b"" for group in groups.tolist()]
        times, arrivals = page.times[rows].tolist(), pack.arrivals[rows].tolist()
        for time, arrival, key, row in zip(times, arrivals, keys, rows.tolist(), strict=True):
            yield Alone(time, arrival, key, page, row)
