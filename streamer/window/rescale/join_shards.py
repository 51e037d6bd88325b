"""Shards that join two streams, cut anew."""

from __future__ import annotations

from collections.abc import Sequence

from streamer.core.errors import StreamerError
from streamer.window.keyed.head import KeyedHead
from streamer.window.keyed.join_matching import SIDES, Side
from streamer.window.keyed.matched_bits import MatchedBits
from streamer.window.keyed.message_store import MessageStore
from streamer.window.pack.pack_codec import encode_pack
from streamer.window.rescale.keyed_shards import part_messages, read_heads
from streamer.window.rescale.split_packs import ShardOf
from streamer.window.rescale.sum_counters import sum_counters
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.state.layout import FIRST_RIGHT_PACK_SEQ
from streamer.window.state_store import StateStore


def rescale_join_shards(
    window: EventWindow, shard_of: ShardOf, stores: Sequence[StateStore], into: Sequence[StateStore]
) -> tuple[int, int]:
    """Distribute the waiting messages of both sides over other shards (`rescale`).

    A message gets a new arrival number, since each shard has its own sequence of them. It keeps its
    mark of a match and its place among the messages of its key. With `idle_timeout` it waits anew.

    Returns:
        How many messages wait, twice: each has a window of its own.
    """
    heads = read_heads(window, stores)
    targets = [_NewShard(store) for store in into]
    before = next_arrival = 0
    for store, head in zip(stores, heads, strict=True):
        matched = MatchedBits(store)
        for side in SIDES:
            waiting = MessageStore(store, False, _select_packs(head, side), 0)
            before += waiting.held_count
            for shard, columns in part_messages(waiting, shard_of):
                is_matched = matched.pop(columns.arrivals)
                columns.arrivals = columns.arrivals + next_arrival
                targets[shard].matched.add(columns.arrivals[is_matched])
                targets[shard].sides[side].insert_pack(encode_pack(columns))
        next_arrival += head.next_arrival
    counters = sum_counters([head.counters for head in heads])
    for number, target in enumerate(targets):
        new = KeyedHead(window.fingerprint, heads[0].clocks)
        new.next_arrival = next_arrival
        if number == 0:
            new.counters = counters
        target.finish(new)
    after = sum(target.held_count for target in targets)
    if before != after:
        raise StreamerError(
            f"the shards had {before} messages and would have {after}: this is a bug; the "
            "checkpoint stays as it is"
        )
    return after, after


class _NewShard:
    """A shard that there is to be."""

    def __init__(self, store: StateStore) -> None:
        self.sides = {
            "left": MessageStore(store, False, [], 0),
            "right": MessageStore(store, False, [], FIRST_RIGHT_PACK_SEQ),
        }
        self.matched = MatchedBits(store)
        self._store = store

    @property
    def held_count(self) -> int:
        return sum(side.held_count for side in self.sides.values())

    def finish(self, head: KeyedHead) -> None:
        """Write the head, the packs and the marks."""
        for side in self.sides.values():
            side.commit()
        self.matched.write()
        lefts, head.next_pack = self.sides["left"].head_entries()
        rights, _ = self.sides["right"].head_entries()
        head.packs = lefts + rights
        head.write(self._store)


def _select_packs(head: KeyedHead, side: Side) -> list[list[int]]:
    """Return the entries of a side's packs."""
    is_right = side == "right"
    return [entry for entry in head.packs if (entry[0] >= FIRST_RIGHT_PACK_SEQ) == is_right]
