"""Inputs that read others, message by message in their order: it is done on the driver, once.

What they make of what they read goes into a store, together with how far that was, so that after a
crash they go on exactly there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from streamer.connectors.spool.blocks import Record, pack_batch, pack_each
from streamer.core.execution import Execution
from streamer.core.message import NO_META, Batch, Message
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.input.replayable import Chunk, Limit, Offset, RawMessages, ReplayableSource
from streamer.sdk.sync_response import REQUEST

READ_LIMIT: Final = Limit(messages=10_000, size=4 << 20)
"""The most that is read and spooled at a time."""

POLL_INTERVAL_S: Final = 0.05
"""Seconds between two looks at a source that has nothing."""


def read_until_end(
    context: InputContext,
    source: ReplayableSource,
    at: Offset,
    take: Callable[[Offset, Offset], bool],
    on_idle: Callable[[], bool] = lambda: False,
) -> bool:
    """Read an opened source until it ends.

    Args:
        context: the input's.
        source: what is read.
        at: where to go on.
        take: takes what lies between two offsets; True to read no more.
        on_idle: is asked now and then while there is nothing; True to read no more.

    Returns:
        Whether the source has ended; else the stream stops, or nothing more is wanted.
    """
    while not context.stopping:
        latest = source.latest_offset(at, time.time_ns(), READ_LIMIT)
        moved = latest.offset != at
        if moved:
            if take(at, latest.offset):
                return False
            at = latest.offset
        if latest.is_ended:
            return True
        if not moved:
            if on_idle():
                return False
            context.wait(POLL_INTERVAL_S)
    return False


def chunks_between(
    source: ReplayableSource, start: Offset, end: Offset, ex: Execution
) -> Iterator[Chunk]:
    """Return what lies between two offsets, in order."""
    for piece in source.split(start, end, 1):
        yield from source.read(piece, ex)


def batches_of_chunk(chunk: Chunk) -> list[Batch]:
    """Return the batches of a chunk."""
    if isinstance(chunk, RawMessages):
        return [[Message(raw, chunk.meta)] for raw in chunk.raws]
    return chunk


def records_of_batches(batches: Iterable[Batch]) -> list[Record]:
    """Return the records of batches; messages that share their metadata become one.

    Requests that their messages came with go on waiting.
    """
    records: list[Record] = []
    raws: list[bytes] = []
    meta: Mapping[str, Any] = NO_META

    def flush() -> None:
        if raws:
            records.append(pack_each(list(raws), meta, str(meta.get(REQUEST, ""))))
            raws.clear()

    for one in batches:
        first = one[0]
        if len(one) > 1 or first.error is not None:
            flush()
            records.append(pack_batch(one, _request_ids(one)))
            continue
        if first.meta is not meta:
            flush()
            meta = first.meta
        raws.append(first.raw)
    flush()
    return records


def _request_ids(batch: Batch) -> str:
    requests = (message.meta.get(REQUEST) for message in batch)
    return "\n".join(dict.fromkeys(str(one) for one in requests if one))


def make_execution(context: InputContext, counters: dict[str, int] | None = None) -> Execution:
    """Return a run on the driver; `counters` are those of Bloblang's `count()`."""
    ex = Execution(time.time_ns, context.log, context.count, sleep=lambda ns: _wait_ns(context, ns))
    if counters is not None:
        ex.counters = counters
    return ex


def _wait_ns(context: InputContext, ns: int) -> None:
    context.wait(ns / 1e9)


def report_stats(context: InputContext, ex: Execution) -> None:
    """Add what components have done in a run to the stream's counters, and begin anew."""
    tallies, ex.component_stats = ex.component_stats, {}
    for (begins, label, path), tally in tallies.items():
        for name, by in tally.iter_counts():
            context.count(f"{begins}_{name}", by, label=label, path=path)
