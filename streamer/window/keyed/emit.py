"""Emits the queued batches of a micro-batch in their order.

Messages are looked up for many batches together, a portion of them at a time, so that neither the
look-ups nor the messages of all batches are in memory at once.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice
from operator import attrgetter, itemgetter
from typing import Any, Final

import numpy as np

from streamer.core.message import Batch, Message
from streamer.window.aggregate.fire_groups import AggregatedGroup
from streamer.window.contract import ClosedWindow, Counters, Emission, EmptyWindow
from streamer.window.fire.having import HavingFilter
from streamer.window.keyed.aggregate_batches import AggregateBatches, AggregateSnapshot
from streamer.window.keyed.columns.closed_sessions import ClosedSessions
from streamer.window.keyed.emit_queue import (
    EmitQueue,
    PendingBatch,
    PerEventBatch,
    to_pending_batch,
)
from streamer.window.keyed.message_rows import MessageRows
from streamer.window.keyed.message_store import MessageStore
from streamer.window.keyed.retractions import Retractor
from streamer.window.keyed.state import FOREVER, MIN_TIME_NS
from streamer.window.pack.message_columns import DecodedMetadata, MessageBuilder
from streamer.window.pack.metadata_codec import decode_meta
from streamer.window.pack.window_metadata import (
    format_shown_key,
    make_count_metadata,
    make_unbounded_metadata,
    make_window_metadata,
)
from streamer.window.settings.event_time_window import EventWindow

_MESSAGES_PER_PORTION: Final = 200_000
_PER_EVENT_BATCHES_PER_PORTION: Final = 200_000
_MAX_CLOSED_SHOWN: Final = 16

OrderedEmission = tuple[tuple[Any, ...], Emission]
"""An emission with its `PendingBatch.order`."""


class BatchReader:
    """Makes emissions of pending batches.

    Attributes:
        freed: how many messages were freed with their batches.
    """

    def __init__(
        self,
        store: MessageStore,
        window: EventWindow,
        unit: int,
        spared: Mapping[bytes, set[int]],
    ) -> None:
        """Create a reader for one micro-batch.

        Args:
            store: holds the messages.
            window: the window's settings.
            unit: event times in metadata are rounded down to multiples of it, ns.
            spared: by key, arrival numbers of messages that are not freed.
        """
        self._store = store
        self._sorts_by_time = window.sorts_by_time
        self._unbounded = window.unbounded
        self._keyed = window.keyed
        self._unit = unit
        self._spared = spared
        self._decoded: DecodedMetadata = {}
        self.freed = 0

    def iterate_emissions(self, batches: Sequence[PendingBatch]) -> Iterator[OrderedEmission]:
        """Give the emissions of batches, in the order of `batches`."""
        portion: list[PendingBatch] = []
        size = 0
        for batch in batches:
            portion.append(batch)
            size += batch.count if batch.snapshot is None else 1
            if size >= _MESSAGES_PER_PORTION:
                yield from self._emit_portion(portion)
                portion, size = [], 0
        yield from self._emit_portion(portion)

    def iterate_per_event(self, batches: list[PerEventBatch]) -> Iterator[Emission]:
        """Give the emissions of batches per event, in the order of the events; sorts `batches`."""
        batches.sort()
        for first in range(0, len(batches), _PER_EVENT_BATCHES_PER_PORTION):
            portion = batches[first : first + _PER_EVENT_BATCHES_PER_PORTION]
            spans = {(batch[4], batch[3], batch[1]) for batch in portion}
            rows = MessageRows(self._store.find(_merge_ranges(spans)))
            build = AggregateBatches(rows, self._keyed, self._decoded).build_emission
            for arrival, end, first_arrival, start, key, aggregate, states, newest, size in portion:
                snapshot = AggregateSnapshot(
                    aggregate, states, first_arrival, newest, size, arrival
                )
                bounds = None if self._unbounded else (start, end)
                yield build(key, bounds, "each", snapshot)

    def _emit_portion(self, batches: list[PendingBatch]) -> Iterator[OrderedEmission]:
        key_ranges = _merge_ranges(
            (batch.key, batch.low, batch.high) for batch in batches if not batch.is_empty
        )
        located = self._store.find(key_ranges)
        rows = MessageRows(located)
        aggregates = AggregateBatches(rows, self._keyed, self._decoded)
        freed: list[int] = []
        for batch in batches:
            if batch.is_empty:
                yield batch.order, self._build_empty(batch)
                continue
            snapshot = batch.snapshot
            indices: Sequence[int] = ()
            if snapshot is None or batch.frees_messages:
                indices = _select_rows(rows, batch, key_ranges[batch.key])
            if batch.frees_messages:
                spared = self._spared.get(batch.key)
                freed += indices if spared is None else _exclude(rows, indices, spared)
            if snapshot is not None:
                is_first = bool(indices) and rows.arrivals[indices[0]] == snapshot.first
                first = indices[0] if is_first else None
                bounds = None
                if batch.start is not None and batch.end is not None:
                    bounds = batch.start, batch.end
                yield (
                    batch.order,
                    _with_replaced(
                        aggregates.build_emission(batch.key, bounds, batch.reason, snapshot, first),
                        batch,
                    ),
                )
            elif indices:
                emission = self._build_emission(batch, rows, indices)
                yield batch.order, _with_replaced(emission, batch)
        if freed:
            located.free(np.array(freed, np.int64))
            self.freed += len(freed)

    def _build_empty(self, batch: PendingBatch) -> Emission:
        """Build the emission of a window without messages: none, or what stands in for them."""
        assert batch.start is not None
        assert batch.end is not None
        key = batch.key if self._keyed else None
        metadata = make_window_metadata(batch.start, batch.end, batch.reason, None, key)
        messages: Batch = EmptyWindow(Message(b"null", metadata))
        if batch.stand_in is not None:
            payload, encoded = batch.stand_in
            own, error = decode_meta(encoded)
            messages = [Message(payload, {**own, **metadata}, error)]
        return Emission(batch.end, messages, batch.reason, key, batch.start)

    def _build_emission(
        self, batch: PendingBatch, rows: MessageRows, indices: Sequence[int]
    ) -> Emission:
        times = rows.times
        newest = times[indices[0]]
        if len(indices) > 1:
            # Many keys have windows of one message, which each of these costs.
            if self._sorts_by_time:
                unit = self._unit
                indices = sorted(indices, key=lambda index: times[index] // unit)
            newest = max([times[index] for index in indices])
        key = batch.key if self._keyed else None
        spelt_key = key and (rows.spelling_at(indices[0]) or key)
        newest -= newest % self._unit
        metadata: Mapping[str, Any]
        if self._unbounded:
            metadata = make_unbounded_metadata(batch.reason, newest, spelt_key)
        elif batch.start is None or batch.end is None:
            metadata = make_count_metadata(batch.reason, len(indices), batch.offsets, spelt_key)
        else:
            metadata = make_window_metadata(batch.start, batch.end, batch.reason, newest, spelt_key)
        messages = rows.build_messages(indices, MessageBuilder(metadata, self._decoded))
        return Emission(batch.end, messages, batch.reason, key, batch.start)


def _with_replaced(emission: Emission, batch: PendingBatch) -> Emission:
    """Return an emission that says which results it takes the place of."""
    emission.replaced = batch.replaced
    return emission


def _merge_ranges(ranges: Iterable[tuple[bytes, int, int]]) -> dict[bytes, tuple[int, int]]:
    """Return by key the least range of times that covers all its ranges."""
    by_key: dict[bytes, tuple[int, int]] = {}
    for key, low, high in ranges:
        known = by_key.get(key)
        if known is not None:
            low, high = min(low, known[0]), max(high, known[1])
        by_key[key] = max(low, MIN_TIME_NS), min(high, FOREVER)
    return by_key


def _select_rows(
    rows: MessageRows, batch: PendingBatch, key_range: tuple[int, int]
) -> Sequence[int]:
    """Return the indices of a batch's messages, in order of arrival.

    Args:
        rows: the messages of many batches.
        batch: the batch.
        key_range: the range of times for which the messages of the batch's key were looked up.
    """
    arrivals, times = rows.arrivals, rows.times
    first, last = rows.bounds.get(batch.key, (0, 0))
    if batch.since is not None:
        first = bisect_left(arrivals, batch.since, first, last)
    if batch.until is not None:
        last = bisect_right(arrivals, batch.until, first, last)
    indices: Sequence[int] = range(first, last)
    low, high = batch.low, batch.high
    if key_range != (low, high):
        indices = [index for index in indices if low <= times[index] <= high]
    if batch.only is not None:
        indices = [index for index in indices if arrivals[index] in batch.only]
    if batch.excluded:
        indices = _exclude(rows, indices, batch.excluded)
    if batch.arrivals is not None:
        first, last = batch.arrivals
        # Its count tells whether there are others, unless it counts messages that are not here.
        is_partial = batch.snapshot is not None or (batch.since or 0) > first
        if is_partial or len(indices) > batch.count:
            indices = [index for index in indices if first <= arrivals[index] <= last]
    for low, high, first, last in batch.excluded_ranges:
        indices = [
            index
            for index in indices
            if not (low <= times[index] <= high and first <= arrivals[index] <= last)
        ]
    return indices


def _exclude(rows: MessageRows, indices: Sequence[int], excluded: set[int]) -> Sequence[int]:
    """Return indices without those of messages with excluded arrival numbers."""
    return [index for index in indices if rows.arrivals[index] not in excluded]


def emit_batches(
    queue: EmitQueue,
    reader: BatchReader,
    closed_sessions: ClosedSessions,
    having: HavingFilter | None,
    counters: Counters,
    batch_emissions: bool,
    retractor: Retractor | None = None,
) -> Generator[Emission, None, tuple[ClosedWindow, ...]]:
    """Emit the batches of a micro-batch, and count them.

    Args:
        queue: the queued batches.
        reader: makes emissions of them.
        closed_sessions: closed sessions that were kept as columns; they are merged in.
        having: suppresses batches for which it is not true; None to emit all.
        counters: the shard's.
        batch_emissions: emit runs of batches (`EmissionBatch`) where there is nothing to merge.
        retractor: takes back earlier results; None to take back none.

    Returns:
        The first closed windows, for the status.
    """
    closed: list[ClosedWindow] = []
    if batch_emissions and having is None and not queue.batches and not queue.per_event_batches:
        for run in closed_sessions.iterate_batches():
            sizes = run.groups.sizes
            counters.emitted_windows += len(sizes)
            counters.emitted_messages += sum(sizes)
            shown = zip(run.ends, sizes, run.reasons, run.starts, run.keys, strict=True)
            closed += [
                ClosedWindow(end, size, reason, start, format_shown_key(key))
                for end, size, reason, start, key in islice(shown, _MAX_CLOSED_SHOWN - len(closed))
            ]
            yield run
        return tuple(closed)
    for emission in _iterate_in_order(queue, reader, closed_sessions):
        messages = emission.messages
        count = messages.size if isinstance(messages, AggregatedGroup) else len(messages)
        if emission.reason == "empty":
            count = 0  # what stands in for messages is none
        is_emitted = having is None or having.should_emit(messages)
        if retractor is not None:
            for retraction, (start, end) in retractor.retract(emission, is_emitted):
                if len(closed) < _MAX_CLOSED_SHOWN:
                    shown_key = format_shown_key(retraction.key)
                    closed.append(ClosedWindow(end, 0, "retracted", start, shown_key))
                yield retraction
        if not is_emitted:
            counters.suppressed += count
            continue
        counters.emitted_windows += 1
        counters.emitted_messages += count
        if emission.end is not None and len(closed) < _MAX_CLOSED_SHOWN:
            shown_key = format_shown_key(emission.key)
            window = ClosedWindow(emission.end, count, emission.reason, emission.start, shown_key)
            closed.append(window)
        yield emission
    return tuple(closed)


def _iterate_in_order(
    queue: EmitQueue, reader: BatchReader, closed_sessions: ClosedSessions
) -> Iterator[Emission]:
    """Give the emissions of all batches in their order."""
    batches, per_event = queue.batches, queue.per_event_batches
    if not batches and not per_event:
        yield from closed_sessions.iterate_emissions()
        return
    if per_event and not batches:
        yield from reader.iterate_per_event(per_event)
        return
    # Aggregated windows and others alternate.
    batches += [to_pending_batch(batch) for batch in per_event]
    batches.sort(key=attrgetter("order"))
    emissions = reader.iterate_emissions(batches)
    if len(closed_sessions):
        closed = (closed_sessions.iterate_orders(), closed_sessions.iterate_emissions())
        emissions = merge(emissions, zip(*closed, strict=True), key=itemgetter(0))
    for _, emission in emissions:
        yield emission
