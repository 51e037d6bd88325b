"""Packs of messages in the store, and where there is what of them.

A pack whose messages are mostly gone is written anew, one without any is removed, and small ones
are joined, as many as there are of about one size.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import numpy as np

from streamer.errors import StreamerError
from streamer.window.keyed.pages import Entry, Page
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


def stored_form(body: bytes, shift: int) -> bytes:
    """Return a pack as it is stored."""
    return _SHIFT.pack(shift) + body


class Stored:
    """The packs of a shard that are in the store."""

    def __init__(self, store: Store, by_arrival: bool, entries: list[list[int]], seq: int) -> None:
        """Take what the head of the shard's state knows of them; see `Ledger`."""
        self._store = store
        self._by_arrival = by_arrival
        self._entries = {fields[0]: Entry(*fields) for fields in entries}
        self._next = seq
        self._open: dict[int, Page] = {}

    def head(self) -> tuple[list[list[int]], int]:
        """Return what the head of the shard's state must know."""
        entries = [[e.seq, e.low, e.high, e.count, e.gone, e.size] for e in self._entries.values()]
        return entries, self._next

    @property
    def held(self) -> int:
        """How many messages they hold."""
        return sum(entry.count - entry.gone for entry in self._entries.values())

    @property
    def size(self) -> int:
        """About how many bytes of payload they hold."""
        entries = self._entries.values()
        return sum(e.size * (e.count - e.gone) // max(e.count, 1) for e in entries)

    def pages(self, low: int, high: int) -> Iterator[Page]:
        """Give the pages that may hold messages between two times, both inclusive."""
        for entry in list(self._entries.values()):
            if entry.low <= high and low <= entry.high:
                yield self._page(entry)

    def all(self) -> Iterator[Page]:
        """Give all pages, of which none is changed; none is at hand after it."""
        for entry in self._entries.values():
            yield self._page(entry)
            self._open.clear()

    def settle(self) -> None:
        """Write what was changed; none is at hand after it."""
        for seq, page in self._open.items():
            if page.changed:
                self._rewrite(self._entries[seq], page)
        self._open.clear()

    def put(self, page: Page) -> None:
        """Write what is left of a page that is not in the store."""
        gone = int(page.gone.sum())
        if gone == len(page.gone):
            return
        if gone == 0 and page.pack.lags is None:
            self._put(page.stored, page)
        else:
            self._put_columns(page)

    def join(self) -> None:
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
            self._put(stored_form(body, 0), Page(Pack(body), self._by_arrival, b"", None))

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
        value = stored_form(body, 0)
        self._put(value, Page(Pack(body), self._by_arrival, value, None))

    def _put(self, value: bytes, page: Page) -> None:
        seq = self._next
        self._next += 1
        self._store.put(PANE, seq, value)
        header = page.pack.header
        low, high = int(page.times.min()), int(page.times.max())
        self._entries[seq] = Entry(seq, low, high, header.messages, 0, header.raw)

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
