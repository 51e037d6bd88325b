"""What folded windows come to at every event, when each of these goes on as a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from streamer.window.aggregate.mapping_aggregation import States
from streamer.window.contract.emission import Emission
from streamer.window.keyed.aggregate_batches import AggregateBatches, AggregateSnapshot
from streamer.window.keyed.message_rows import MessageRows
from streamer.window.keyed.message_store import MessageStore
from streamer.window.keyed.pending_batch import PER_EVENT, PendingBatch
from streamer.window.keyed.state import FOREVER
from streamer.window.keyed.window_aggregate import WindowAggregate
from streamer.window.pack.message_builder import DecodedMetadata

PerEventBatch = tuple[int, int, int, int, bytes, WindowAggregate, States, int, int]
"""A window at an event: the event's arrival; the window's end, first arrival, start and key; what
it is folded to, its parts' states, the largest event time, and the number of messages by then.

It is a plain tuple, and in this order, since there is one for every event, and they are sorted."""

_BATCHES_PER_PORTION: Final = 200_000
_MIN_TIME_NS: Final = -(1 << 63)


def emit_per_event(
    batches: list[PerEventBatch], store: MessageStore, keyed: bool
) -> Iterator[Emission]:
    """Give the batches, in the order of the events; the list is sorted on the way."""
    batches.sort()
    decoded: DecodedMetadata = {}
    for start in range(0, len(batches), _BATCHES_PER_PORTION):
        yield from _emit_portion(
            batches[start : start + _BATCHES_PER_PORTION], store, keyed, decoded
        )


def to_pending_batch(batch: PerEventBatch) -> PendingBatch:
    """Return the same as a batch to be, to be put in its place among others."""
    arrival, end, first, start, key, aggregate, states, newest, size = batch
    snapshot = AggregateSnapshot(aggregate, states, first, newest, size, arrival)
    place = (PER_EVENT, arrival, end, first, start)
    bounds = (start, min(end, FOREVER), start, end)
    return PendingBatch(key, *bounds, "each", place, 1, snapshot=snapshot)


def _emit_portion(
    batches: Sequence[PerEventBatch], store: MessageStore, keyed: bool, decoded: DecodedMetadata
) -> Iterator[Emission]:
    claims: dict[bytes, tuple[int, int]] = {}
    for end, _, start, key in {batch[1:5] for batch in batches}:
        low, high = claims.get(key, (start, end))
        claims[key] = (max(min(low, start), _MIN_TIME_NS), min(max(high, end), FOREVER))
    groups = AggregateBatches(MessageRows(store.find(claims)), keyed, decoded)
    emission = groups.build_emission
    for arrival, end, first, start, key, aggregate, states, newest, size in batches:
        snapshot = AggregateSnapshot(aggregate, states, first, newest, size, arrival)
        yield emission(key, (start, end), "each", snapshot)
