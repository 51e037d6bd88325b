"""Send again, in a task of its own, what an earlier task could not deliver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

from streamer.backoff import REPLAY
from streamer.engine.encode import OutputStage
from streamer.engine.frame import Frame, FrameKind, Payload, frames
from streamer.engine.rejected import Origins
from streamer.engine.running_clock import RunningClock, Stopwatch
from streamer.engine.task import Task
from streamer.engine.undelivered import Undelivered
from streamer.engine.work import AFTER_WINDOWS, TaskWork
from streamer.errors import StreamerError
from streamer.failure import Origin
from streamer.message import Execution, Message, MicroBatch, Placed
from streamer.plan import Plan
from streamer.plan.rejecting import replays
from streamer.plan.written import output_at
from streamer.sending.rejection import origin_of
from streamer.sending.retrying import Retrying, telling
from streamer.sending.sender import Sender
from streamer.spec import ParsedComponent
from streamer.window.system import SystemWindow


def resend(
    plan: Plan, undelivered: Iterable[Undelivered], micro_batch: MicroBatch | None = None
) -> Iterator[Frame]:
    """Try to send batches, for no longer than the plan's wait budget.

    Args:
        plan: the stream's plan.
        undelivered: what to send, in order.
        micro_batch: the micro-batch, where that is known; its part is that of each transaction.

    Raises:
        TakenBackError: what was sent in a transaction is taken back; the micro-batch has to come
            again.
    """
    task = Task.of(plan, origins=Origins(replays(plan.input, plan.resources)))
    ex = task.execution
    payloads = _payloads(plan, _with_origins(undelivered, task), micro_batch, ex)
    if isinstance(plan.window, SystemWindow):
        watch = Stopwatch(RunningClock())
        with watch.clock.timed():
            yield from frames(watch.working(payloads), 0)
        yield Frame(FrameKind.WORK, 0, 0, 0, 0, "", TaskWork(AFTER_WINDOWS, 0, watch.work).body())
    else:
        yield from frames(payloads, 0)
    for seq, (kind, body) in enumerate(task.said()):
        yield Frame(kind, 0, 0, seq, 0, "", body)


def _with_origins(undelivered: Iterable[Undelivered], task: Task) -> Iterator[Undelivered]:
    """Let a task know what batches of several others are made of, by numbers of its own."""
    numbers: dict[tuple[str, int], int] = {}
    for one in undelivered:
        if not one.origins:
            yield one
            continue
        known = task.execution.origins
        if known is None:
            known = task.execution.origins = {}
        for number, batch in one.origins.items():
            new = numbers.setdefault((one.task, number), len(numbers))
            known[new] = batch
            task.origins_by_number[new] = Origins(one.replays, one.way)
        batches = [[_renumbered(m, one, numbers) for m in batch] for batch in one.batches]
        yield one._replace(batches=batches)


def _renumbered(
    message: Message, undelivered: Undelivered, numbers: Mapping[tuple[str, int], int]
) -> Message:
    number = origin_of(message, undelivered.origins)
    if number is None or not isinstance(message, Placed):
        return message
    return Placed.like(message, (numbers[undelivered.task, number], *message.place[1:]))


def _payloads(
    plan: Plan,
    undelivered: Iterable[Undelivered],
    micro_batch: MicroBatch | None,
    ex: Execution,
) -> Iterator[Payload]:
    for (number, part), some in groupby(undelivered, key=lambda one: (one.output, one.part)):
        if micro_batch is not None:
            ex.micro_batch = micro_batch._replace(part=part) if part else micro_batch
        stage = OutputStage(plan, number, plan.outputs[number])
        ways: dict[tuple[str, int], Retrying | None] = {}
        for one in some:
            way = one.path, one.start
            if way not in ways:
                ways[way] = _way(plan, number, one)
            yield from stage.resend(one.batches, one.order, ex, ways[way])
        stage.finish()


def _way(plan: Plan, number: int, undelivered: Undelivered) -> Retrying | None:
    """Return what sends to an output inside of the one at the end; None for that one itself."""
    path, start = undelivered.path, undelivered.start
    output = plan.outputs[number]
    if path in ("", output.path) and not start:
        return None
    found: ParsedComponent | None = output_at([output], plan.resources, path)
    if found is None:
        raise StreamerError(f"batches were to be sent again to {path}, and no output stands there")
    sender: Sender = plan.context(found).build(found)
    deliver = sender.output.rest(start).deliver if start else sender.deliver
    return Retrying(deliver, REPLAY, telling(Origin(found)), found, start)
