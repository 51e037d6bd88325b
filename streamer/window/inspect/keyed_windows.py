"""Open windows of a shard that are decided key by key."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice

import numpy as np
import orjson

from streamer.core.json.dump import dump_json
from streamer.core.message import Message
from streamer.window.aggregate.fire_groups import AggregatedGroup
from streamer.window.contract import Emission
from streamer.window.inspect.window_query import (
    ClosesBy,
    WindowListing,
    WindowQuery,
    WindowRow,
)
from streamer.window.keyed.columns.closed_sessions import ClosedSessions
from streamer.window.keyed.columns.numeric_aggregates import (
    NumericAggregates,
    numeric_aggregates_of,
)
from streamer.window.keyed.columns.open_sessions import OpenSessions
from streamer.window.keyed.columns.session_blocks import SessionBlocks
from streamer.window.keyed.counting import CountRules
from streamer.window.keyed.emit import BatchReader
from streamer.window.keyed.emit_queue import EmitQueue
from streamer.window.keyed.head import KeyedHead
from streamer.window.keyed.key_buckets import KeyBuckets, bucket_of
from streamer.window.keyed.keyed_aggregation import KeyedAggregation
from streamer.window.keyed.message_store import MessageStore
from streamer.window.keyed.state import FOREVER, KeyState, Window
from streamer.window.keyed.window_aggregate import WindowAggregate
from streamer.window.keyed.window_rules import make_rules
from streamer.window.pack.window_metadata import format_shown_key, make_unbounded_metadata
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.int_codec import Ints
from streamer.window.settings.window_types import Count, Session, Sliding, State
from streamer.window.state_store import StateStore

_NO_CLOCK = -(1 << 70)


class KeyedWindows:
    """The open windows of one shard, as its state has them after a micro-batch."""

    def __init__(self, window: EventWindow, store: StateStore) -> None:
        """Read the head of the shard's state; nothing is written."""
        self._window = window
        self._store = store
        self._rules = make_rules(window)
        self._head = head = KeyedHead.read(store, window.fingerprint)
        self._buckets = KeyBuckets(
            store, head.earliest_dues, head.bucket_count, head.key_count, head.bucket_sizes
        )
        self._blocks = SessionBlocks(store, head.has_columns)

    @property
    def key_count(self) -> int:
        """Number of keys."""
        return self._head.key_count + len(self._blocks)

    def list_windows(self, query: WindowQuery) -> WindowListing:
        """Return the windows that match a question; rows in no order."""
        rows: list[WindowRow] = []
        budget = query.max_keys
        exact = set() if query.key is None else set(possible_keys(query.key))
        for key in exact:
            rows += self._rows_of_key(key, query)
        for _, opened in self._iterate_blocks(exact):
            rows += self._select_sessions(opened, query, exact)
        if query.only_key:
            return WindowListing(rows, len(rows))
        is_complete = True
        for number in sorted(self._buckets.earliest_dues):
            if budget <= 0:
                is_complete = False
                break
            bucket = self._buckets.load(number)
            for key in islice(bucket.keys(), budget):
                text = self._key_text(key)
                if key not in exact and query.matches(text):
                    rows += self._rows_of_state(text, bucket.get(key), query)
            is_complete &= budget >= len(bucket)
            budget -= len(bucket)
        for number in self._blocks.list_blocks() if len(self._blocks) else ():
            if budget <= 0:
                is_complete = False
                break
            opened = self._load_blocks([number])
            rows += self._select_sessions(opened, query, None, exact)
            budget -= len(opened)
        return WindowListing(rows, len(rows), is_complete)

    def emissions(self, query: WindowQuery) -> Iterator[Emission]:
        """Give what windows with exactly the question's key and start would emit now."""
        for key in {b""} if query.key is None else set(possible_keys(query.key)):
            yield from self._emissions_of_key(key, query)
            for _, opened in self._iterate_blocks({key}):
                some = opened.take(_find_sessions(opened, {key}, query.start))
                aggregates = self._aggregates
                if len(some) and aggregates is not None:
                    due = np.ones(len(some), np.bool_)
                    closed = ClosedSessions(some, due, aggregates, self._window.keyed)
                    yield from closed.iterate_emissions()

    def _emissions_of_key(self, key: bytes, query: WindowQuery) -> Iterator[Emission]:
        state = self._find_state(key)
        if state is None:
            return
        head = self._head
        aggregation = KeyedAggregation(
            *(None, head.mappings, head.use_counts, head.aggregated_count),
            *(self._rules.mergeable, self._rules.unbounded),
        )
        if aggregation.is_needed:
            aggregation.load(state)
        queue = EmitQueue(self._rules, False, head.next_arrival, head.next_arrival)
        for window in self._windows_of(state):
            if self._rules.unbounded and window.aggregate is not None:
                yield self._build_unbounded(key, window.aggregate, window.count)
            elif query.start is None or window.start == query.start:
                excluded = state.excluded_ranges(window, head.next_arrival)
                order = (0, window.end, window.first, window.start)
                several = self._rules.mergeable and len(state.windows) > 1
                queue.queue_emit(
                    *(key, window, "changes", order),
                    excluded_ranges=excluded if several else (),
                )
        messages = MessageStore(self._store, self._rules.count_based, head.packs, head.next_pack)
        reader = BatchReader(messages, self._window, self._rules.unit, {})
        for _, emission in reader.iterate_emissions(queue.batches):
            yield emission

    def _build_unbounded(self, key: bytes, aggregate: WindowAggregate, count: int) -> Emission:
        """Build the batch of a window that holds no message: null stands in for the last one."""
        aggregation = aggregate.aggregation
        assert aggregation is not None
        shown = key if self._window.keyed else None
        metadata = make_unbounded_metadata("changes", aggregate.max_event_time, shown)
        broken = None if aggregate.unparsable is None else aggregate.unparsable.text
        result_of = partial(aggregation.result_of, aggregate.states, broken)
        batch = AggregatedGroup(Message(b"null", metadata), aggregation.text, result_of, count)
        return Emission(None, batch, "changes", shown)

    def _windows_of(self, state: KeyState) -> list[Window]:
        """Return the open windows of a key; of a count window, the one that is being filled."""
        if not state.marks:
            return state.windows
        if isinstance(self._rules, CountRules):
            first, last = state.marks[0][0], state.marks[-1][0]
            return [Window(first, last, first, len(state.marks), 0)]
        kind = self._window.kind
        if isinstance(kind, Sliding) and kind.mode == "event" and not kind.waits:
            # Each message has a window of its own: this is the newest one.
            end, first = state.marks[-1]
            return [Window(end - kind.size, end, first, 0, 0)]
        return state.windows

    def _rows_of_key(self, key: bytes, query: WindowQuery) -> list[WindowRow]:
        state = self._find_state(key)
        return [] if state is None else self._rows_of_state(self._key_text(key), state, query)

    def _find_state(self, key: bytes) -> KeyState | None:
        number = bucket_of(key, self._buckets.count)
        if number not in self._buckets.earliest_dues:
            return None
        bucket = self._buckets.load(number)
        return bucket.get(key) if key in bucket.keys() else None  # noqa: SIM118

    def _rows_of_state(
        self, key: str | None, state: KeyState, query: WindowQuery
    ) -> list[WindowRow]:
        kind = self._window.kind
        if isinstance(kind, State):
            held = len(state.marks)
            return [WindowRow(key, None, None, held, closes_by="message")] if held else []
        if isinstance(kind, Count):
            if not state.marks:
                return []
            missing = kind.window_after(state.total) - state.total
            row = WindowRow(key, None, None, len(state.marks), closes_by="count", missing=missing)
            return [row]
        return [
            self._row_of(key, window)
            for window in self._windows_of(state)
            if query.start is None or query.start == window.start
        ]

    def _row_of(self, key: str | None, window: Window) -> WindowRow:
        if self._rules.unbounded:
            idle = self._idle_time(window.active)
            return WindowRow(key, None, None, window.count, closes_by="never", idle_at=idle)
        closes = self._rules.close_time(window)
        return WindowRow(
            *(key, window.start, window.end, window.count or None, None),
            closes=None if closes >= FOREVER else closes,
            closes_by=self._closes_by,
            idle_at=self._idle_time(window.active),
        )

    @property
    def _closes_by(self) -> ClosesBy:
        time, kind = self._window.time, self._window.kind
        if isinstance(kind, Sliding) and kind.mode == "event" and not kind.waits:
            return "message"
        if time.clock == "system":
            return "clock"
        return "key_time" if time.clock_scope == "key" else "event_time"

    def _idle_time(self, active: int) -> int | None:
        timeout, clocks = self._window.time.idle_timeout, self._head.clocks
        if timeout is None or clocks.now is None:
            return None
        return clocks.now + active + timeout - clocks.active

    def _key_text(self, key: bytes) -> str | None:
        return format_shown_key(key) if self._window.keyed else None

    @property
    def _aggregates(self) -> NumericAggregates | None:
        return None if self._blocks.text is None else numeric_aggregates_of(self._blocks.text)

    def _load_blocks(self, numbers: list[int]) -> OpenSessions:
        aggregates = self._aggregates
        assert aggregates is not None
        return self._blocks.load(numbers, aggregates.columns)

    def _iterate_blocks(self, keys: set[bytes]) -> Iterator[tuple[int, OpenSessions]]:
        """Give the blocks in which sessions of some keys are."""
        if not len(self._blocks):
            return
        for number in self._blocks.select_blocks(keys, _NO_CLOCK):
            yield number, self._load_blocks([number])

    def _select_sessions(
        self,
        opened: OpenSessions,
        query: WindowQuery,
        keys: set[bytes] | None,
        others: set[bytes] | None = None,
    ) -> list[WindowRow]:
        """Return the rows of sessions kept as columns: of some keys, or of all but others."""
        kind = self._window.kind
        assert isinstance(kind, Session)
        delay = kind.gap + self._window.time.allowed_lateness + 1
        rows = []
        for key, start, end, count in zip(
            *(opened.keys, opened.starts.tolist(), opened.ends.tolist(), opened.counts.tolist()),
            strict=True,
        ):
            if (keys is not None and key not in keys) or (others and key in others):
                continue
            text = self._key_text(key)
            if query.matches(text) and query.start in (None, start):
                row = WindowRow(text, start, end, count, None, end + delay, self._closes_by)
                rows.append(row)
        return rows


def possible_keys(text: str) -> Iterator[bytes]:
    """Return the keys that are shown as a text: the string, and the JSON value that it spells."""
    yield dump_json(text)
    try:
        value = orjson.loads(text)
    except ValueError:
        return
    if not isinstance(value, str):
        yield dump_json(value)


def _find_sessions(opened: OpenSessions, keys: set[bytes], start: int | None) -> Ints:
    starts = opened.starts.tolist()
    places = [
        at
        for at, key in enumerate(opened.keys)
        if key in keys and (start is None or starts[at] == start)
    ]
    return np.array(places, np.int64)
