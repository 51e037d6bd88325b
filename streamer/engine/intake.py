"""Stage 1 before a window buffer: read a piece, run the input's processors, pack by shard and pane.

Rows of packs go through the shuffle to the shards. Besides the kernel's rows there are two kinds of
ours: what stage 1 logs, counts and times, which stage 2 passes on to the driver.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from typing import Any

from streamer.bloblang import compile_mapping
from streamer.bloblang.folding import Fold
from streamer.engine.blame import blaming
from streamer.engine.crash_search import piece_crashes
from streamer.engine.feed import feed, seen
from streamer.engine.folding import FROM_THE_START, FoldedSince
from streamer.engine.frame import FrameKind
from streamer.engine.meters import EVENT_TIME
from streamer.engine.running_clock import RunningClock
from streamer.engine.spans import Tracing
from streamer.engine.task import Task
from streamer.engine.work import BEFORE_WINDOWS, TaskWork
from streamer.errors import StreamerError
from streamer.failure import Origin
from streamer.message import Execution, Message
from streamer.plan import Plan
from streamer.plan.origins import inner_inputs, origin_of
from streamer.source.replayable import Raws, Readable
from streamer.timestamps import parse_event_time
from streamer.window import Kind, Packer, Reading, Row
from streamer.window.event import EventWindow
from streamer.window.event_packer import Asked, EventPacker
from streamer.window.folds.groups import fold_for
from streamer.window.kinds import Count, Join
from streamer.window.row import PIECE_BITS
from streamer.window.system import SystemWindow
from streamer.window.words import AnyWindow

SAID_ROWS = {
    FrameKind.LOG: 100,
    FrameKind.COUNT: 101,
    FrameKind.TIMING: 102,
    FrameKind.SAMPLE: 103,
    FrameKind.SPAN: 104,
    FrameKind.WORK: 105,
}
"""Row kinds of the engine, beyond those of the kernel, by the frames that they become."""


def clock_rows(plan: Plan, reading: Reading) -> Iterator[Row]:
    """Return the rows that tell every shard what time it is."""
    for shard in range(plan.shards):
        yield reading.row(shard)


def pack_piece(
    plan: Plan,
    source: Readable,
    number: int,
    piece: Any,
    t: int,
    folded: FoldedSince = FROM_THE_START,
    partition: str = "",
    label: str = "",
    arrival: int | None = None,
) -> Iterator[Row]:
    """Read one piece of a source and pack its messages.

    Args:
        plan: the stream's plan.
        source: where the piece is from.
        number: its place among the pieces of the micro-batch, from 0.
        piece: what the source made in `split`.
        t: the micro-batch's time, ns.
        folded: which windows fold, as the micro-batch's offset says.
        partition: names the source's partition that the piece is from.
        label: of the input that the piece is from, where the piece does not know it.
        arrival: the number of the first message's arrival; by that of the piece when it is None.

    Raises:
        StreamerError: the windows join two inputs, and the piece is from neither.
    """
    packed = _packed(plan, source, number, piece, t, folded, partition, label, arrival)
    return blaming(packed, Origin(plan.buffer).fields)


def _packed(
    plan: Plan,
    source: Readable,
    number: int,
    piece: Any,
    t: int,
    folded: FoldedSince,
    partition: str,
    label: str,
    arrival: int | None,
) -> Iterator[Row]:
    assert plan.window is not None
    fold = None
    early = not isinstance(plan.window, EventWindow) or plan.window.way == "panes"
    if early and plan.folding.text is not None and folded.identity in (None, plan.folding.identity):
        fold = fold_for(plan.folding.text)
    tracing = Tracing("input", Origin(plan.input).fields, time.time_ns()) if plan.traced else None
    task = Task(plan.level, strict=plan.strict, live=plan.live, tracing=tracing, limits=plan.limits)
    ex = task.execution
    # In the mappings of the buffer, now() is the micro-batch's time.
    at_t = Execution(lambda: t, ex.log, ex.count)
    origin = origin_of(plan.input, piece, plan.resources)
    processors = plan.context().all(origin.processors)
    side = _side(plan.window, label or origin.label)
    arrival = number << PIECE_BITS if arrival is None else arrival
    packer = _packer(plan, arrival, partition, fold, folded.after, side)
    tally = ex.tally(Origin(plan.buffer).key)
    newest: Message | None = None
    clock, work = RunningClock(), 0
    watched = bool(processors) and isinstance(plan.window, SystemWindow)
    inner = [*inner_inputs(plan.input, piece, plan.resources)]
    given = seen(source.read(piece, ex), plan.input, ex, inner)
    chunks = blaming(given, Origin(plan.input).fields)
    ex.crashes = piece_crashes(number, arrival)
    if ex.crashes is not None:
        chunks = ex.crashes.until_end(chunks)
    with clock.timed() if watched else nullcontext():
        for chunk in chunks:
            if tracing is not None:
                tracing.heed(chunk)
            if isinstance(chunk, Raws) and not processors:
                if chunk.raws:
                    newest = Message(chunk.raws[-1], chunk.meta)
                packer.add_raws(chunk.raws, chunk.meta, arrival, t, at_t)
                taken = batches = len(chunk.raws)
                if ex.reading is not None:
                    ex.reading.add(taken)
            else:
                began = clock.mark()
                made = list(feed(processors, chunk, ex))
                work += clock.since(began) if watched else 0
                messages = [message for batch in made for message in batch]
                packer.add_messages(messages, arrival, t, at_t)
                newest = messages[-1] if messages else newest
                taken, batches = len(messages), len(made)
            arrival += taken
            tally.received += taken
            tally.batches_received += batches
            yield from packer.ready()
    yield from packer.rows()
    if work:
        said = TaskWork(BEFORE_WINDOWS, work, 0).body()
        yield Row(0, SAID_ROWS[FrameKind.WORK], 0, number, said)
    _note_time(plan, newest, t, ex)
    for kind, body in task.said():
        # Nobody waits for what is kept in a window.
        if kind in SAID_ROWS:
            yield Row(0, SAID_ROWS[kind], 0, number, body)


def _note_time(plan: Plan, newest: Message | None, t: int, ex: Execution) -> None:
    """Note the event time of the last message of a piece: by it, one sees how far a stream lags.

    Times of all messages are known in blocks only, and not to the instant where panes are enough.
    """
    window = plan.window
    timeless = isinstance(window, EventWindow) and isinstance(window.kind, Count)
    if newest is None or newest.error is not None or timeless or not plan.timestamp:
        return
    with suppress(Exception):  # it was dropped for that already, and the log says so
        time = parse_event_time(
            compile_mapping(plan.timestamp).query([newest], 0, Execution(lambda: t))
        )
        ex.figures.peak(EVENT_TIME, {}, time)


def _side(window: AnyWindow, label: str) -> Kind:
    """Return the kind of rows that an input's messages go in."""
    if not isinstance(window, EventWindow) or not isinstance(window.kind, Join):
        return Kind.PACK
    join = window.kind
    if label not in (join.left, join.right):
        found = f"of the input {label!r}" if label else "of an input without a label"
        raise StreamerError(
            f"a window_join of {join.left} and {join.right} got messages {found}; expected those "
            "two: correct the label"
        )
    return Kind.RIGHT if label == join.right else Kind.PACK


def _packer(
    plan: Plan,
    arrival: int,
    partition: str,
    fold: Fold | None,
    folds_after: int | None,
    side: Kind,
) -> Packer | EventPacker:
    window, key = plan.window, plan.key.compiled() if plan.key else None
    keep_dropped = plan.late_output is not None
    if isinstance(window, EventWindow):
        asked = Asked(
            compile_mapping(plan.timestamp) if plan.timestamp else None,
            key,
            compile_mapping(plan.filter) if plan.filter else None,
        )
        return EventPacker(
            window,
            plan.shards,
            asked,
            arrival,
            partition.encode(),
            keep_dropped=keep_dropped,
            fold=fold,
            folds_after=folds_after,
            kind=side,
        )
    assert window is not None
    timestamp = compile_mapping(plan.timestamp)
    return Packer(window, plan.shards, timestamp, key, keep_dropped, fold, folds_after)
