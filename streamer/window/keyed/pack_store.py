"""Packs of messages in the store, and where there is what of them.

A pack whose messages are mostly gone is written anew, one without any is removed, and small ones
are joined, as many as there are of about one size.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from streamer.core.errors import StreamerError
from streamer.window.contract.state_store import StateStore
from streamer.window.keyed.loaded_pack import LoadedPack, PackEntry
from streamer.window.pack.merge_packs import merge_packs, select_rows
from streamer.window.pack.pack_codec import Pack, encode_pack
from streamer.window.state.layout import (
    FREED_ROWS_SEQ,
    PACK_PANE,
    decode_stored_pack,
    encode_stored_pack,
)

_PACKS_PER_JOIN: Final = 8
_MIN_LEVEL_BYTES: Final = 16 * 1024
_MAX_JOIN_BYTES: Final = 2 * 1024 * 1024


class PackStore:
    """The packs of a shard that are in the store."""

    def __init__(
        self, store: StateStore, by_arrival: bool, entries: list[list[int]], seq: int
    ) -> None:
        """Take what the head of the shard's state knows of them; see `MessageStore`."""
        self._store = store
        self._by_arrival = by_arrival
        self._entries = {fields[0]: PackEntry(*fields) for fields in entries}
        self._next_seq = seq
        self._loaded: dict[int, LoadedPack] = {}

    def head_entries(self) -> tuple[list[list[int]], int]:
        """Return what the head of the shard's state must know."""
        entries = [[e.seq, e.low, e.high, e.count, e.gone, e.size] for e in self._entries.values()]
        return entries, self._next_seq

    @property
    def held_count(self) -> int:
        """How many messages they hold."""
        return sum(entry.count - entry.gone for entry in self._entries.values())

    @property
    def held_bytes(self) -> int:
        """About how many bytes of payload they hold."""
        entries = self._entries.values()
        return sum(e.size * (e.count - e.gone) // max(e.count, 1) for e in entries)

    def packs_between(self, low: int, high: int) -> Iterator[LoadedPack]:
        """Give the pages that may hold messages between two times, both inclusive."""
        for entry in list(self._entries.values()):
            if entry.low <= high and low <= entry.high:
                yield self._load_pack(entry)

    def iterate_packs(self) -> Iterator[LoadedPack]:
        """Give all pages, of which none is changed; none is at hand after it."""
        for entry in self._entries.values():
            yield self._load_pack(entry)
            self._loaded.clear()

    def commit(self) -> None:
        """Write what was changed; none is at hand after it."""
        for seq, loaded in self._loaded.items():
            if loaded.changed:
                self._rewrite(self._entries[seq], loaded)
        self._loaded.clear()

    def put(self, loaded: LoadedPack) -> None:
        """Write what is left of a page that is not in the store."""
        gone = int(loaded.gone.sum())
        if gone == len(loaded.gone):
            return
        if gone == 0 and loaded.pack.lags is None:
            self._put(loaded.stored, loaded)
        else:
            self._put_remaining(loaded)

    def compact(self) -> None:
        """Join packs of about one size while there are enough of them."""
        while (same := self._find_joinable()) is not None:
            loaded_packs = [self._load_pack(entry) for entry in same]
            left = []
            for loaded in loaded_packs:
                body = encode_pack(select_rows(loaded.pack, np.flatnonzero(~loaded.gone)))
                left.append(Pack(body))
            for entry in same:
                self._remove(entry)
            self._loaded.clear()
            body = encode_pack(merge_packs(left, grouped=True))
            self._put(
                encode_stored_pack(body, 0), LoadedPack(Pack(body), self._by_arrival, b"", None)
            )

    def _load_pack(self, entry: PackEntry) -> LoadedPack:
        loaded = self._loaded.get(entry.seq)
        if loaded is None:
            value = self._store.get(PACK_PANE, entry.seq)
            if value is None:
                raise StreamerError(
                    f"the checkpoint lacks pack {entry.seq} of a window's messages: restore it "
                    "from a copy, or start from another one"
                )
            pack = Pack(*decode_stored_pack(value))
            loaded = LoadedPack(pack, self._by_arrival, b"", entry)
            if entry.gone:
                marks = self._store.get(entry.seq, FREED_ROWS_SEQ)
                assert marks is not None
                bits = np.unpackbits(np.frombuffer(marks, np.uint8), count=entry.count)
                loaded.gone = bits.astype(np.bool_)
            self._loaded[entry.seq] = loaded
        return loaded

    def _rewrite(self, entry: PackEntry, loaded: LoadedPack) -> None:
        gone = int(loaded.gone.sum())
        if gone == entry.gone:
            return
        if 2 * gone > entry.count:
            self._remove(entry)
            if gone < entry.count:
                self._put_remaining(loaded)
            return
        entry.gone = gone
        self._store.put(entry.seq, FREED_ROWS_SEQ, np.packbits(loaded.gone).tobytes())

    def _remove(self, entry: PackEntry) -> None:
        self._store.delete(PACK_PANE, entry.seq)
        if entry.gone:
            self._store.delete(entry.seq, FREED_ROWS_SEQ)
        del self._entries[entry.seq]

    def _put_remaining(self, loaded: LoadedPack) -> None:
        """Write what is left of a page as a pack of its own."""
        body = encode_pack(select_rows(loaded.pack, np.flatnonzero(~loaded.gone)))
        value = encode_stored_pack(body, 0)
        self._put(value, LoadedPack(Pack(body), self._by_arrival, value, None))

    def _put(self, value: bytes, loaded: LoadedPack) -> None:
        seq = self._next_seq
        self._next_seq += 1
        self._store.put(PACK_PANE, seq, value)
        header = loaded.pack.header
        low, high = int(loaded.times.min()), int(loaded.times.max())
        self._entries[seq] = PackEntry(seq, low, high, header.messages, 0, header.payload_bytes)

    def _find_joinable(self) -> list[PackEntry] | None:
        levels: dict[int, list[PackEntry]] = {}
        for entry in self._entries.values():
            if entry.size < _MAX_JOIN_BYTES:
                level = max(entry.size // _MIN_LEVEL_BYTES, 1).bit_length() // 3
                levels.setdefault(level, []).append(entry)
        for same in levels.values():
            if len(same) >= _PACKS_PER_JOIN:
                return sorted(same, key=lambda entry: entry.seq)[:_PACKS_PER_JOIN]
        return None
