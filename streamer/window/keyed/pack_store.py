"""The packs of messages in a shard's state: rewritten, removed and joined as messages are freed.

A pack of which more than half of the messages are freed is rewritten without them, or removed if
none is left. Small packs of about one size are joined, eight at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from streamer.core.errors import StreamerError
from streamer.window.keyed.message_rows import FreshPack, LoadedPack, PackEntry
from streamer.window.pack.merge_packs import merge_packs, select_rows
from streamer.window.pack.pack_codec import Pack, encode_pack
from streamer.window.state.layout import (
    FREED_ROWS_SEQ,
    PACK_PANE,
    decode_stored_pack,
    encode_stored_pack,
)
from streamer.window.state_store import StateStore

_PACKS_PER_JOIN: Final = 8
_MIN_LEVEL_BYTES: Final = 16 * 1024
_MAX_JOIN_BYTES: Final = 2 * 1024 * 1024


class PackStore:
    """The stored packs of a shard."""

    def __init__(
        self, store: StateStore, by_arrival: bool, entries: list[list[int]], seq: int
    ) -> None:
        """Open the packs that the head of the shard's state lists; see `MessageStore`."""
        self._store = store
        self._by_arrival = by_arrival
        self._entries = {fields[0]: PackEntry(*fields) for fields in entries}
        self._next_seq = seq
        self._loaded: dict[int, LoadedPack] = {}

    def head_entries(self) -> tuple[list[list[int]], int]:
        """Return the packs and the next seq, for the head of the shard's state."""
        entries = [[e.seq, e.low, e.high, e.count, e.freed, e.size] for e in self._entries.values()]
        return entries, self._next_seq

    @property
    def held_count(self) -> int:
        """Number of messages that have not been freed."""
        return sum(entry.count - entry.freed for entry in self._entries.values())

    @property
    def held_bytes(self) -> int:
        """About how many bytes of payload these messages have."""
        entries = self._entries.values()
        return sum(e.size * (e.count - e.freed) // max(e.count, 1) for e in entries)

    def packs_between(self, low: int, high: int) -> Iterator[LoadedPack]:
        """Give the packs that may hold messages in a range of times, both bounds inclusive."""
        for entry in list(self._entries.values()):
            if entry.low <= high and low <= entry.high:
                yield self._load_pack(entry)

    def iterate_lows(self, until: int) -> Iterator[tuple[int, LoadedPack | None]]:
        """Give by pack the least time of its messages, and the pack where that may be freed."""
        for entry in list(self._entries.values()):
            is_known = entry.low >= until and not entry.freed and entry.seq not in self._loaded
            yield entry.low, None if is_known else self._load_pack(entry)

    def iterate_packs(self) -> Iterator[LoadedPack]:
        """Give all packs, one loaded at a time; the caller changes none of them."""
        for entry in self._entries.values():
            yield self._load_pack(entry)
            self._loaded.clear()

    def commit(self) -> None:
        """Write the marks of freed messages; loaded packs are dropped."""
        for seq, loaded in self._loaded.items():
            if loaded.changed:
                self._rewrite(self._entries[seq], loaded)
        self._loaded.clear()

    def put(self, loaded: FreshPack) -> None:
        """Store a fresh pack without its freed messages; nothing if all are freed."""
        freed = int(loaded.freed.sum())
        if freed == len(loaded.freed):
            return
        if freed == 0 and loaded.pack.lags is None:
            self._put(loaded.stored, loaded)
        else:
            self.put_messages(_encode_remaining(loaded))

    def put_messages(self, body: bytes) -> None:
        """Store an encoded pack of messages, one at least, whose arrival numbers are final."""
        self._put(encode_stored_pack(body, 0), LoadedPack(Pack(body), self._by_arrival))

    def compact(self) -> None:
        """Join packs of about one size while there are enough of them."""
        while (same := self._find_joinable()) is not None:
            left = [Pack(_encode_remaining(self._load_pack(entry))) for entry in same]
            for entry in same:
                self._remove(entry)
            self._loaded.clear()
            self.put_messages(encode_pack(merge_packs(left, grouped=True)))

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
            loaded = LoadedPack(pack, self._by_arrival, entry)
            if entry.freed:
                marks = self._store.get(entry.seq, FREED_ROWS_SEQ)
                assert marks is not None
                bits = np.unpackbits(np.frombuffer(marks, np.uint8), count=entry.count)
                loaded.freed = bits.astype(np.bool_)
            self._loaded[entry.seq] = loaded
        return loaded

    def _rewrite(self, entry: PackEntry, loaded: LoadedPack) -> None:
        freed = int(loaded.freed.sum())
        if freed == entry.freed:
            return
        if 2 * freed > entry.count:
            self._remove(entry)
            if freed < entry.count:
                self.put_messages(_encode_remaining(loaded))
            return
        entry.freed = freed
        self._store.put(entry.seq, FREED_ROWS_SEQ, np.packbits(loaded.freed).tobytes())

    def _remove(self, entry: PackEntry) -> None:
        self._store.delete(PACK_PANE, entry.seq)
        if entry.freed:
            self._store.delete(entry.seq, FREED_ROWS_SEQ)
        del self._entries[entry.seq]

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


def _encode_remaining(loaded: LoadedPack) -> bytes:
    """Encode the messages of a pack that have not been freed."""
    return encode_pack(select_rows(loaded.pack, np.flatnonzero(~loaded.freed)))
