"""Send again, in a task of its own, what an earlier task could not deliver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

from streamer.core.errors import StreamerError
from streamer.core.execution import Execution, MicroBatch
from streamer.core.message import IndexedMessage, Message
from streamer.engine.report.batch_work import AFTER_WINDOWS, TaskWork
from streamer.engine.report.rejected_messages import ReplayRules
from streamer.engine.report.result_frame import Frame, FrameKind, Payload, TaskReport, make_frames
from streamer.engine.report.running_clock import RunningClock, Stopwatch
from streamer.engine.report.undelivered import UndeliveredBatches
from streamer.engine.stage.output_stage import OutputStage
from streamer.plan import Plan
from streamer.plan.component_lookup import find_output
from streamer.plan.rejection import replays
from streamer.sdk.backoff import REPLAY
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.output.rejection import origin_number_of
from streamer.sdk.output.retry import RetryingOutput, make_wait_reporter
from streamer.sdk.output.sender import Sender
from streamer.sdk.spec import ParsedComponent


def resend_undelivered(
    plan: Plan, undelivered: Iterable[UndeliveredBatches], micro_batch: MicroBatch | None = None
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
    task = TaskReport.of(plan, replay_rules=ReplayRules(replays(plan.input, plan.resources)))
    ex = task.execution
    payloads = _payloads(plan, _with_origins(undelivered, task), micro_batch, ex)
    if plan.window is not None and plan.window.expire_delay is not None:
        watch = Stopwatch(RunningClock())
        with watch.clock.measure():
            yield from make_frames(watch.time_items(payloads), 0)
        yield Frame(
            FrameKind.WORK, 0, 0, 0, 0, "", TaskWork(AFTER_WINDOWS, 0, watch.work).to_json()
        )
    else:
        yield from make_frames(payloads, 0)
    for seq, (kind, body) in enumerate(task.frames()):
        yield Frame(kind, 0, 0, seq, 0, "", body)


def _with_origins(
    undelivered: Iterable[UndeliveredBatches], task: TaskReport
) -> Iterator[UndeliveredBatches]:
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
            task.replay_rules_by_number[new] = ReplayRules(one.replays, one.input_path)
        batches = [[_renumber(m, one, numbers) for m in batch] for batch in one.batches]
        yield one._replace(batches=batches)


def _renumber(
    message: Message, undelivered: UndeliveredBatches, numbers: Mapping[tuple[str, int], int]
) -> Message:
    number = origin_number_of(message, undelivered.origins)
    if number is None or not isinstance(message, IndexedMessage):
        return message
    return IndexedMessage.with_place(
        message, (numbers[undelivered.task, number], *message.place[1:])
    )


def _payloads(
    plan: Plan,
    undelivered: Iterable[UndeliveredBatches],
    micro_batch: MicroBatch | None,
    ex: Execution,
) -> Iterator[Payload]:
    for (number, part), some in groupby(undelivered, key=lambda one: (one.output, one.part)):
        if micro_batch is not None:
            ex.micro_batch = micro_batch._replace(part=part) if part else micro_batch
        stage = OutputStage(plan, number, plan.outputs[number])
        retries: dict[tuple[str, int], RetryingOutput | None] = {}
        for one in some:
            target = one.path, one.start
            if target not in retries:
                retries[target] = _make_retry(plan, number, one)
            yield from stage.resend(one.batches, one.order, ex, retries[target])
        stage.finish()


def _make_retry(plan: Plan, number: int, undelivered: UndeliveredBatches) -> RetryingOutput | None:
    """Return what sends to an output inside of the one at the end; None for that one itself."""
    path, start = undelivered.path, undelivered.start
    output = plan.outputs[number]
    if path in ("", output.path) and not start:
        return None
    component: ParsedComponent | None = find_output([output], plan.resources, path)
    if component is None:
        raise StreamerError(f"batches were to be sent again to {path}, and no output stands there")
    sender: Sender = plan.context(component).build(component)
    deliver = sender.output.outputs_from(start).deliver if start else sender.deliver
    return RetryingOutput(
        deliver, REPLAY, make_wait_reporter(ComponentRef(component)), component, start
    )
