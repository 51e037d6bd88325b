"""The one stage of a stream without windows: read a piece, process it, encode it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import orjson

from streamer.connectors.merged_source import source_path_of
from streamer.core.component_stats import ComponentStats
from streamer.core.execution import Execution, MicroBatch
from streamer.core.message import Batch, IndexedMessage, Message
from streamer.engine.report.component_errors import attribute_iteration_errors
from streamer.engine.report.rejected_messages import PIPELINE_PATH, ReplayRules
from streamer.engine.report.result_frame import Frame, FrameKind, Payload, make_frames
from streamer.engine.report.spans import TaskTrace
from streamer.engine.report.task_report import TaskReport
from streamer.engine.stage.crash_search import make_crash_search
from streamer.engine.stage.output_stage import OutputStage, Stage
from streamer.engine.stage.run_chunk import count_messages, observe_input, run_chunk
from streamer.plan import Plan
from streamer.plan.piece_input import inner_inputs, input_of_piece
from streamer.plan.rejection import rejects, replays
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.input.replayable import Chunk, RawMessages, ReadableSource
from streamer.sdk.processing import Processor, run


class StatelessStage:
    """The stage, built once for a task."""

    def __init__(
        self,
        plan: Plan,
        output: Stage | None = None,
        now: Callable[[], int] = time.time_ns,
        micro_batch: MicroBatch | None = None,
    ) -> None:
        """Build the processors and the output.

        Args:
            plan: the stream's plan.
            output: takes the place of the plan's.
            now: the clock of the processors, Unix ns.
            micro_batch: which part of which micro-batch the task is, where that is known.
        """
        context = plan.context()
        self._plan = plan
        self._context = context
        self._input_processors: dict[tuple[int, ...], list[Processor]] = {}
        self._buffer = context.build(plan.buffer)
        self._processors = context.build_all(plan.processors)
        self._output = output or OutputStage(plan, 0, plan.output)
        self._now = now
        self._micro_batch = micro_batch
        # What the config rejects goes through the processors again: then it has to be known of
        # each message what the input gave. Other streams are spared of that.
        self._tracks_origins = rejects(plan)
        self._replays_by_path: dict[tuple[int, ...], bool] = {}

    def frames(
        self, source: ReadableSource, number: int, piece: Any, arrival: int = 0
    ) -> Iterator[Frame]:
        """Read and process one piece.

        Args:
            source: where it is from.
            number: its place in the micro-batch.
            piece: what the source made in `split`.
            arrival: the number of its first message, where several pieces have one place.
        """
        plan, tracing = self._plan, None
        if plan.traced:
            tracing = TaskTrace("input", ComponentRef(plan.input).fields, time.time_ns())
        task = TaskReport.of(plan, self._now, tracing, self._replay_rules_of(piece))
        task.execution.micro_batch = self._micro_batch
        task.execution.crashes = make_crash_search(number, arrival)
        # Past messages that end a worker, it is not known what became of which.
        if self._tracks_origins and task.execution.crashes is None:
            task.execution.origins = {}
        made = self._payloads(source, number, piece, task.execution, tracing)
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
        """Hear that all pieces of the task are done; see `Stage.finish`."""
        self._output.finish()

    def status(self, ended: bool) -> Frame:
        """Return what the driver must know after a micro-batch."""
        return Frame(FrameKind.STATUS, 0, 0, 0, 0, "", orjson.dumps({"ended": ended}))

    def _payloads(
        self,
        source: ReadableSource,
        number: int,
        piece: Any,
        ex: Execution,
        tracing: TaskTrace | None,
    ) -> Iterator[Payload]:
        taken_through = self._processors_of(piece)
        plan = self._plan
        inner = [*inner_inputs(plan.input, piece, plan.resources)]
        given = observe_input(source.read(piece, ex), plan.input, ex, inner)
        read = attribute_iteration_errors(given, ComponentRef(self._plan.input).fields)
        if tracing is not None:
            read = _with_trace_links(read, tracing)
        if ex.crashes is not None:
            read = ex.crashes.raise_at_end(read)
        if self._plan.buffer.name == "none":
            processors = [*taken_through, *self._processors]
            if ex.origins is not None:
                whole = _split_batches(_count_input(read, ex), ex)
                yield from self._output.payloads(
                    run_with_origins(processors, whole, ex), number, ex
                )
                return
            # In one go, for an output's batching does not end where a block of bytes does.
            batches: Iterator[Batch] = chain.from_iterable(
                run_chunk(processors, chunk, ex, written=True) for chunk in _count_input(read, ex)
            )
            yield from self._output.payloads(batches, number, ex)
            return
        tally = ex.stats_of(ComponentRef(self._plan.buffer).key)
        taken = (
            batch
            for chunk in _count_input(read, ex)
            for batch in _count_received(run_chunk(taken_through, chunk, ex), tally)
        )
        through = self._buffer.batches(taken, ex)
        batches = _count_sent(
            attribute_iteration_errors(through, ComponentRef(self._plan.buffer).fields), tally
        )
        made = run(self._processors, batches, ex)
        if ex.crashes is not None:
            made = self._run_past_crashes(batches, ex)
        elif ex.origins is not None:
            made = run_with_origins(self._processors, batches, ex)
        yield from self._output.payloads(made, number, ex)

    def _run_past_crashes(self, batches: Iterable[Batch], ex: Execution) -> Iterator[Batch]:
        for batch in batches:
            yield from ex.crashes.run_batches(
                self._processors,
                [batch],
                ex,
                "buffer",
                lambda begin, end, batch=batch: run(self._processors, [batch][begin:end], ex),
            )

    def _replay_rules_of(self, piece: Any) -> ReplayRules:
        """Return how the messages of a piece are given again when they are rejected."""
        input_path = source_path_of(piece)
        if input_path not in self._replays_by_path:
            origin = input_of_piece(self._plan.input, piece, self._plan.resources)
            self._replays_by_path[input_path] = replays(origin, self._plan.resources)
        again = input_path if self._plan.buffer.name == "none" else PIPELINE_PATH
        return ReplayRules(self._replays_by_path[input_path], again)

    def _processors_of(self, piece: Any) -> list[Processor]:
        """Return the processors of the input that a piece is from."""
        input_path = source_path_of(piece)
        processors = self._input_processors.get(input_path)
        if processors is None:
            origin = input_of_piece(self._plan.input, piece, self._plan.resources)
            processors = self._input_processors[input_path] = self._context.build_all(
                origin.processors
            )
        return processors


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
        if isinstance(chunk, RawMessages):
            yield from ([Message(raw, chunk.meta)] for raw in chunk.raws)
        else:
            yield from chunk
        if ex.read_counter is not None:
            ex.read_counter.add(count_messages(chunk))


def _with_trace_links(chunks: Iterable[Chunk], tracing: TaskTrace) -> Iterator[Chunk]:
    for chunk in chunks:
        tracing.add_links(chunk)
        yield chunk


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
