"""Results of a backfill's tasks, kept in the place of outputs, and which of them are its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.engine.report.result_frame import Frame, FrameKind, Payload
from streamer.engine.stage.output_stage import Stage
from streamer.engine.stage.window_pipeline import WindowPipeline
from streamer.plan import Plan
from streamer.sdk.processing import Processor
from streamer.service.backfill.work_files import Result
from streamer.window import Emission
from streamer.window.fire.emission_batch import EmissionBatch

_RECEIVED: Final = ("buffer_received", "input_received")


class ResultRecorder:
    """Takes the place of an output, and keeps what it is given."""

    def __init__(self, shard: int, output: int) -> None:
        """Take the numbers of the shard and of the output."""
        self._shard = shard
        self._output = output
        self._results: list[Result] = []

    def payloads(self, batches: Iterable[Batch], order: int, ex: Execution) -> Iterator[Payload]:
        """Keep batches; nothing is left to be written."""
        for batch in batches:
            messages = [(one.raw, dict(one.meta), one.error) for one in batch]
            self._results.append(Result(order, self._shard, self._output, messages))
        yield from ()

    def finish(self) -> None:
        """Nothing is left to do."""

    def take(self) -> list[Result]:
        """Take what was kept since the last call, in order."""
        taken, self._results = self._results, []
        return sorted(taken, key=lambda result: result.order)


def restore_batch(result: Result) -> Batch:
    """Return the batch of a result."""
    return [Message(raw, meta, error) for raw, meta, error in result.messages]


@dataclass(slots=True)
class OwnedWindows:
    """The emissions that a task passes on.

    Attributes:
        from_time: a window that ends at or before it is left out, Unix ns; None for none.
        to_time: a window that ends after it is left out, Unix ns; None for none.
        is_own: whether the micro-batch in hand belongs to the task.
        windows: windows that were passed on.
        messages: messages of these.
    """

    from_time: int | None = None
    to_time: int | None = None
    is_own: bool = True
    windows: int = 0
    messages: int = 0

    def keep(self, emissions: Iterable[Emission]) -> Iterator[Emission]:
        """Give those emissions that are to be passed on; all are taken."""
        for emission in emissions:
            if not self.is_own:
                continue
            single = [emission]
            if isinstance(emission, EmissionBatch) and self._is_bounded:
                single = [*emission.iterate_emissions()]
            for one in single:
                if one.end is None or self._is_inside(one.end):
                    self._count(one)
                    yield one

    @property
    def _is_bounded(self) -> bool:
        return self.from_time is not None or self.to_time is not None

    def _is_inside(self, end: int) -> bool:
        after = self.from_time is None or end > self.from_time
        return after and (self.to_time is None or end <= self.to_time)

    def _count(self, one: Emission) -> None:
        if isinstance(one, EmissionBatch):
            self.windows += len(one.ends)
        elif one.reason not in ("failed", "dropped"):
            self.windows += 1
        self.messages += len(one.messages)


class OwnedPipeline(WindowPipeline):
    """The pipeline of a shard, for the emissions that its task passes on."""

    def __init__(
        self,
        plan: Plan,
        processors: Sequence[Processor],
        stages: Sequence[Stage],
        ex: Execution,
        owned: OwnedWindows,
        keys: Any = None,
    ) -> None:
        """Take what `WindowPipeline` does, and what says which emissions are passed on."""
        super().__init__(plan, processors, stages, ex, keys)
        self._owned = owned

    def payloads(self, emissions: Iterable[Emission]) -> Iterator[Payload]:
        """Run the task's own batches through the processors and the outputs."""
        return super().payloads(self._owned.keep(emissions))


def read_log_lines(frame: Frame) -> list[tuple[str, str, dict[str, Any]]]:
    """Return the log lines of a frame: level, text, fields; none of a frame of another kind."""
    if frame.kind != FrameKind.LOG:
        return []
    return [(level, text, fields) for level, text, fields in orjson.loads(frame.body)]


def read_received(body: bytes) -> int:
    """Return how many messages came in, by the counts of a task as JSON."""
    counts = orjson.loads(body)
    by_name: dict[str, int] = {
        counter: sum(by for name, by, labels, *_ in counts if name == counter and _is_whole(labels))
        for counter in _RECEIVED
    }
    return max(by_name.values())


def _is_whole(labels: dict[str, str]) -> bool:
    """Return whether a count is of the stream, and not of an input inside of another."""
    return not labels or labels.get("path", "").startswith("root.buffer")
