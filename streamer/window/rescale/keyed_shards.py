"""Shards that decide key by key (`keyed.step`), cut anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from streamer.core.errors import StreamerError
from streamer.window.keyed.columns.numeric_aggregates import numeric_aggregates_of
from streamer.window.keyed.columns.open_sessions import OpenSessions, concat_sessions
from streamer.window.keyed.columns.session_blocks import SessionBlocks
from streamer.window.keyed.head import KeyedHead
from streamer.window.keyed.key_buckets import Dues, KeyBuckets
from streamer.window.keyed.keyed_aggregation import KeyedAggregation
from streamer.window.keyed.message_store import MessageStore
from streamer.window.keyed.state import KeyState
from streamer.window.keyed.window_rules import make_rules
from streamer.window.pack.merge_packs import select_rows
from streamer.window.pack.pack_codec import PackColumns, encode_pack
from streamer.window.rescale.split_packs import ShardOf, find_shards
from streamer.window.rescale.sum_counters import CLOCKS_DISAGREE_TEXT, sum_counters
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.state_store import StateStore

_RECORDS_PER_FLUSH = 4096


def rescale_keyed_shards(
    window: EventWindow, shard_of: ShardOf, stores: Sequence[StateStore], into: Sequence[StateStore]
) -> tuple[int, int]:
    """Distribute the state of windows decided key by key over other shards (`rescale`).

    Returns:
        How many messages are held, in how many open windows.
    """
    heads = read_heads(window, stores)
    arrival = max(head.next_arrival for head in heads)
    after = [_NewShard(window, store) for store in into]
    for one in after:
        one.head.clocks, one.head.next_arrival = heads[0].clocks, arrival
        one.head.listed = heads[0].listed
    after[0].head.counters = sum_counters([head.counters for head in heads])
    timeless = make_rules(window).count_based
    messages_before = 0
    for store, head in zip(stores, heads, strict=True):
        message_store = MessageStore(store, timeless, head.packs, head.next_pack)
        blocks = SessionBlocks(store, head.has_columns)
        messages_before += message_store.held_count + head.aggregated_count + blocks.held_count
        _move_records(store, head, after, shard_of)
        move_messages(message_store, [one.messages for one in after], shard_of)
        _move_columns(blocks, after, shard_of)
    open_before = sum(head.open_count for head in heads)
    open_after = sum(one.finish() for one in after)
    messages_after = sum(one.held_count for one in after)
    if (open_before, messages_before) != (open_after, messages_after):
        raise StreamerError(
            f"the shards had {messages_before} messages in {open_before} open windows and would "
            f"have {messages_after} in {open_after}: this is a bug; the checkpoint stays as it is"
        )
    return messages_after, open_after


def read_heads(window: EventWindow, stores: Sequence[StateStore]) -> list[KeyedHead]:
    """Return the heads of shards.

    Raises:
        StreamerError: they are not of the same micro-batch.
    """
    heads = [KeyedHead.read(store, window.fingerprint) for store in stores]
    if any(head.clocks != heads[0].clocks for head in heads[1:]):
        raise StreamerError(CLOCKS_DISAGREE_TEXT)
    return heads


class _NewShard:
    """A shard that there is to be."""

    def __init__(self, window: EventWindow, store: StateStore) -> None:
        rules = make_rules(window)
        self.head = KeyedHead(window.fingerprint)
        self.store = store
        self.buckets = KeyBuckets(store, {}, 1, 0, {})
        self.messages = MessageStore(store, rules.count_based, [], 0)
        self.aggregation = KeyedAggregation(None, [], [], 0, rules.mergeable)
        self.blocks = SessionBlocks(store, known=False)
        self.sessions: dict[str, list[OpenSessions]] = {}
        self.held_count = 0
        self._records: list[tuple[bytes, KeyState, Dues]] = []

    def take(self, key: bytes, state: KeyState, dues: Dues, texts: Sequence[str]) -> None:
        """Take the record of a key; `texts` are the mappings of the shard that had it."""
        for window in state.windows:
            if window.aggregate is not None:
                window.aggregate.mapping_number = self.aggregation.mapping_number_of(
                    texts[window.aggregate.mapping_number]
                )
                self.aggregation.held_count += window.aggregate.absorbed_count
        self.aggregation.count_open_windows(state, 1)
        self.head.open_count += len(state.windows)
        self._records.append((key, state, dues))
        if len(self._records) >= _RECORDS_PER_FLUSH:
            self._flush_records()

    def finish(self) -> int:
        """Write the head; return how many windows are open."""
        self._flush_records()
        self.messages.commit()
        head = self.head
        if len(self.sessions) > 1:
            raise StreamerError(
                "the shards keep sessions for different mappings; start the stream once with its "
                "config, and try again"
            )
        for text, parts in self.sessions.items():
            aggregates = numeric_aggregates_of(text)
            assert aggregates is not None
            opened = concat_sessions(parts)
            head.open_count += len(opened)
            self.blocks.save(opened, [], text, aggregates.columns)
        head.save(self.store, self.buckets, self.messages, self.aggregation, self.blocks)
        self.held_count = (
            self.messages.held_count + self.aggregation.held_count + self.blocks.held_count
        )
        return head.open_count

    def _flush_records(self) -> None:
        self.buckets.insert(self._records)
        self._records = []
        self.buckets.resize()


def _move_records(
    store: StateStore, head: KeyedHead, after: Sequence[_NewShard], shard_of: ShardOf
) -> None:
    buckets = KeyBuckets(
        store, head.earliest_dues, head.bucket_count, head.key_count, head.bucket_sizes
    )
    for _, bucket in buckets.iterate_buckets():
        for key, state, dues in bucket.iterate_records():
            after[shard_of(key)].take(key, state, dues, head.mappings)


def move_messages(
    message_store: MessageStore, after: Sequence[MessageStore], shard_of: ShardOf
) -> None:
    """Add the messages of a shard to those of other shards, by their keys."""
    for shard, columns in part_messages(message_store, shard_of):
        after[shard].insert_pack(encode_pack(columns))


def part_messages(
    message_store: MessageStore, shard_of: ShardOf
) -> Iterator[tuple[int, PackColumns]]:
    """Give the messages of a shard, pack by pack, with the shard that their keys go to."""
    for loaded in message_store.iterate_stored():
        left = ~loaded.freed
        shards = find_shards(loaded.pack.keys, shard_of, loaded.pack.header.key_id)
        of_message = np.repeat(shards, np.diff(loaded.pack.starts))
        for shard in np.unique(of_message[left]).tolist():
            rows = np.flatnonzero(left & (of_message == shard))
            yield shard, select_rows(loaded.pack, rows)


def _move_columns(blocks: SessionBlocks, after: Sequence[_NewShard], shard_of: ShardOf) -> None:
    for text, opened in _iterate_open_sessions(blocks):
        shards = np.fromiter(map(shard_of, opened.keys), np.int64, len(opened))
        for shard in np.unique(shards).tolist():
            part = opened.take(np.flatnonzero(shards == shard))
            after[shard].sessions.setdefault(text, []).append(part)


def _iterate_open_sessions(blocks: SessionBlocks) -> Iterator[tuple[str, OpenSessions]]:
    """Give the sessions that are kept as columns, with the mapping that they are kept for."""
    aggregates = None if blocks.text is None else numeric_aggregates_of(blocks.text)
    if aggregates is not None:
        for number in blocks.list_blocks():
            yield aggregates.text, blocks.load([number], aggregates.columns)
