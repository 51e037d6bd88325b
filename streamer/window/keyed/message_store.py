"""The messages that a shard holds: packs as they came in, and a mark for each freed message.

A pack is appended as it is; a message is freed by a mark. A pack of this micro-batch is written
only at the end of it, and only if some of its messages are still needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from streamer.window.keyed.message_rows import (
    FreeRange,
    FreshPack,
    KeyRanges,
    LoadedPack,
    LocatedRows,
    locate_rows,
)
from streamer.window.keyed.pack_store import PackStore
from streamer.window.keyed.state import FOREVER, NEVER
from streamer.window.pack.pack_codec import Pack
from streamer.window.state.layout import encode_stored_pack
from streamer.window.state_store import StateStore


class MessageStore:
    """The messages of a shard in one micro-batch: stored packs, and fresh ones."""

    def __init__(
        self, store: StateStore, by_arrival: bool, entries: list[list[int]], seq: int
    ) -> None:
        """Open the store.

        Args:
            store: the shard's state.
            by_arrival: look messages up by arrival number, since their windows know no time.
            entries: the stored packs, as `head_entries` returned them.
            seq: the seq of the next pack to be stored.
        """
        self._by_arrival = by_arrival
        self._pack_store = PackStore(store, by_arrival, entries, seq)
        self._fresh_packs: list[FreshPack] = []

    def head_entries(self) -> tuple[list[list[int]], int]:
        """Return the stored packs and the next seq, for the head of the shard's state."""
        return self._pack_store.head_entries()

    @property
    def held_count(self) -> int:
        """Number of messages that are held."""
        return self._pack_store.held_count + self._fresh_count

    @property
    def held_bytes(self) -> int:
        """About how many bytes of payload the stored packs hold."""
        return self._pack_store.held_bytes

    def add_pack(
        self, pack: Pack, body: bytes, shift: int, watermark: int = NEVER, partition: bytes = b""
    ) -> FreshPack:
        """Add a pack of this micro-batch; `commit` writes it.

        Args:
            pack: the pack, unpacked.
            body: the pack as it came in.
            shift: is added to its arrival numbers.
            watermark: the watermark before the piece of input that it is from.
            partition: the source partition of that piece.
        """
        stored = encode_stored_pack(body, shift)
        loaded = FreshPack(pack, self._by_arrival, stored, watermark, partition)
        self._fresh_packs.append(loaded)
        return loaded

    def insert_pack(self, body: bytes) -> None:
        """Store a pack of messages of earlier micro-batches that were held elsewhere."""
        self._pack_store.put_messages(body)

    @property
    def fresh_packs(self) -> Sequence[LoadedPack]:
        """The packs of this micro-batch."""
        return self._fresh_packs

    @property
    def is_fresh_in_order(self) -> bool:
        """Whether each fresh pack arrived as a whole before the next one."""
        headers = [loaded.pack.header for loaded in self._fresh_packs]
        return all(one.last < other.first for one, other in pairwise(headers))

    def find(self, key_ranges: KeyRanges) -> LocatedRows:
        """Find the messages of keys that have not been freed."""
        if not key_ranges:
            return locate_rows((), key_ranges)
        low = min(low for low, _ in key_ranges.values())
        high = max(high for _, high in key_ranges.values())
        return locate_rows(self.packs_between(low, high), key_ranges)

    def free(
        self,
        ranges: Mapping[bytes, Sequence[FreeRange]],
        spared: Mapping[bytes, set[int]],
        before: int | None = None,
    ) -> int:
        """Free the messages of keys in ranges of times.

        Args:
            ranges: the ranges, by key.
            spared: by key, arrival numbers of messages that are not freed.
            before: free only messages with a smaller arrival number; None for all.

        Returns:
            How many messages were freed.
        """
        located = self.find(
            {
                key: (min(low for low, *_ in some), max(high for _, high, _ in some))
                for key, some in ranges.items()
            }
        )
        freed = np.ones(len(located.times), np.bool_)
        for key, some in ranges.items():
            if len(some) > 1 or key in spared or some[0][2] < FOREVER:
                first, last = located.bounds[key]
                times, arrivals = located.times[first:last], located.arrivals[first:last]
                inside = [
                    (times >= low) & (times <= high) & (arrivals <= until)
                    for low, high, until in some
                ]
                freed[first:last] = np.logical_or.reduce(inside)
                if key in spared:
                    freed[first:last] &= ~np.isin(arrivals, list(spared[key]))
        if before is not None:
            freed &= located.arrivals < before
        located.free(np.flatnonzero(freed))
        return int(freed.sum())

    def free_messages(self, by_key: Mapping[bytes, Sequence[tuple[int, int]]]) -> int:
        """Free single messages, by key given as time and arrival number; return how many."""
        ranges = {key: (min(some)[0], max(some)[0]) for key, some in by_key.items()}
        located = self.find(ranges)
        freed = np.zeros(len(located.times), np.bool_)
        for key, some in by_key.items():
            first, last = located.bounds[key]
            numbers = [arrival for _, arrival in some]
            freed[first:last] = np.isin(located.arrivals[first:last], numbers)
        located.free(np.flatnonzero(freed))
        return int(freed.sum())

    def free_fresh(self) -> int:
        """Free all messages of this micro-batch; return how many had not been freed before."""
        count = self._fresh_count
        for loaded in self._fresh_packs:
            loaded.freed[:] = True
        return count

    @property
    def _fresh_count(self) -> int:
        return sum(int((~loaded.freed).sum()) for loaded in self._fresh_packs)

    def commit(self) -> None:
        """Write all changes of this micro-batch to the state; loaded packs are dropped."""
        self._pack_store.commit()
        fresh, self._fresh_packs = self._fresh_packs, []
        for loaded in fresh:
            self._pack_store.put(loaded)
        self._pack_store.compact()

    def iterate_stored(self) -> Iterator[LoadedPack]:
        """Give the packs that earlier micro-batches stored, one at a time."""
        return self._pack_store.iterate_packs()

    def iterate_lows(self, until: int) -> Iterator[tuple[int, LoadedPack | None]]:
        """Give by pack the least time of its messages, and the pack where that may be freed.

        Args:
            until: messages with times before this have been freed; fresh packs are always given.
        """
        yield from self._pack_store.iterate_lows(until)
        for fresh in self._fresh_packs:
            yield int(fresh.times.min()), fresh

    def packs_between(self, low: int, high: int) -> Iterator[LoadedPack]:
        """Give the packs that may hold messages in a range of times, both bounds inclusive."""
        yield from self._pack_store.packs_between(low, high)
        yield from self._fresh_packs
