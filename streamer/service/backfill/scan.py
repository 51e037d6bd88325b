"""Stage 1 of a segment: its messages become packs in a file, and its clock is noted.

Where the clock on the wall closes windows, event times stand for it. A message arrives at its event
time, or with the message before where that is later. A part of a segment ends before the message
that makes a window due, as if the stream had polled its input for each message. Messages that
arrive at one instant come together, before what is due at that instant.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

from streamer.connectors.kafka.input.positions import list_kafka_ends
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.engine.offline.window_simulator import EventTimeReader
from streamer.engine.report.result_frame import FrameKind, TaskReport
from streamer.engine.stage.clock_sources import list_clock_sources
from streamer.engine.stage.pack_stage import REPORT_ROWS, PackStage, split_task_plan
from streamer.engine.stage.stateless_stage import StatelessStage
from streamer.engine.stage.task_input import PieceReader, SourcePiece, TaskPlan, run_chunk
from streamer.plan import Plan
from streamer.sdk.input.replayable import Chunk, ReplayableSource, announce_pieces
from streamer.service.backfill.capture import ResultRecorder, read_log_lines, read_received
from streamer.service.backfill.segments import Segment
from streamer.service.backfill.work_files import (
    BatchResults,
    SegmentBatch,
    SegmentFacts,
    TaskFacts,
    WorkDirectory,
    write_items,
)
from streamer.window import RowKind, ShuffleRow
from streamer.window.settings.window import Window

_MESSAGES_PER_PIECE: Final = 1 << 16


@dataclass(frozen=True)
class BackfillJob:
    """The stream of a backfill, as its tasks have it.

    Attributes:
        plan: the stream's plan.
        source: the opened input.
        work: the directory.
        batch_time: the time of micro-batches by the machine's clock, Unix ns.
        follows_events: event times stand for the clock on the wall.
        from_time: windows that end at or before it are left out, Unix ns; None for none.
        to_time: windows that end after it are left out, Unix ns; None for none.
    """

    plan: Plan
    source: ReplayableSource
    work: WorkDirectory
    batch_time: int
    follows_events: bool = False
    from_time: int | None = None
    to_time: int | None = None
    task_plan: TaskPlan = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "task_plan", TaskPlan.of(self.plan))


def scan_segment(job: BackfillJob, segment: Segment) -> SegmentFacts:
    """Pack a segment, or process it where there are no windows; return facts about it.

    Raises:
        StreamerError: the input cannot be read.
    """
    began = time.process_time()
    if job.plan.window is None:
        return _process_directly(job, segment)
    pieces = _split(job, segment)
    scan = _ClockedScan(job, segment.number == 0) if job.follows_events else _EventScan(job)
    ends = list_kafka_ends(segment.end)
    sources = {
        at: list_clock_sources(one, job.source, ends)
        for at, one in split_task_plan(job.task_plan).items()
    }
    path = job.work.packs_path(segment.number)

    def facts() -> SegmentFacts:
        seconds = time.process_time() - began
        return SegmentFacts(scan.clock, scan.messages, seconds, scan.size, sources)

    write_items(path, facts, scan.batches(pieces))
    return facts()


def _split(job: BackfillJob, segment: Segment) -> list[SourcePiece]:
    source = job.source
    contents = source.split(segment.start, segment.end, 1)
    announce_pieces(source, contents)
    return [
        SourcePiece(source, number, content, partition=source.partition_of(content))
        for number, content in enumerate(contents)
    ]


class _EventScan:
    """Packs the pieces of a segment as stage 1 does: event times move no clock but the windows'.

    Attributes:
        clock: the largest event time that was taken, ns.
        messages: how many messages there were.
        size: bytes of the rows.
    """

    def __init__(self, job: BackfillJob) -> None:
        self._job = job
        self.clock: int | None = None
        self.messages = self.size = 0

    def batches(self, pieces: Iterable[SourcePiece]) -> Iterator[SegmentBatch]:
        """Give the one micro-batch."""
        stage = PackStage(self._job.task_plan)
        rows: list[ShuffleRow] = []
        for piece in pieces:
            for row in stage.rows(piece, self._job.batch_time):
                rows.append(row)
                self.size += len(row.body)
                if row.kind == RowKind.PIECE:
                    self.clock = row.pane if self.clock is None else max(self.clock, row.pane)
        self.messages = count_read(rows)
        yield SegmentBatch(None, rows)


class _ClockedScan:
    """Packs the pieces of a segment in parts, each of which ends when a window is due."""

    def __init__(self, job: BackfillJob, is_begin: bool) -> None:
        self._job = job
        self.clock: int | None = None
        self.messages = self.size = 0
        self._is_begin = is_begin
        self._due: int | None = None
        bare = replace(job.plan, input=replace(job.plan.input, processors=()))
        self._stage = PackStage(TaskPlan.of(bare))
        self._times = EventTimeReader(job.plan)
        assert job.plan.window is not None
        self._window: Window = job.plan.window

    def batches(self, pieces: Iterable[SourcePiece]) -> Iterator[SegmentBatch]:
        """Give the parts, in order."""
        reader = PieceReader(self._job.task_plan, self._job.plan.context())
        report = self._job.task_plan.begin_report(self._job.plan.input)
        for piece in pieces:
            opened = reader.open_piece(piece, report)
            held: Batch = []
            for chunk in opened.chunks:
                for batch in run_chunk(opened.processors, chunk, report.execution):
                    for message in batch:
                        cut = self._advance(message)
                        if cut is not None or len(held) >= _MESSAGES_PER_PIECE:
                            yield self._pack(held, piece, cut)
                            held = []
                        held.append(message)
            if held:
                yield self._pack(held, piece, None)
        yield SegmentBatch(self._before_clock, [*_report_rows(report)])

    def _advance(self, message: Message) -> int | None:
        """Move the clock to a message's arrival.

        Returns:
            The time of the part that ends before the message, ns: all that is due by then closes.
            None where the part goes on.
        """
        if message.error is not None:
            return None
        before, at = self.clock, self._times.read(message, self._job.batch_time)
        if at is None or (before is not None and at <= before):
            return None
        self.clock = at
        if self._is_begin and before is not None:
            # What the first window is, the time of the first message decides.
            self._is_begin = False
            self._due = self._window.next_due_time(before)
            return before
        if before is None:
            return None if self._is_begin else at - 1
        if self._due is None or self._due < at:
            self._due = self._window.next_due_time(at - 1)
            return at - 1
        return None

    @property
    def _before_clock(self) -> int | None:
        """The instant before the clock: messages may come that arrive at the clock."""
        return None if self.clock is None else self.clock - 1

    def _pack(self, held: Batch, piece: SourcePiece, cut: int | None) -> SegmentBatch:
        time_ns = self._before_clock if cut is None else cut
        now = self._job.batch_time if time_ns is None else time_ns
        listed = SourcePiece(_LISTED, 0, held, partition=piece.partition, label=piece.label)
        rows = [*self._stage.rows(listed, now)]
        self.messages += len(held)
        self.size += sum(len(row.body) for row in rows)
        return SegmentBatch(time_ns, rows)


class _ListedMessages:
    """A source whose pieces are lists of messages, each a batch of its own."""

    has_partitions: ClassVar = False

    def read(self, piece: list[Message], ex: Execution) -> Iterator[Chunk]:
        """Give the messages."""
        yield [[message] for message in piece]

    def partition_of(self, piece: list[Message]) -> str:
        """Return nothing: whoever makes a piece names its partition."""
        return ""


_LISTED = _ListedMessages()


def count_read(rows: Iterable[ShuffleRow]) -> int:
    """Return how many messages the input of a segment gave, by the counts of stage 1."""
    return sum(read_received(row.body) for row in rows if row.kind == REPORT_ROWS[FrameKind.COUNT])


def _report_rows(report: TaskReport) -> Iterator[ShuffleRow]:
    for kind, body in report.frames():
        if kind in REPORT_ROWS:
            yield ShuffleRow(0, REPORT_ROWS[kind], 0, 0, body)


def _process_directly(job: BackfillJob, segment: Segment) -> SegmentFacts:
    """Run a segment through the processors of a stream without windows."""
    began = time.process_time()
    recorder = ResultRecorder(0, 0)
    stage = StatelessStage(job.task_plan, recorder, time.time_ns)
    log: list[tuple[str, str, dict[str, Any]]] = []
    counts = 0
    for piece in _split(job, segment):
        for frame in stage.frames(piece):
            log += read_log_lines(frame)
            if frame.kind == FrameKind.COUNT:
                counts += read_received(frame.body)
    stage.finish()
    results = recorder.take()
    messages = sum(len(one.messages) for one in results)

    def facts() -> TaskFacts:
        return TaskFacts(0, messages, {}, time.process_time() - began, 0)

    path = job.work.results_path(segment.number)
    write_items(path, facts, [BatchResults(segment.number, results, log)])
    return SegmentFacts(None, counts, time.process_time() - began)
