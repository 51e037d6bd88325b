"""The one stage of a stream without windows: read a piece, process it, encode it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import orjson

from streamer.core.component_stats import ComponentStats
from streamer.core.execution import Execution, MicroBatch
from streamer.core.message import Batch, IndexedMessage
from streamer.engine.report.component_errors import attribute_iteration_errors
from streamer.engine.report.result_frame import Frame, FrameKind, Payload, TaskReport, make_frames
from streamer.engine.stage.crash_search import make_crash_search
from streamer.engine.stage.output_stage import OutputStage, Stage
from streamer.engine.stage.selected_lines import run_chunks
from streamer.engine.stage.task_input import (
    PieceReader,
    SourcePiece,
    TaskPlan,
    count_messages,
    run_chunk,
)
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.input.batch_chunks import split_chunks
from streamer.sdk.input.replayable import Chunk
from streamer.sdk.processing import Processor, run


class StatelessStage:
    """The stage, built once for a task."""

    def __init__(
        self,
        task_plan: TaskPlan,
        output: Stage | None = None,
        now: Callable[[], int] = time.time_ns,
        micro_batch: MicroBatch | None = None,
    ) -> None:
        """Build the processors and the output.

        Args:
            task_plan: the stream's plan.
            output: takes the place of the plan's.
            now: the clock of the processors, Unix ns.
            micro_batch: which part of which micro-batch the task is, where that is known.
        """
        self._task_plan = task_plan
        self._plan = plan = task_plan.plan
        context = plan.context()
        self._reader = PieceReader(task_plan, context)
        self._buffer = context.build(plan.buffer)
        self._processors = context.build_all(plan.processors)
        self._output = output or OutputStage(plan, 0, plan.output)
        self._now = now
        self._micro_batch = micro_batch

    def frames(self, piece: SourcePiece) -> Iterator[Frame]:
        """Read and process one piece."""
        plan, number = self._plan, piece.number
        rules = self._task_plan.replay_rules(piece)
        task = self._task_plan.begin_report(plan.input, self._now, rules)
        task.execution.micro_batch = self._micro_batch
        mode = self._task_plan.column_mode
        task.execution.column_mode = "" if mode == "never" else mode
        task.execution.crashes = make_crash_search(number, piece.arrival or 0)
        # Past messages that end a worker, it is not known what became of which.
        if self._task_plan.tracks_origins and task.execution.crashes is None:
            task.execution.origins = {}
        made = self._payloads(piece, task)
        if task.execution.crashes is not None:
            # What the output's processors do comes after the end of what is read.
            made = task.execution.crashes.raise_at_end(made)
        # What processors break down on marks messages; all else is the output's.
        yield from attribute_iteration_errors(
            make_frames(made, number), ComponentRef(plan.output).fields
        )
        for kind, body in task.frames():
            yield Frame(kind, number, number, 0, 0, "", body)

    def finish(self) -> None:
        """Finish: all pieces of the task are done; see `Stage.finish`."""
        self._output.finish()

    def status(self, ended: bool, batch_time: int) -> Frame:
        """Return what the driver must know after a micro-batch of a time in Unix ns."""
        body = orjson.dumps({"ended": ended, "now": batch_time})
        return Frame(FrameKind.STATUS, 0, 0, 0, 0, "", body)

    def _payloads(self, piece: SourcePiece, task: TaskReport) -> Iterator[Payload]:
        ex = task.execution
        opened = self._reader.open_piece(piece, task)
        processors, read = opened.processors, _count_input(opened.chunks, ex)
        made = (
            self._run_directly([*processors, *self._processors], read, ex)
            if self._plan.buffer.name == "none"
            else self._run_buffered(processors, read, ex)
        )
        yield from self._output.payloads(made, piece.number, ex)

    def _run_directly(
        self, processors: Sequence[Processor], read: Iterator[Chunk], ex: Execution
    ) -> Iterator[Batch]:
        if ex.origins is not None:
            return run_with_origins(processors, _split_batches(read, ex), ex)
        # In one go, for an output's batching does not end where a block of bytes does.
        return run_chunks(processors, read, ex)

    def _run_buffered(
        self, processors: Sequence[Processor], read: Iterator[Chunk], ex: Execution
    ) -> Iterator[Batch]:
        buffer = ComponentRef(self._plan.buffer)
        tally = ex.stats_of(buffer.key)
        taken = (
            batch
            for chunk in read
            for batch in _count_received(run_chunk(processors, chunk, ex), tally)
        )
        through = self._buffer.batches(taken, ex)
        batches = _count_sent(attribute_iteration_errors(through, buffer.fields), tally)
        if ex.crashes is not None:
            return self._run_past_crashes(batches, ex)
        if ex.origins is not None:
            return run_with_origins(self._processors, batches, ex)
        return run(self._processors, batches, ex)

    def _run_past_crashes(self, batches: Iterable[Batch], ex: Execution) -> Iterator[Batch]:
        for batch in batches:
            yield from ex.crashes.run_batches(
                self._processors,
                [batch],
                ex,
                "buffer",
                lambda begin, end, batch=batch: run(self._processors, [batch][begin:end], ex),
            )


def run_with_origins(
    processors: Sequence[Processor], batches: Iterable[Batch], ex: Execution
) -> Iterator[Batch]:
    """Run batches through processors one by one, so that each message knows what it is made of."""
    assert ex.origins is not None
    for number, batch in enumerate(batches):
        ex.origins[number] = [*batch]
        for made in run(processors, [batch], ex):
            yield [IndexedMessage.with_place(one, (number,)) for one in made]


def _split_batches(chunks: Iterable[Chunk], ex: Execution) -> Iterator[Batch]:
    """Give the batches of chunks one by one; plain payloads are batches of one."""
    for chunk in chunks:
        yield from split_chunks([chunk])
        if ex.read_counter is not None:
            ex.read_counter.add(count_messages(chunk))


def _count_input(chunks: Iterable[Chunk], ex: Execution) -> Iterator[Chunk]:
    for chunk in chunks:
        ex.count("input_received", count_messages(chunk))
        yield chunk


def _count_received(batches: Iterable[Batch], tally: ComponentStats) -> Iterator[Batch]:
    for batch in batches:
        tally.received += len(batch)
        tally.batches_received += 1
        yield batch


def _count_sent(batches: Iterable[Batch], tally: ComponentStats) -> Iterator[Batch]:
    for batch in batches:
        tally.sent += len(batch)
        tally.batches_sent += 1
        yield batch
