"""Gives the batches of a micro-batch in their order, as far as they are wanted."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from heapq import merge
from itertools import islice
from operator import attrgetter, itemgetter
from typing import Final

from streamer.window.aggregate.fire_groups import AggregatedGroup
from streamer.window.contract.emission import Emission
from streamer.window.contract.status import ClosedWindow, Counters
from streamer.window.fire.having import HavingFilter
from streamer.window.keyed.columns.closed_sessions import ClosedSessions
from streamer.window.keyed.emit_queue import EmitQueue
from streamer.window.keyed.pending_batch import BatchReader
from streamer.window.keyed.per_event_batches import emit_per_event, to_pending_batch

_MAX_CLOSED_SHOWN: Final = 16


def emit_batches(
    queue: EmitQueue,
    reader: BatchReader,
    closed_sessions: ClosedSessions,
    having: HavingFilter | None,
    counters: Counters,
    batch_emissions: bool,
) -> Generator[Emission, None, tuple[ClosedWindow, ...]]:
    """Give the batches, and count them.

    Args:
        queue: what comes out.
        reader: looks messages up.
        closed_sessions: sessions that were kept as columns; they come out in between.
        having: says which batches are wanted; None for all.
        counters: the shard's.
        batch_emissions: give runs of batches where there are some.

    Returns:
        The first windows that came out, for people to see.
    """
    closed: list[ClosedWindow] = []
    if batch_emissions and having is None and not queue.batches and not queue.per_event_batches:
        for run in closed_sessions.iterate_batches():
            sizes = [group.size for group in run.groups]
            counters.emitted_windows += len(sizes)
            counters.emitted_messages += sum(sizes)
            shown = zip(run.ends, sizes, run.reasons, strict=True)
            closed += [ClosedWindow(*one) for one in islice(shown, _MAX_CLOSED_SHOWN - len(closed))]
            yield run
        return tuple(closed)
    for emission in _iterate_in_order(queue, reader, closed_sessions):
        messages = emission.messages
        count = messages.size if isinstance(messages, AggregatedGroup) else len(messages)
        if having is not None and not having.should_emit(messages):
            counters.suppressed += count
            continue
        counters.emitted_windows += 1
        counters.emitted_messages += count
        if emission.end is not None and len(closed) < _MAX_CLOSED_SHOWN:
            closed.append(ClosedWindow(emission.end, count, emission.reason))
        yield emission
    return tuple(closed)


def _iterate_in_order(
    queue: EmitQueue, reader: BatchReader, closed_sessions: ClosedSessions
) -> Iterator[Emission]:
    """Give the batches in their order, their messages looked up."""
    batches, per_event = queue.batches, queue.per_event_batches
    if not batches and not per_event:
        yield from closed_sessions.iterate_emissions()
        return
    if per_event and not batches:
        yield from emit_per_event(per_event, reader.store, reader.keyed)
        return
    # Windows that are folded and such that are not, in between.
    batches += [to_pending_batch(batch) for batch in per_event]
    batches.sort(key=attrgetter("place"))
    if not len(closed_sessions):
        yield from reader.iterate_emissions(batches)
        return
    others = zip(closed_sessions.iterate_places(), closed_sessions.iterate_emissions(), strict=True)
    for _, emission in merge(reader.iterate_placed(batches), others, key=itemgetter(0)):
        yield emission
