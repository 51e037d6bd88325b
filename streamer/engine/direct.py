"""The one stage of a stream without windows: read a piece, process it, encode it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import orjson

from streamer.engine.blame import blaming
from streamer.engine.crash_search import piece_crashes
from streamer.engine.encode import OutputStage, Stage
from streamer.engine.feed import feed, seen, size
from streamer.engine.frame import Frame, FrameKind, Payload, frames
from streamer.engine.rejected import PIPELINE, Origins
from streamer.engine.spans import Tracing
from streamer.engine.task import Task
from streamer.failure import Origin
from streamer.message import Batch, Execution, Message, MicroBatch, Placed
from streamer.pipeline import Processor, run
from streamer.plan import Plan
from streamer.plan.origins import inner_inputs, origin_of
from streamer.plan.rejecting import rejects, replays
from streamer.source.replayable import Chunk, Raws, Readable
from streamer.source.several import way_of
from streamer.tally import Tally


class DirectStage:
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
        self._processors = context.all(plan.processors)
        self._output = output or OutputStage(plan, 0, plan.output)
        self._now = now
        self._micro_batch = micro_batch
        # What the config rejects goes through the processors again: then it has to be known of
        # each message what the input gave. Other streams are spared of that.
        self._traces = rejects(plan)
        self._replays: dict[tuple[int, ...], bool] = {}

    def frames(
        self, source: Readable, number: int, piece: Any, arrival: int = 0
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
            tracing = Tracing("input", Origin(plan.input).fields, time.time_ns())
        task = Task.of(plan, self._now, tracing, self._origins(piece))
        task.execution.micro_batch = self._micro_batch
        task.execution.crashes = piece_crashes(number, arrival)
        # Past messages that end a worker, it is not known what became of which.
        if self._traces and task.execution.crashes is None:
            task.execution.origins = {}
        made = self._payloads(source, number, piece, task.execution, tracing)
        if task.execution.crashes is not None:
            # What the output's processors do comes after the end of what is read.
            made = task.execution.crashes.until_end(made)
        # What processors break down on marks messages; all else is the output's.
        yield from blaming(frames(made, number), Origin(plan.output).fields)
        for kind, body in task.said():
            yield Frame(kind, number, number, 0, 0, "", body)

    def finish(self) -> None:
        """Hear that all pieces of the task are done; see `Stage.finish`."""
        self._output.finish()

    def status(self, ended: bool) -> Frame:
        """Return what the driver must know after a micro-batch."""
        return Frame(FrameKind.STATUS, 0, 0, 0, 0, "", orjson.dumps({"ended": ended}))

    def _payloads(
        self, source: Readable, number: int, piece: Any, ex: Execution, tracing: Tracing | None
    ) -> Iterator[Payload]:
        taken_through = self._processors_of(piece)
        plan = self._plan
        inner = [*inner_inputs(plan.input, piece, plan.resources)]
        given = seen(source.read(piece, ex), plan.input, ex, inner)
        read = blaming(given, Origin(self._plan.input).fields)
        if tracing is not None:
            read = _heeded(read, tracing)
        if ex.crashes is not None:
            read = ex.crashes.until_end(read)
        if self._plan.buffer.name == "none":
            processors = [*taken_through, *self._processors]
            if ex.origins is not None:
                whole = _batches(_counted(read, ex), ex)
                yield from self._output.payloads(traced(processors, whole, ex), number, ex)
                return
            # In one go, for an output's batching does not end where a block of bytes does.
            batches: Iterator[Batch] = chain.from_iterable(
                feed(processors, chunk, ex, written=True) for chunk in _counted(read, ex)
            )
            yield from self._output.payloads(batches, number, ex)
            return
        tally = ex.tally(Origin(self._plan.buffer).key)
        taken = (
            batch
            for chunk in _counted(read, ex)
            for batch in _received(feed(taken_through, chunk, ex), tally)
        )
        through = self._buffer.batches(taken, ex)
        batches = _sent(blaming(through, Origin(self._plan.buffer).fields), tally)
        made = run(self._processors, batches, ex)
        if ex.crashes is not None:
            made = self._past_crashes(batches, ex)
        elif ex.origins is not None:
            made = traced(self._processors, batches, ex)
        yield from self._output.payloads(made, number, ex)

    def _past_crashes(self, batches: Iterable[Batch], ex: Execution) -> Iterator[Batch]:
        for batch in batches:
            yield from ex.crashes.passed(
                self._processors,
                [batch],
                ex,
                "buffer",
                lambda begin, end, batch=batch: run(self._processors, [batch][begin:end], ex),
            )

    def _origins(self, piece: Any) -> Origins:
        """Return how the messages of a piece are given again when they are rejected."""
        way = way_of(piece)
        if way not in self._replays:
            origin = origin_of(self._plan.input, piece, self._plan.resources)
            self._replays[way] = replays(origin, self._plan.resources)
        again = way if self._plan.buffer.name == "none" else PIPELINE
        return Origins(self._replays[way], again)

    def _processors_of(self, piece: Any) -> list[Processor]:
        """Return the processors of the input that a piece is from."""
        way = way_of(piece)
        found = self._input_processors.get(way)
        if found is None:
            origin = origin_of(self._plan.input, piece, self._plan.resources)
            found = self._input_processors[way] = self._context.all(origin.processors)
        return found


def traced(
    processors: Sequence[Processor], batches: Iterable[Batch], ex: Execution
) -> Iterator[Batch]:
    """Run batches through processors one by one, so that each message knows what it is made of."""
    assert ex.origins is not None
    for number, batch in enumerate(batches):
        ex.origins[number] = [*batch]
        for made in run(processors, [batch], ex):
            yield [Placed.like(one, (number,)) for one in made]


def _batches(chunks: Iterable[Chunk], ex: Execution) -> Iterator[Batch]:
    """Give the batches of chunks one by one; plain payloads are batches of one."""
    for chunk in chunks:
        if isinstance(chunk, Raws):
            yield from ([Message(raw, chunk.meta)] for raw in chunk.raws)
        else:
            yield from chunk
        if ex.reading is not None:
            ex.reading.add(size(chunk))


def _heeded(chunks: Iterable[Chunk], tracing: Tracing) -> Iterator[Chunk]:
    for chunk in chunks:
        tracing.heed(chunk)
        yield chunk


def _counted(chunks: Iterable[Chunk], ex: Execution) -> Iterator[Chunk]:
    for chunk in chunks:
        ex.count("input_received", size(chunk))
        yield chunk


def _received(batches: Iterable[Batch], tally: Tally) -> Iterator[Batch]:
    for batch in batches:
        tally.received += len(batch)
        tally.batches_received += 1
        yield batch


def _sent(batches: Iterable[Batch], tally: Tally) -> Iterator[Batch]:
    for batch in batches:
        tally.sent += len(batch)
        tally.batches_sent += 1
        yield batch
