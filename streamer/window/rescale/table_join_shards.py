"""Shards that join a stream with a table, cut anew."""

from __future__ import annotations

from collections.abc import Sequence

from streamer.core.errors import StreamerError
from streamer.window.keyed.head import KeyedHead
from streamer.window.keyed.message_store import MessageStore
from streamer.window.keyed.table_rows import TableRow, TableRows
from streamer.window.rescale.keyed_shards import move_messages, read_heads
from streamer.window.rescale.split_packs import ShardOf
from streamer.window.rescale.sum_counters import sum_counters
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.state_store import StateStore


def rescale_table_join_shards(
    window: EventWindow, shard_of: ShardOf, stores: Sequence[StateStore], into: Sequence[StateStore]
) -> tuple[int, int]:
    """Distribute the waiting messages and the rows of a table over other shards (`rescale`).

    Returns:
        How many messages and rows are held, and how many messages of them wait.
    """
    heads = read_heads(window, stores)
    targets = [_NewShard(store) for store in into]
    before = 0
    for store, head in zip(stores, heads, strict=True):
        waiting = MessageStore(store, False, head.packs, head.next_pack)
        rows = TableRows(store, None)
        before += waiting.held_count + rows.version_count
        move_messages(waiting, [one.waiting for one in targets], shard_of)
        for bucket in rows.iterate_buckets():
            by_shard: dict[int, list[tuple[bytes, TableRow]]] = {}
            for key, row in bucket.iterate_rows():
                by_shard.setdefault(shard_of(key), []).append((key, row))
            for shard, some in by_shard.items():
                targets[shard].rows.insert(some)
    counters = sum_counters([head.counters for head in heads])
    for number, target in enumerate(targets):
        new = KeyedHead(window.fingerprint, heads[0].clocks)
        new.next_arrival = max(head.next_arrival for head in heads)
        if number == 0:
            new.counters = counters
        target.finish(new)
    waiting_count = sum(one.waiting.held_count for one in targets)
    after = waiting_count + sum(one.rows.version_count for one in targets)
    if before != after:
        raise StreamerError(
            f"the shards had {before} messages and rows and would have {after}: this is a bug; the "
            "checkpoint stays as it is"
        )
    return after, waiting_count


class _NewShard:
    """A shard that there is to be."""

    def __init__(self, store: StateStore) -> None:
        self.waiting = MessageStore(store, False, [], 0)
        self.rows = TableRows(store, None)
        self._store = store

    def finish(self, head: KeyedHead) -> None:
        """Write the heads."""
        self.waiting.commit()
        head.packs, head.next_pack = self.waiting.head_entries()
        self.rows.finish((), 0, None)
        head.write(self._store)
