"""Run batches through an output's processors and turn them into the bytes that it writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from streamer.engine.frame import Payload
from streamer.failure import Origin
from streamer.message import Batch, Execution
from streamer.pipeline import Processor, run
from streamer.plan import Plan
from streamer.spec import ParsedComponent
from streamer.tally import Tally

_TOGETHER = 1_000


class Stage(Protocol):
    """What stands at the end of a stream: it takes batches, and makes payloads of them."""

    def payloads(self, batches: Iterable[Batch], order: int, ex: Execution) -> Iterator[Payload]:
        """Take batches; `order` is where they stand among those of the micro-batch."""


class OutputStage:
    """One output with its processors, as the workers run it."""

    def __init__(self, plan: Plan, number: int, component: ParsedComponent) -> None:
        """Build the output of that number."""
        context = plan.context(component)
        self._number = number
        self._processors: list[Processor] = context.all(component.processors)
        self._output: Any = context.build(component)
        self._key = Origin(component).key

    def payloads(self, batches: Iterable[Batch], order: int, ex: Execution) -> Iterator[Payload]:
        """Encode batches; `order` is where they stand among those of the micro-batch."""
        output = self._output
        if self._processors:
            batches = run(self._processors, batches, ex)
        if ex.strict:
            batches = accepted(batches, self._key, ex)
        counted = _together if output.ignores_batches else _one_by_one
        for batch in counted(batches, ex.tally(self._key)):
            for route, body in output.encode(batch, ex):
                yield Payload(order, self._number, route, body, output.append)


def accepted(batches: Iterable[Batch], key: tuple[str, str, str], ex: Execution) -> Iterator[Batch]:
    """Leave out messages that have failed, and say so: the micro-batch must not be delivered."""
    for batch in batches:
        errors = [message.error for message in batch if message.error is not None]
        if not errors:
            yield batch
            continue
        number, first = ex.rejected.get(key, (0, errors[0]))
        ex.rejected[key] = (number + len(errors), first)


def _one_by_one(batches: Iterable[Batch], tally: Tally) -> Iterator[Batch]:
    for batch in batches:
        tally.sent += len(batch)
        tally.batches_sent += 1
        yield batch


def _together(batches: Iterable[Batch], tally: Tally) -> Iterator[Batch]:
    """Join small batches for an output that cannot tell: one by one they cost four times that."""
    held: Batch = []
    taken = 0
    for taken, batch in enumerate(batches, 1):  # noqa: B007
        held.extend(batch)
        if len(held) >= _TOGETHER:
            tally.sent += len(held)
            yield held
            held = []
    tally.batches_sent += taken
    if held:
        tally.sent += len(held)
        yield held
