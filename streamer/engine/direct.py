"""The one stage of a stream without windows: read a piece, process it, encode it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from streamer.catalog import build_context
from streamer.engine.encode import OutputStage
from streamer.engine.frame import Frame, FrameKind, Payload, frames
from streamer.engine.task import Task
from streamer.message import Batch, Execution, Message
from streamer.pipeline import run, run_each
from streamer.plan import Plan
from streamer.source.replayable import Chunk, Raws, Replayable


class DirectStage:
    """The stage, built once for a task."""

    def __init__(self, plan: Plan) -> None:
        """Build the processors and the output."""
        context = build_context(plan.resources)
        self._plan = plan
        self._input_processors = context.all(plan.input.processors)
        self._buffer = context.build(plan.buffer)
        self._processors = context.all(plan.processors)
        self._output = OutputStage(plan, 0, plan.output)

    def frames(self, source: Replayable, number: int, piece: Any) -> Iterator[Frame]:
        """Read and process one piece; `number` is its place in the micro-batch."""
        task = Task(self._plan.level)
        seen = [0]
        payloads = self._payloads(source, number, piece, task.execution, seen)
        yield from frames(payloads, number)
        task.execution.count("input_received", seen[0])
        if (body := task.log_body()) is not None:
            yield Frame(FrameKind.LOG, number, number, 0, 0, "", body)
        if (body := task.count_body()) is not None:
            yield Frame(FrameKind.COUNT, number, number, 0, 0, "", body)

    def status(self, ended: bool) -> Frame:
        """Return what the driver must know after a micro-batch."""
        return Frame(FrameKind.STATUS, 0, 0, 0, 0, "", orjson.dumps({"ended": ended}))

    def _payloads(
        self, source: Replayable, number: int, piece: Any, ex: Execution, seen: list[int]
    ) -> Iterator[Payload]:
        if self._plan.buffer.name == "none":
            for chunk in source.read(piece, ex):
                yield from self._output.payloads(self._batches(chunk, ex, seen), number, ex)
            return
        batches = (
            batch for chunk in source.read(piece, ex) for batch in self._taken(chunk, ex, seen)
        )
        policy = self._buffer.batches(batches, ex)
        results = run(self._processors, policy, ex)
        yield from self._output.payloads(results, number, ex)

    def _batches(self, chunk: Chunk, ex: Execution, seen: list[int]) -> Iterator[Batch]:
        processors = [*self._input_processors, *self._processors]
        if isinstance(chunk, Raws):
            seen[0] += len(chunk.raws)
            singles = [Message(raw, chunk.meta) for raw in chunk.raws]
            yield from run_each(processors, singles, ex)
        else:
            seen[0] += sum(map(len, chunk))
            yield from run(processors, chunk, ex)

    def _taken(self, chunk: Chunk, ex: Execution, seen: list[int]) -> Iterator[Batch]:
        """Return the batches that reach the buffer."""
        if isinstance(chunk, Raws):
            batches = [[Message(raw, chunk.meta)] for raw in chunk.raws]
        else:
            batches = chunk
        seen[0] += sum(map(len, batches))
        yield from run(self._input_processors, batches, ex)
