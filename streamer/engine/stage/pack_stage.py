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
from streamer.bloblang.analysis.pre_aggregation import PreAggregation
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.core.timestamps import parse_event_time
from streamer.engine.planner.aggregation_switch import FROM_THE_START, AggregatesFrom
from streamer.engine.report.batch_work import BEFORE_WINDOWS, TaskWork
from streamer.engine.report.component_errors import attribute_iteration_errors
from streamer.engine.report.result_frame import FrameKind
from streamer.engine.report.running_clock import RunningClock
from streamer.engine.report.spans import TaskTrace
from streamer.engine.report.stream_metrics import EVENT_TIME
from streamer.engine.report.task_report import TaskReport
from streamer.engine.stage.crash_search import make_crash_search
from streamer.engine.stage.run_chunk import observe_input, run_chunk
from streamer.plan import Plan
from streamer.plan.piece_input import inner_inputs, input_of_piece
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.input.replayable import RawMessages, ReadableSource
from streamer.window import MicroBatchInfo, RowKind, ShuffleRow, SystemWindowPacker
from streamer.window.aggregate.partial_aggregates import aggregation_for
from streamer.window.assign.event_packer import BufferMappings, EventPacker
from streamer.window.contract.shuffle_row import PIECE_BITS
from streamer.window.settings.describe import AnyWindow
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.system_window import SystemWindow
from streamer.window.settings.window_types import Count, Join

REPORT_ROWS = {
    FrameKind.LOG: 100,
    FrameKind.COUNT: 101,
    FrameKind.TIMING: 102,
    FrameKind.SAMPLE: 103,
    FrameKind.SPAN: 104,
    FrameKind.WORK: 105,
}
"""Row kinds of the engine, beyond those of the kernel, by the frames that they become."""


def make_clock_rows(plan: Plan, reading: MicroBatchInfo) -> Iterator[ShuffleRow]:
    """Return the rows that tell every shard what time it is."""
    for shard in range(plan.shards):
        yield reading.to_row(shard)


def pack_piece(
    plan: Plan,
    source: ReadableSource,
    number: int,
    piece: Any,
    batch_time: int,
    aggregates_from: AggregatesFrom = FROM_THE_START,
    partition: str = "",
    label: str = "",
    arrival: int | None = None,
) -> Iterator[ShuffleRow]:
    """Read one piece of a source and pack its messages.

    Args:
        plan: the stream's plan.
        source: where the piece is from.
        number: its place among the pieces of the micro-batch, from 0.
        piece: what the source made in `split`.
        batch_time: the micro-batch's time, ns.
        aggregates_from: which windows fold, as the micro-batch's offset says.
        partition: names the source's partition that the piece is from.
        label: of the input that the piece is from, where the piece does not know it.
        arrival: the number of the first message's arrival; by that of the piece when it is None.

    Raises:
        StreamerError: the windows join two inputs, and the piece is from neither.
    """
    packed = _pack(
        plan, source, number, piece, batch_time, aggregates_from, partition, label, arrival
    )
    return attribute_iteration_errors(packed, ComponentRef(plan.buffer).fields)


def _pack(
    plan: Plan,
    source: ReadableSource,
    number: int,
    piece: Any,
    batch_time: int,
    aggregates_from: AggregatesFrom,
    partition: str,
    label: str,
    arrival: int | None,
) -> Iterator[ShuffleRow]:
    assert plan.window is not None
    pre_aggregation = None
    early = not isinstance(plan.window, EventWindow) or plan.window.strategy == "panes"
    if (
        early
        and plan.aggregation.text is not None
        and aggregates_from.identity in (None, plan.aggregation.identity)
    ):
        pre_aggregation = aggregation_for(plan.aggregation.text)
    tracing = (
        TaskTrace("input", ComponentRef(plan.input).fields, time.time_ns()) if plan.traced else None
    )
    task = TaskReport(
        plan.level,
        strict=plan.strict,
        log_address=plan.task_log_address,
        tracing=tracing,
        limits=plan.limits,
    )
    ex = task.execution
    # In the mappings of the buffer, now() is the micro-batch's time.
    batch_ex = Execution(lambda: batch_time, ex.log, ex.count)
    origin = input_of_piece(plan.input, piece, plan.resources)
    processors = plan.context().build_all(origin.processors)
    row_kind = _row_kind(plan.window, label or origin.label)
    arrival = number << PIECE_BITS if arrival is None else arrival
    packer = _make_packer(
        plan, arrival, partition, pre_aggregation, aggregates_from.after, row_kind
    )
    tally = ex.stats_of(ComponentRef(plan.buffer).key)
    newest: Message | None = None
    clock, work = RunningClock(), 0
    watched = bool(processors) and isinstance(plan.window, SystemWindow)
    inner = [*inner_inputs(plan.input, piece, plan.resources)]
    given = observe_input(source.read(piece, ex), plan.input, ex, inner)
    chunks = attribute_iteration_errors(given, ComponentRef(plan.input).fields)
    ex.crashes = make_crash_search(number, arrival)
    if ex.crashes is not None:
        chunks = ex.crashes.raise_at_end(chunks)
    with clock.measure() if watched else nullcontext():
        for chunk in chunks:
            if tracing is not None:
                tracing.add_links(chunk)
            if isinstance(chunk, RawMessages) and not processors:
                if chunk.raws:
                    newest = Message(chunk.raws[-1], chunk.meta)
                packer.add_raws(chunk.raws, chunk.meta, arrival, batch_time, batch_ex)
                taken = batches = len(chunk.raws)
                if ex.read_counter is not None:
                    ex.read_counter.add(taken)
            else:
                began = clock.mark()
                made = list(run_chunk(processors, chunk, ex))
                work += clock.since(began) if watched else 0
                messages = [message for batch in made for message in batch]
                packer.add_messages(messages, arrival, batch_time, batch_ex)
                newest = messages[-1] if messages else newest
                taken, batches = len(messages), len(made)
            arrival += taken
            tally.received += taken
            tally.batches_received += batches
            yield from packer.take_rows()
    yield from packer.flush_rows()
    if work:
        work_body = TaskWork(BEFORE_WINDOWS, work, 0).to_json()
        yield ShuffleRow(0, REPORT_ROWS[FrameKind.WORK], 0, number, work_body)
    _note_event_time(plan, newest, batch_time, ex)
    for kind, body in task.frames():
        # Nobody waits for what is kept in a window.
        if kind in REPORT_ROWS:
            yield ShuffleRow(0, REPORT_ROWS[kind], 0, number, body)


def _note_event_time(plan: Plan, newest: Message | None, batch_time: int, ex: Execution) -> None:
    """Note the event time of the last message of a piece: by it, one sees how far a stream lags.

    Times of all messages are known in blocks only, and not to the instant where panes are enough.
    """
    window = plan.window
    timeless = isinstance(window, EventWindow) and isinstance(window.kind, Count)
    if newest is None or newest.error is not None or timeless or not plan.timestamp:
        return
    with suppress(Exception):  # it was dropped for that already, and the log says so
        time = parse_event_time(
            compile_mapping(plan.timestamp).query([newest], 0, Execution(lambda: batch_time))
        )
        ex.custom_metrics.keep_max(EVENT_TIME, {}, time)


def _row_kind(window: AnyWindow, label: str) -> RowKind:
    """Return the kind of rows that an input's messages go in."""
    if not isinstance(window, EventWindow) or not isinstance(window.kind, Join):
        return RowKind.PACK
    join = window.kind
    if label not in (join.left, join.right):
        origin_text = f"of the input {label!r}" if label else "of an input without a label"
        raise StreamerError(
            f"a window_join of {join.left} and {join.right} got messages {origin_text}; expected "
            "those two: correct the label"
        )
    return RowKind.RIGHT if label == join.right else RowKind.PACK


def _make_packer(
    plan: Plan,
    arrival: int,
    partition: str,
    pre_aggregation: PreAggregation | None,
    aggregates_after: int | None,
    row_kind: RowKind,
) -> SystemWindowPacker | EventPacker:
    window, key = plan.window, plan.key.compile() if plan.key else None
    keep_dropped = plan.late_output is not None
    if isinstance(window, EventWindow):
        mappings = BufferMappings(
            compile_mapping(plan.timestamp) if plan.timestamp else None,
            key,
            compile_mapping(plan.filter) if plan.filter else None,
        )
        return EventPacker(
            window,
            plan.shards,
            mappings,
            arrival,
            partition.encode(),
            keep_dropped=keep_dropped,
            aggregation=pre_aggregation,
            aggregates_after=aggregates_after,
            kind=row_kind,
        )
    assert window is not None
    timestamp = compile_mapping(plan.timestamp)
    return SystemWindowPacker(
        window, plan.shards, timestamp, key, keep_dropped, pre_aggregation, aggregates_after
    )
