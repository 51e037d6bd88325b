"""The one stage of a stream without windows: read a piece, process it, encode it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

import orjson

from streamer.engine.encode import OutputStage, Stage
from streamer.engine.feed import feed
from streamer.engine.frame import Frame, FrameKind, Payload, frames
from streamer.engine.task import Task
from streamer.failure import Origin
from streamer.message import Batch, Execution, MicroBatch
from streamer.pipeline import Processor, run
from streamer.plan import Plan
from streamer.plan.origins import origin_of
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

    def frames(self, source: Readable, number: int, piece: Any) -> Iterator[Frame]:
        """Read and process one piece; `number` is its place in the micro-batch."""
        task = Task(self._plan.level, self._now, strict=self._plan.strict, live=self._plan.live)
        task.execution.micro_batch = self._micro_batch
        yield from frames(self._payloads(source, number, piece, task.execution), number)
        for kind, body in task.said():
            yield Frame(kind, number, number, 0, 0, "", body)

    def finish(self) -> None:
        """Hear that all pieces of the task are done; see `Stage.finish`."""
        self._output.finish()

    def status(self, ended: bool) -> Frame:
        """Return what the driver must know after a micro-batch."""
        return Frame(FrameKind.STATUS, 0, 0, 0, 0, "", orjson.dumps({"ended": ended}))

    def _payloads(
        self, source: Readable, number: int, piece: Any, ex: Execution
    ) -> Iterator[Payload]:
        taken_through = self._processors_of(piece)
        if self._plan.buffer.name == "none":
            processors = [*taken_through, *self._processors]
            # In one go, for an output's batching does not end where a block of bytes does.
            batches: Iterator[Batch] = chain.from_iterable(
                feed(processors, chunk, ex, written=True)
                for chunk in _counted(source.read(piece, ex), ex)
            )
            yield from self._output.payloads(batches, number, ex)
            return
        tally = ex.tally(Origin(self._plan.buffer).key)
        taken = (
            batch
            for chunk in _counted(source.read(piece, ex), ex)
            for batch in _received(feed(taken_through, chunk, ex), tally)
        )
        batches = _sent(self._buffer.batches(taken, ex), tally)
        yield from self._output.payloads(run(self._processors, batches, ex), number, ex)

    def _processors_of(self, piece: Any) -> list[Processor]:
        """Return the processors of the input that a piece is from."""
        way = way_of(piece)
        found = self._input_processors.get(way)
        if found is None:
            origin = origin_of(self._plan.input, piece, self._plan.resources)
            found = self._input_processors[way] = self._context.all(origin.processors)
        return found


def _counted(chunks: Iterable[Chunk], ex: Execution) -> Iterator[Chunk]:
    for chunk in chunks:
        taken = len(chunk.raws) if isinstance(chunk, Raws) else sum(map(len, chunk))
        ex.count("input_received", taken)
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
