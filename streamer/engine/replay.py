"""Send rejected messages again, each by itself, as a task beside the micro-batches does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from streamer.engine.encode import accepted
from streamer.engine.frame import Frame, FrameKind, Payload, frames
from streamer.engine.rejected import PIPELINE, ROUTE, Fate, Rejected, Way, packed_rejected
from streamer.engine.rejections import UNSENT
from streamer.engine.task import Task
from streamer.message import Batch, Execution, MicroBatch, Placed
from streamer.pipeline import Processor, run
from streamer.plan import Plan
from streamer.plan.origins import origin_of_way
from streamer.plan.written import all_inside
from streamer.sending import SendError, Written
from streamer.sending.rejection import Rejection
from streamer.sending.sender import Sender

REPLAY_TIMEOUT_S: Final = 2.0
"""How long receivers that do not answer are waited for, in all: others want the task's slot."""

_LAST: Final = 2**62
"""The order of what is sent again: behind what the micro-batch has made itself."""

_QUIET: Final = frozenset({FrameKind.REJECTED, FrameKind.ANSWER})


class ReplayTimeoutError(SendError):
    """The receiver does not answer, and has been waited for long enough."""


def replay(
    plan: Plan,
    rejected: Sequence[Rejected],
    now: Callable[[], int] = time.time_ns,
    micro_batch: MicroBatch | None = None,
) -> Iterator[Frame]:
    """Send messages again; what is not sent is in frames of kind `REJECTED`, with its number.

    Args:
        plan: the stream's plan.
        rejected: the messages, with their numbers.
        now: the clock of the processors, Unix ns.
        micro_batch: names the task, where an output wants to know.
    """
    task = Task(plan.level, now, strict=plan.strict)
    ex = task.execution
    ex.micro_batch = micro_batch
    ex.sleep = _bounded(time.monotonic() + REPLAY_TIMEOUT_S)
    failed: dict[int, str] = {}
    written: list[Payload] = []
    outputs = _Outputs(plan)
    # What goes to one output goes together, as far as it sends several at once.
    groups: dict[tuple[str, Way | None], list[Rejected]] = {}
    for one in rejected:
        if one.batch and ROUTE in one.batch[0].meta:
            written += outputs.encoded(one)
            continue
        groups.setdefault(("" if one.way is not None else one.output, one.way), []).append(one)
    for (path, way), some in groups.items():
        ex.origins = {one.number: one.batch for one in some}
        try:
            batches = outputs.made(some, way, ex)
            written += outputs.payloads(_sent(batches, outputs.of(path), failed, ex))
        except ReplayTimeoutError as error:
            failed.update({one.number: error.text for one in some if one.number not in failed})
    # What an output inside has rejected is one of those that were sent.
    for out in ex.rejected:
        if out.origin is not None:
            failed.setdefault(out.origin, out.text)
    ex.rejected.clear()
    yield from frames(written, 0)
    for body in packed_rejected(_again(rejected, failed)):
        yield Frame(FrameKind.REJECTED, _LAST, 0, 0, 0, "", body)
    for kind, body in task.said():
        if kind not in _QUIET:
            yield Frame(kind, _LAST, 0, 0, 0, "", body)


class _Outputs:
    """Builds what messages go through again, each once."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._senders: dict[str, Sender] = {}
        self._numbers = {**plan.written_numbers}
        self._by_path = {one.path: one for one in all_inside(plan.outputs, plan.resources)}
        self._ends = {one.path for one in plan.outputs}

    def of(self, path: str) -> Sender:
        """Return the output of a path; that of the stream where there is none any more.

        The processors beside an output at the end of a stream have run on what it got.
        """
        component = self._by_path.get(path, self._plan.output)
        if component.path not in self._senders:
            context = self._plan.context(component)
            bare = replace(component, processors=())
            built = bare if component.path in self._ends else component
            self._senders[component.path] = context.build(built)
        return self._senders[component.path]

    def made(self, some: Sequence[Rejected], way: Way | None, ex: Execution) -> list[Batch]:
        """Return what messages become on their way to the output; each knows which it is of."""
        batches: list[Batch] = []
        processors = self._processors(way)
        for one in some:
            place = (one.number,)
            for batch in run(processors, [[*one.batch]], ex) if processors else [one.batch]:
                batches.append([Placed.like(message, place) for message in batch])
        if ex.strict:
            # Those behind a window have failed before it, too.
            batches = [*accepted(batches, self._plan.output, ex)]
        return batches

    def _processors(self, way: Way | None) -> list[Processor]:
        plan = self._plan
        if way is None:
            return []
        context = plan.context()
        made: list[Processor] = []
        if way != PIPELINE:
            made += context.all(origin_of_way(plan.input, way, plan.resources).processors)
        output = plan.context(plan.output).all(plan.output.processors)
        return [*made, *context.all(plan.processors), *output]

    def encoded(self, one: Rejected) -> Iterator[Payload]:
        """Return bytes that an output has made before, as the driver is to write them."""
        number = self._numbers.get(one.output, 0)
        for message in one.batch:
            yield Payload(_LAST, number, message.meta[ROUTE], message.raw, joins=False)

    def payloads(self, written: Sequence[Written]) -> Iterator[Payload]:
        """Return what the driver has to write."""
        for leaf, route, body, append in written:
            yield Payload(_LAST, self._numbers[leaf], route, body, append)


def _sent(
    batches: list[Batch],
    sender: Sender,
    failed: dict[int, str],
    ex: Execution,
) -> Sequence[Written]:
    """Send batches once; note which could not be sent, by the number of what they are of."""
    if not batches:
        return ()
    sent = sender.deliver(batches, ex)
    for left in sent.left(batches):
        texts = left.error.by_index(len(left.batch))
        for index, message in enumerate(left.batch):
            assert isinstance(message, Placed)
            failed.setdefault(message.place[0], texts[index])
    return sent.written


def _again(rejected: Sequence[Rejected], failed: dict[int, str]) -> Iterator[Rejected]:
    for one in rejected:
        text = failed.get(one.number)
        if text is not None:
            reason = str(text.reason) if isinstance(text, Rejection) else UNSENT
            yield one._replace(text=str(text), reason=reason, fate=Fate.KEPT, batch=[])


def _bounded(until: float) -> Callable[[int], None]:
    """Return pauses of which there are no more after a time."""

    def sleep(ns: int) -> None:
        left = until - time.monotonic()
        if ns / 1e9 > left:
            raise ReplayTimeoutError(f"the receiver does not answer within {REPLAY_TIMEOUT_S:g} s")
        time.sleep(ns / 1e9)

    return sleep
