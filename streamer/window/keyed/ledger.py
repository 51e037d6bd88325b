"""The ledger: messages of a shard in the packs they came in, and which of them are gone.

Packs are appended as they are; of a message that is given back only a mark is made. A pack whose
messages are mostly gone is written anew, one without any is removed, and small ones are joined, as
many as there are of about one size. A pack of this micro-batch is written only if something of it
is left at its end.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from streamer.errors import StreamerError
from streamer.window.ints import Ints
from streamer.window.keyed.found import Found, found_on, rows_of
from streamer.window.keyed.pages import Entry, Fresh, Page
from streamer.window.keyed.ranges import Range
from streamer.window.keyed.state import FOREVER, NEVER
from streamer.window.merge import merge, subset
from streamer.window.pack import Pack, encode
from streamer.window.store import Store

PANE: Final = 0
GONE: Final = -4
"""Where packs are in the store: pane 0, a seq each; the marks of a pack have its seq as pane."""

_SHIFT: Final = struct.Struct("<q")
_JOIN: Final = 8
_LEAST: Final = 16 * 1024
_MOST: Final = 2 * 1024 * 1024

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
        self._store = store
        self._by_arrival = by_arrival
        self._entries = {fields[0]: Entry(*fields) for fields in entries}
        self._next = seq
        self._fresh: list[Page] = []
        self._open: dict[int, Page] = {}

    def head(self) -> tuple[list[list[int]], int]:
        """Return what the head of the shard's state must know."""
        entries = [[e.seq, e.low, e.high, e.count, e.gone, e.size] for e in self._entries.values()]
        return entries, self._next

    @property
    def held(self) -> int:
        """How many messages are held."""
        stored = sum(entry.count - entry.gone for entry in self._entries.values())
        return stored + sum(int((~page.gone).sum()) for page in self._fresh)

    @property
    def size(self) -> int:
        """About how many bytes of payload are held."""
        entries = self._entries.values()
        return sum(e.size * (e.count - e.gone) // max(e.count, 1) for e in entries)

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
        page = Fresh(pack, self._by_arrival, _SHIFT.pack(shift) + body, before, partition)
        self._fresh.append(page)
        return page

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
        for seq, page in self._open.items():
            if page.changed:
                self._rewrite(self._entries[seq], page)
        self._open.clear()
        fresh, self._fresh = self._fresh, []
        for page in fresh:
            gone = int(page.gone.sum())
            if gone == len(page.gone):
                continue
            if gone == 0 and page.pack.lags is None:
                self._put(page.stored, page)
            else:
                self._put_columns(page)
        self._join()

    def pages(self, low: int, high: int) -> Iterator[Page]:
        """Give the pages that may hold messages between two times, both inclusive."""
        for entry in list(self._entries.values()):
            if entry.low <= high and low <= entry.high:
                yield self._page(entry)
        yield from self._fresh

    def _page(self, entry: Entry) -> Page:
        page = self._open.get(entry.seq)
        if page is None:
            value = self._store.get(PANE, entry.seq)
            if value is None:
                raise StreamerError(
                    f"the checkpoint lacks pack {entry.seq} of a window's messages: restore it "
                    "from a copy, or start from another one"
                )
            shift = _SHIFT.unpack_from(value)[0]
            page = Page(Pack(memoryview(value)[_SHIFT.size :], shift), self._by_arrival, b"", entry)
            if entry.gone:
                marks = self._store.get(entry.seq, GONE)
                assert marks is not None
                bits = np.unpackbits(np.frombuffer(marks, np.uint8), count=entry.count)
                page.gone = bits.astype(np.bool_)
            self._open[entry.seq] = page
        return page

    def _rewrite(self, entry: Entry, page: Page) -> None:
        gone = int(page.gone.sum())
        if gone == entry.gone:
            return
        if 2 * gone > entry.count:
            self._remove(entry)
            if gone < entry.count:
                self._put_columns(page)
            return
        entry.gone = gone
        self._store.put(entry.seq, GONE, np.packbits(page.gone).tobytes())

    def _remove(self, entry: Entry) -> None:
        self._store.delete(PANE, entry.seq)
        if entry.gone:
            self._store.delete(entry.seq, GONE)
        del self._entries[entry.seq]

    def _put_columns(self, page: Page) -> None:
        """Write what is left of a page as a pack of its own."""
        body = encode(subset(page.pack, np.flatnonzero(~page.gone)))
        value = _SHIFT.pack(0) + body
        self._put(value, Page(Pack(body), self._by_arrival, value, None))

    def _put(self, value: bytes, page: Page) -> None:
        seq = self._next
        self._next += 1
        self._store.put(PANE, seq, value)
        header = page.pack.header
        low, high = int(page.times.min()), int(page.times.max())
        self._entries[seq] = Entry(seq, low, high, header.messages, 0, header.raw)

    def _join(self) -> None:
        """Join packs of about one size while there are enough of them."""
        while (same := self._joinable()) is not None:
            pages = [self._page(entry) for entry in same]
            left = []
            for page in pages:
                body = encode(subset(page.pack, np.flatnonzero(~page.gone)))
                left.append(Pack(body))
            for entry in same:
                self._remove(entry)
            self._open.clear()
            body = encode(merge(left, grouped=True))
            self._put(_SHIFT.pack(0) + body, Page(Pack(body), self._by_arrival, b"", None))

    def _joinable(self) -> list[Entry] | None:
        levels: dict[int, list[Entry]] = {}
        for entry in self._entries.values():
            if entry.size < _MOST:
                level = max(entry.size // _LEAST, 1).bit_length() // 3
                levels.setdefault(level, []).append(entry)
        for same in levels.values():
            if len(same) >= _JOIN:
                return sorted(same, key=lambda entry: entry.seq)[:_JOIN]
        return None
