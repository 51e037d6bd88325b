"""The ledger: messages of a shard in the packs they came in, and which of them are gone.

Packs are appended as they are; of a message that is given back only a mark is made. A pack of this
micro-batch is written only if something of it is left at its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from streamer.window.ints import Ints
from streamer.window.keyed.found import Found, found_on, rows_of
from streamer.window.keyed.pages import Fresh, Page
from streamer.window.keyed.ranges import Range
from streamer.window.keyed.state import FOREVER, NEVER
from streamer.window.keyed.stored import Stored, stored_form
from streamer.window.pack import Pack
from streamer.window.store import Store

Claims = Mapping[bytes, tuple[int, int]]
"""By key, between which times messages are asked for, both inclusive."""


class Ledger:
    """The messages of a shard."""

    def __init__(self, store: Store, by_arrival: bool, entries: list[list[int]], seq: int) -> None:
        """Take what the head of the shard's state knows of it.

        Args:
            store: the shard's state.
            by_arrival: windows have no time: messages are found by their arrival numbers.
            entries: the packs, as `head` gives them.
            seq: the number of the next pack.
        """
        self._by_arrival = by_arrival
        self._stored = Stored(store, by_arrival, entries, seq)
        self._fresh: list[Fresh] = []

    def head(self) -> tuple[list[list[int]], int]:
        """Return what the head of the shard's state must know."""
        return self._stored.head()

    @property
    def held(self) -> int:
        """How many messages are held."""
        return self._stored.held + sum(int((~page.gone).sum()) for page in self._fresh)

    @property
    def size(self) -> int:
        """About how many bytes of payload are held."""
        return self._stored.size

    def add(
        self, pack: Pack, body: bytes, shift: int, before: int = NEVER, partition: bytes = b""
    ) -> Fresh:
        """Take a pack of this micro-batch; it is written at the end of it.

        Args:
            pack: the pack, unpacked.
            body: the same as it came.
            shift: what is added to its arrival numbers.
            before: what its piece found the clock at.
            partition: that of its piece.
        """
        page = Fresh(pack, self._by_arrival, stored_form(body, shift), before, partition)
        self._fresh.append(page)
        return page

    def adopt(self, body: bytes) -> None:
        """Take a pack of messages that were kept elsewhere since an earlier micro-batch."""
        pack = Pack(body)
        self._stored.put(Page(pack, self._by_arrival, stored_form(body, 0), None))

    @property
    def fresh(self) -> Sequence[Page]:
        """The pages of this micro-batch."""
        return self._fresh

    @property
    def fresh_follow(self) -> bool:
        """Whether the fresh messages of each page arrived before those of the next."""
        headers = [page.pack.header for page in self._fresh]
        return all(one.last < other.first for one, other in pairwise(headers))

    def find(self, claims: Claims) -> Found:
        """Return messages of keys that are not gone."""
        if not claims:
            return found_on({}, [], [])
        low = min(low for low, _ in claims.values())
        high = max(high for _, high in claims.values())
        numbers = {key: number for number, key in enumerate(claims)}
        lows, highs = (np.array(bounds) for bounds in zip(*claims.values(), strict=True))
        sheets: list[Page] = []
        parts: list[tuple[Ints, Ints]] = []
        for page in self.pages(low, high):
            rows, keys = rows_of(page, numbers)
            if not len(rows):
                continue
            times = page.times[rows]
            inside = (times >= lows[keys]) & (times <= highs[keys]) & ~page.gone[rows]
            if inside.any():
                sheets.append(page)
                parts.append((rows[inside], keys[inside]))
        return found_on(numbers, sheets, parts)

    def give_back(
        self,
        ranges: Mapping[bytes, Sequence[Range]],
        spared: Mapping[bytes, set[int]],
        before: int | None = None,
    ) -> int:
        """Mark the messages of keys between times; return how many there were.

        Args:
            ranges: by key.
            spared: by key, the arrival numbers of messages that stay.
            before: only messages whose arrival numbers are smaller; None for all.
        """
        claims = {
            key: (min(low for low, *_ in some), max(high for _, high, _ in some))
            for key, some in ranges.items()
        }
        found = self.find(claims)
        gone = np.ones(len(found.times), np.bool_)
        for key, some in ranges.items():
            if len(some) > 1 or key in spared or some[0][2] < FOREVER:
                first, last = found.starts[key]
                times, arrivals = found.times[first:last], found.arrivals[first:last]
                inside = [
                    (times >= low) & (times <= high) & (arrivals <= until)
                    for low, high, until in some
                ]
                gone[first:last] = np.logical_or.reduce(inside)
                if key in spared:
                    gone[first:last] &= ~np.isin(arrivals, list(spared[key]))
        if before is not None:
            gone &= found.arrivals < before
        found.give_back(np.flatnonzero(gone))
        return int(gone.sum())

    def give_back_fresh(self) -> int:
        """Mark all messages of this micro-batch; return how many were not gone before."""
        count = sum(int((~page.gone).sum()) for page in self._fresh)
        for page in self._fresh:
            page.gone[:] = True
        return count

    def settle(self) -> None:
        """Write what this micro-batch has changed; nothing is at hand after it."""
        self._stored.settle()
        fresh, self._fresh = self._fresh, []
        for page in fresh:
            self._stored.put(page)
        self._stored.join()

    def stored(self) -> Iterator[Page]:
        """Give all pages that earlier micro-batches have left, one at a time."""
        return self._stored.all()

    def pages(self, low: int, high: int) -> Iterator[Page]:
        """Give the pages that may hold messages between two times, both inclusive."""
        yield from self._stored.pages(low, high)
        yield from self._fresh
