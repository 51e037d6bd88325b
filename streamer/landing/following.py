"""Inputs that read others, message by message in their order: it is done on the driver, once.

What they make of what they read lands in a store, together with how far that was, so that after a
crash they go on exactly there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from streamer.answering import REQUEST
from streamer.landing.blocks import Record, batch, each
from streamer.message import NO_META, Batch, Execution, Message
from streamer.source.opening import Room
from streamer.source.replayable import Chunk, Limit, Offset, Raws, Replayable

STEP: Final = Limit(messages=10_000, size=4 << 20)
"""What is read, and lands, at a time."""

PAUSE: Final = 0.05
"""Seconds between two looks at a source that has nothing."""


def follow(
    room: Room,
    source: Replayable,
    at: Offset,
    take: Callable[[Offset, Offset], bool],
    idle: Callable[[], bool] = lambda: False,
) -> bool:
    """Read an opened source until it ends.

    Args:
        room: the input's.
        source: what is read.
        at: where to go on.
        take: takes what lies between two offsets; True to read no more.
        idle: is asked now and then while there is nothing; True to read no more.

    Returns:
        Whether the source has ended; else the stream stops, or nothing more is wanted.
    """
    while not room.stopping:
        latest = source.latest(at, time.time_ns(), STEP)
        moved = latest.offset != at
        if moved:
            if take(at, latest.offset):
                return False
            at = latest.offset
        if latest.ended:
            return True
        if not moved:
            if idle():
                return False
            room.wait(PAUSE)
    return False


def chunks_between(
    source: Replayable, start: Offset, end: Offset, ex: Execution
) -> Iterator[Chunk]:
    """Return what lies between two offsets, in order."""
    for piece in source.split(start, end, 1):
        yield from source.read(piece, ex)


def batches_of(chunk: Chunk) -> list[Batch]:
    """Return the batches of a chunk."""
    if isinstance(chunk, Raws):
        return [[Message(raw, chunk.meta)] for raw in chunk.raws]
    return chunk


def records_of(batches: Iterable[Batch]) -> list[Record]:
    """Return the records of batches; messages that share their metadata become one.

    Requests that their messages came with go on waiting.
    """
    made: list[Record] = []
    raws: list[bytes] = []
    meta: Mapping[str, Any] = NO_META

    def close() -> None:
        if raws:
            made.append(each(list(raws), meta, str(meta.get(REQUEST, ""))))
            raws.clear()

    for one in batches:
        first = one[0]
        if len(one) > 1 or first.error is not None:
            close()
            made.append(batch(one, _requests(one)))
            continue
        if first.meta is not meta:
            close()
            meta = first.meta
        raws.append(first.raw)
    close()
    return made


def _requests(batch: Batch) -> str:
    found = (message.meta.get(REQUEST) for message in batch)
    return "\n".join(dict.fromkeys(str(one) for one in found if one))


def execution(room: Room, counters: dict[str, int] | None = None) -> Execution:
    """Return a run on the driver; `counters` are those of Bloblang's `count()`."""
    ex = Execution(time.time_ns, room.log, room.count, sleep=lambda ns: _wait(room, ns))
    if counters is not None:
        ex.counters = counters
    return ex


def _wait(room: Room, ns: int) -> None:
    room.wait(ns / 1e9)


def told(room: Room, ex: Execution) -> None:
    """Add what components have done in a run to the stream's counters, and begin anew."""
    tallies, ex.tallies = ex.tallies, {}
    for (begins, label, path), tally in tallies.items():
        for name, by in tally.counts():
            room.count(f"{begins}_{name}", by, label=label, path=path)
