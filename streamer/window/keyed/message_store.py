"""The ledger: messages of a shard in the packs they came in, and which of them are gone.

Packs are appended as they are; of a message that is given back only a mark is made. A pack of this
micro-batch is written only if something of it is left at its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from streamer.window.contract.state_store import StateStore
from streamer.window.keyed.loaded_pack import FreshPack, LoadedPack
from streamer.window.keyed.located_rows import LocatedRows, find_key_rows, locate_rows
from streamer.window.keyed.pack_store import PackStore
from streamer.window.keyed.ranges import FreeRange
from streamer.window.keyed.state import FOREVER, NEVER
from streamer.window.pack.pack_codec import Pack
from streamer.window.settings.int_codec import Ints
from streamer.window.state.layout import encode_stored_pack

KeyRanges = Mapping[bytes, tuple[int, int]]
"""By key, between which times messages are asked for, both inclusive."""


class MessageStore:
    """The messages of a shard."""

    def __init__(
        self, store: StateStore, by_arrival: bool, entries: list[list[int]], seq: int
    ) -> None:
        """Take what the head of the shard's state knows of it.

        Args:
            store: the shard's state.
            by_arrival: windows have no time: messages are found by their arrival numbers.
            entries: the packs, as `head` gives them.
            seq: the number of the next pack.
        """
        self._by_arrival = by_arrival
        self._pack_store = PackStore(store, by_arrival, entries, seq)
        self._fresh_packs: list[FreshPack] = []

    def head_entries(self) -> tuple[list[list[int]], int]:
        """Return what the head of the shard's state must know."""
        return self._pack_store.head_entries()

    @property
    def held_count(self) -> int:
        """How many messages are held."""
        return self._pack_store.held_count + sum(
            int((~loaded.gone).sum()) for loaded in self._fresh_packs
        )

    @property
    def held_bytes(self) -> int:
        """About how many bytes of payload are held."""
        return self._pack_store.held_bytes

    def add_pack(
        self, pack: Pack, body: bytes, shift: int, watermark: int = NEVER, partition: bytes = b""
    ) -> FreshPack:
        """Take a pack of this micro-batch; it is written at the end of it.

        Args:
            pack: the pack, unpacked.
            body: the same as it came.
            shift: what is added to its arrival numbers.
            watermark: what its piece found the clock at.
            partition: that of its piece.
        """
        loaded = FreshPack(
            pack, self._by_arrival, encode_stored_pack(body, shift), watermark, partition
        )
        self._fresh_packs.append(loaded)
        return loaded

    def insert_pack(self, body: bytes) -> None:
        """Take a pack of messages that were kept elsewhere since an earlier micro-batch."""
        pack = Pack(body)
        self._pack_store.put(LoadedPack(pack, self._by_arrival, encode_stored_pack(body, 0), None))

    @property
    def fresh_packs(self) -> Sequence[LoadedPack]:
        """The pages of this micro-batch."""
        return self._fresh_packs

    @property
    def is_fresh_in_order(self) -> bool:
        """Whether the fresh messages of each page arrived before those of the next."""
        headers = [loaded.pack.header for loaded in self._fresh_packs]
        return all(one.last < other.first for one, other in pairwise(headers))

    def find(self, claims: KeyRanges) -> LocatedRows:
        """Return messages of keys that are not gone."""
        if not claims:
            return locate_rows({}, [], [])
        low = min(low for low, _ in claims.values())
        high = max(high for _, high in claims.values())
        numbers = {key: number for number, key in enumerate(claims)}
        lows, highs = (np.array(bounds) for bounds in zip(*claims.values(), strict=True))
        loaded_packs: list[LoadedPack] = []
        parts: list[tuple[Ints, Ints]] = []
        for loaded in self.packs_between(low, high):
            rows, keys = find_key_rows(loaded, numbers)
            if not len(rows):
                continue
            times = loaded.times[rows]
            inside = (times >= lows[keys]) & (times <= highs[keys]) & ~loaded.gone[rows]
            if inside.any():
                loaded_packs.append(loaded)
                parts.append((rows[inside], keys[inside]))
        return locate_rows(numbers, loaded_packs, parts)

    def free(
        self,
        ranges: Mapping[bytes, Sequence[FreeRange]],
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
        located = self.find(claims)
        gone = np.ones(len(located.times), np.bool_)
        for key, some in ranges.items():
            if len(some) > 1 or key in spared or some[0][2] < FOREVER:
                first, last = located.starts[key]
                times, arrivals = located.times[first:last], located.arrivals[first:last]
                inside = [
                    (times >= low) & (times <= high) & (arrivals <= until)
                    for low, high, until in some
                ]
                gone[first:last] = np.logical_or.reduce(inside)
                if key in spared:
                    gone[first:last] &= ~np.isin(arrivals, list(spared[key]))
        if before is not None:
            gone &= located.arrivals < before
        located.free(np.flatnonzero(gone))
        return int(gone.sum())

    def free_fresh(self) -> int:
        """Mark all messages of this micro-batch; return how many were not gone before."""
        count = sum(int((~loaded.gone).sum()) for loaded in self._fresh_packs)
        for loaded in self._fresh_packs:
            loaded.gone[:] = True
        return count

    def commit(self) -> None:
        """Write what this micro-batch has changed; nothing is at hand after it."""
        self._pack_store.commit()
        fresh, self._fresh_packs = self._fresh_packs, []
        for loaded in fresh:
            self._pack_store.put(loaded)
        self._pack_store.compact()

    def iterate_stored(self) -> Iterator[LoadedPack]:
        """Give all pages that earlier micro-batches have left, one at a time."""
        return self._pack_store.iterate_packs()

    def packs_between(self, low: int, high: int) -> Iterator[LoadedPack]:
        """Give the pages that may hold messages between two times, both inclusive."""
        yield from self._pack_store.packs_between(low, high)
        yield from self._fresh_packs
