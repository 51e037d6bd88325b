"""Stage 1 before a window buffer: read a piece, run the input's processors, pack by shard and pane.

Rows of packs go through the shuffle to the shards. Besides the kernel's rows there are two kinds of
ours: what stage 1 logs, counts and times, which stage 2 passes on to the driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import NamedTuple

from streamer.bloblang import compile_mapping
from streamer.core.component_stats import ComponentStats
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.core.timestamps import parse_event_time
from streamer.engine.planner.planner_channels import FROM_THE_START, AggregatesFrom
from streamer.engine.report.batch_work import BEFORE_WINDOWS, TaskWork
from streamer.engine.report.component_errors import attribute_iteration_errors
from streamer.engine.report.result_frame import FrameKind
from streamer.engine.report.running_clock import RunningClock
from streamer.engine.report.stream_metrics import EVENT_TIME
from streamer.engine.stage.clock_sources import name_clock_source, takes_label
from streamer.engine.stage.crash_search import make_crash_search
from streamer.engine.stage.task_input import (
    PieceReader,
    SourcePiece,
    TaskPlan,
    run_chunk,
)
from streamer.plan import Plan
from streamer.plan.buffer_chain import find_readers
from streamer.plan.buffer_mappings import make_buffer_mappings
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.input.replayable import Chunk, LineMessages, RawMessages
from streamer.sdk.processing import Processor
from streamer.window import MicroBatchInfo, Packer, RowKind, ShuffleRow
from streamer.window.aggregate.partial_aggregates import aggregation_for
from streamer.window.evaluate.message_slots import PieceOrigin
from streamer.window.evaluate.queries import CompiledMapping
from streamer.window.fire.source_clocks import SOURCE_SEPARATOR
from streamer.window.settings.window import Window

REPORT_ROWS = {
    FrameKind.LOG: 100,
    FrameKind.COUNT: 101,
    FrameKind.TIMING: 102,
    FrameKind.SAMPLE: 103,
    FrameKind.SPAN: 104,
    FrameKind.WORK: 105,
    FrameKind.TASK_TIME: 106,
    FrameKind.FAILED: 107,
}
"""Row kinds of the engine, beyond those of the kernel, by the frames that they become."""


def make_clock_rows(
    plan: Plan, reading: MicroBatchInfo, sources: Mapping[int, tuple[str, ...]] | None = None
) -> Iterator[ShuffleRow]:
    """Return the rows that tell every shard behind the input what time it is.

    Args:
        plan: the stream's.
        reading: what they are told.
        sources: by the number of the buffer, what its clock waits for; None where none waits.
    """
    for number in find_readers(plan, None) or (0,):
        info = replace(reading, sources=sources[number]) if sources else reading
        for shard in range(plan.shards * number, plan.shards * (number + 1)):
            yield info.to_row(shard)


def split_task_plan(task_plan: TaskPlan) -> dict[int, TaskPlan]:
    """Return the plans of the buffers behind the input, by number: of one buffer, its own."""
    numbers = find_readers(task_plan.plan, None)
    return {number: task_plan.of_buffer(number) for number in numbers} or {0: task_plan}


def make_packer(
    task_plan: TaskPlan,
    origin: PieceOrigin,
    aggregates_from: AggregatesFrom = FROM_THE_START,
    timestamp: CompiledMapping | None = None,
) -> Packer:
    """Return the packer of a piece for the windows of a plan.

    Args:
        task_plan: the plan of one buffer.
        origin: of the piece.
        aggregates_from: which windows aggregate, as the micro-batch's offset says.
        timestamp: gives the event times in the place of the config's mapping.
    """
    plan, window = task_plan.plan, task_plan.plan.window
    assert window is not None
    aggregation = None
    text = task_plan.packed_aggregation
    if text is not None and aggregates_from.identity in (None, task_plan.aggregation_identity):
        aggregation = aggregation_for(text)
    mappings = make_buffer_mappings(plan, timestamp, origin.kind == RowKind.RIGHT)
    keep_dropped, after = plan.late_output is not None, aggregates_from.after
    return Packer(
        *(window, plan.shards, mappings, origin, keep_dropped, aggregation, after),
        columns=task_plan.column_mode,
    )


class _Target(NamedTuple):
    """A buffer behind the input: the plan of it, its first shard, and whether it follows others.

    A join may have one side behind the input, and another one behind windows.
    """

    task_plan: TaskPlan
    first_shard: int
    follows_windows: bool = False


class _TargetPacker(NamedTuple):
    """The packer of a buffer for one piece, and what counts the buffer's messages."""

    packer: Packer
    tally: ComponentStats
    first_shard: int

    def take_rows(self) -> Iterable[ShuffleRow]:
        """Take the rows that are finished, as they are numbered among those of all buffers."""
        return self._number(self.packer.take_rows())

    def flush_rows(self) -> Iterable[ShuffleRow]:
        """Return all rows that are left."""
        return self._number(self.packer.flush_rows())

    def _number(self, rows: Iterable[ShuffleRow]) -> Iterable[ShuffleRow]:
        first = self.first_shard
        return (row._replace(shard=row.shard + first) for row in rows) if first else rows


class PackStage:
    """The stage, built once for a task."""

    def __init__(self, task_plan: TaskPlan) -> None:
        """Take the plan of a stream with windows."""
        self._task_plan = task_plan
        self._plan = plan = task_plan.plan
        self._reader = PieceReader(task_plan, plan.context())
        self._targets = [
            _Target(
                one,
                plan.shards * number,
                bool(plan.buffers and plan.buffers[number].sources),
            )
            for number, one in split_task_plan(task_plan).items()
        ]
        self._report_shard = self._targets[0].first_shard

    def rows(
        self, piece: SourcePiece, batch_time: int, aggregates_from: AggregatesFrom = FROM_THE_START
    ) -> Iterator[ShuffleRow]:
        """Read one piece of a source and pack its messages.

        Args:
            piece: the piece.
            batch_time: the micro-batch's time, ns.
            aggregates_from: which windows aggregate, as the micro-batch's offset says.

        Raises:
            StreamerError: the windows join two inputs, and the piece is from neither.
        """
        packed = self._pack(piece, batch_time, aggregates_from)
        buffer = self._targets[0].task_plan.plan.buffer
        return attribute_iteration_errors(packed, ComponentRef(buffer).fields)

    def _pack(
        self, piece: SourcePiece, batch_time: int, aggregates_from: AggregatesFrom
    ) -> Iterator[ShuffleRow]:
        plan = self._plan
        task = self._task_plan.begin_report(plan.input)
        ex = task.execution
        ex.crashes = make_crash_search(piece.number, piece.first_arrival)
        opened = self._reader.open_piece(piece, task)
        processors = opened.processors
        packers = [
            self._make_packer(one, piece, opened.label, ex, aggregates_from)
            for one in self._targets
            if _takes_input(one, opened.label, bool(plan.buffers))
        ]
        packing = _Packing(
            [one.packer for one in packers], processors, ex, batch_time, piece.first_arrival
        )
        packing.note_columns()
        watched = bool(processors) and _may_expire(self._targets)
        with packing.clock.measure() if watched else nullcontext():
            for chunk in opened.chunks:
                taken, batches = packing.add(chunk)
                for one in packers:
                    one.tally.received += taken
                    one.tally.batches_received += batches
                    yield from one.take_rows()
        for one in packers:
            yield from one.flush_rows()
        shard = self._report_shard
        if watched and packing.work:
            work_body = TaskWork(BEFORE_WINDOWS, packing.work, 0).to_json()
            yield ShuffleRow(shard, REPORT_ROWS[FrameKind.WORK], 0, piece.number, work_body)
        timed = self._targets[0].task_plan.plan
        _note_event_time(timed, packing.newest_message, batch_time, ex)
        for kind, body in task.frames():
            # Nobody waits for what is kept in a window.
            if kind in REPORT_ROWS:
                yield ShuffleRow(shard, REPORT_ROWS[kind], 0, piece.number, body)

    def _make_packer(
        self,
        target: _Target,
        piece: SourcePiece,
        label: str,
        ex: Execution,
        aggregates_from: AggregatesFrom,
    ) -> _TargetPacker:
        plan, window = target.task_plan.plan, target.task_plan.plan.window
        assert window is not None
        row_kind = _row_kind_of(label, window)
        partition = piece.partition.encode()
        if clock_source := name_clock_source(target.task_plan, piece):
            partition += SOURCE_SEPARATOR + clock_source.encode()
        origin = PieceOrigin(piece.first_arrival, partition, row_kind, target.follows_windows)
        packer = make_packer(target.task_plan, origin, aggregates_from)
        return _TargetPacker(packer, ex.stats_of(ComponentRef(plan.buffer).key), target.first_shard)


def _may_expire(targets: Iterable[_Target]) -> bool:
    """Return whether windows of a buffer may expire."""
    windows = [one.task_plan.plan.window for one in targets]
    return any(window is not None and window.expire_delay is not None for window in windows)


def _takes_input(target: _Target, label: str, is_one_of_several: bool) -> bool:
    """Return whether a buffer takes the messages of the input of a label.

    A join alone takes both of its inputs, and refuses others.
    """
    window = target.task_plan.plan.window
    return not is_one_of_several or window is None or takes_label(window, label)


def _row_kind_of(label: str, window: Window) -> RowKind:
    """Return the kind of rows that messages of the input of a label go in."""
    if (join := window.join) is None:
        return RowKind.PACK
    if label not in (join.left, join.right):
        origin_text = f"of the input {label!r}" if label else "of an input without a label"
        raise StreamerError(
            f"a join of {join.left} and {join.right} got messages {origin_text}; expected "
            "those two: correct the label"
        )
    return RowKind.RIGHT if label == join.right else RowKind.PACK


class _Packing:
    """Takes the messages of one piece to the packers of all buffers behind the input.

    Attributes:
        clock: measures the processors while somebody lets it run.
        work: how long processors have worked by that clock, ns.
    """

    def __init__(
        self,
        packers: Sequence[Packer],
        processors: Sequence[Processor],
        ex: Execution,
        batch_time: int,
        arrival: int,
    ) -> None:
        self._packers = packers
        self._processors = processors
        self._ex = ex
        self._batch_time = batch_time
        # In the mappings of the buffer, now() is the micro-batch's time.
        self._batch_ex = Execution(lambda: batch_time, ex.log, ex.count)
        self._arrival = arrival
        self.clock = RunningClock()
        self.work = 0
        self._newest: Message | RawMessages | None = None

    def add(self, chunk: Chunk) -> tuple[int, int]:
        """Process and pack a chunk; return how many messages and batches the buffer gets."""
        batch_time, batch_ex = self._batch_time, self._batch_ex
        if isinstance(chunk, RawMessages) and not self._processors:
            taken = batches = len(chunk)
            self._newest = chunk if taken else self._newest
            raws = chunk.lines if isinstance(chunk, LineMessages) else chunk.raws
            for packer in self._packers:
                packer.add_raws(raws, chunk.meta, self._arrival, batch_time, batch_ex)
            self.note_columns()
            if self._ex.read_counter is not None:
                self._ex.read_counter.add(taken)
        else:
            began = self.clock.mark()
            made = list(run_chunk(self._processors, chunk, self._ex))
            self.work += self.clock.since(began)
            messages = [message for batch in made for message in batch]
            for packer in self._packers:
                packer.add_messages(messages, self._arrival, batch_time, batch_ex)
            self._newest = messages[-1] if messages else self._newest
            taken, batches = len(messages), len(made)
        self._arrival += taken
        return taken, batches

    def note_columns(self) -> None:
        """Note whether lines are best taken uncut."""
        packers = self._packers
        self._ex.reads_columns = not self._processors and all(one.reads_columns for one in packers)

    @property
    def newest_message(self) -> Message | None:
        """The last message; None without any."""
        if isinstance(newest := self._newest, RawMessages):
            raws = newest.lines if isinstance(newest, LineMessages) else newest.raws
            return Message(raws[-1], newest.meta)
        return newest


def _note_event_time(plan: Plan, newest: Message | None, batch_time: int, ex: Execution) -> None:
    """Note the event time of the last message of a piece: by it, one sees how far a stream lags.

    Times of all messages are known in blocks only, and not to the instant where panes are enough.
    """
    assert plan.window is not None
    if newest is None or newest.error is not None or plan.window.count_based or not plan.timestamp:
        return
    with suppress(Exception):  # it was dropped for that already, and the log says so
        time = parse_event_time(
            compile_mapping(plan.timestamp).query([newest], 0, Execution(lambda: batch_time))
        )
        ex.custom_metrics.keep_max(EVENT_TIME, {}, time)
