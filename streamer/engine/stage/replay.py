"""Send rejected messages again, each by itself, as a task beside the micro-batches does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from streamer.core.execution import Execution, MicroBatch
from streamer.core.message import Batch, IndexedMessage
from streamer.engine.report.rejected_messages import (
    PIPELINE_PATH,
    ROUTE_METADATA,
    UNSENT,
    Fate,
    InputPath,
    RejectedMessages,
    encode_rejected,
)
from streamer.engine.report.result_frame import Frame, FrameKind, Payload, TaskReport, make_frames
from streamer.engine.stage.output_stage import reject_failed
from streamer.plan import Plan
from streamer.plan.component_lookup import flatten_outputs, input_of_path
from streamer.sdk.output.protocols import DriverWrite, SendError
from streamer.sdk.output.rejection import Rejection
from streamer.sdk.output.sender import Sender
from streamer.sdk.processing import Processor, run

REPLAY_TIMEOUT_S: Final = 2.0
"""How long receivers that do not answer are waited for, in all: others want the task's slot."""

_LAST_ORDER: Final = 2**62
"""The order of what is sent again: behind what the micro-batch has made itself."""

_SKIPPED_KINDS: Final = frozenset({FrameKind.REJECTED, FrameKind.ANSWER})


class ReplayTimeoutError(SendError):
    """The receiver does not answer, and has been waited for long enough."""


def replay_rejected(
    plan: Plan,
    rejected: Sequence[RejectedMessages],
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
    task = TaskReport(plan.level, now, strict=plan.strict)
    ex = task.execution
    ex.micro_batch = micro_batch
    ex.sleep = _make_bounded_sleep(time.monotonic() + REPLAY_TIMEOUT_S)
    failed: dict[int, str] = {}
    written: list[Payload] = []
    outputs = _ReplayOutputs(plan)
    # What goes to one output goes together, as far as it sends several at once.
    groups: dict[tuple[str, InputPath | None], list[RejectedMessages]] = {}
    for one in rejected:
        if one.batch and ROUTE_METADATA in one.batch[0].meta:
            written += outputs.read_encoded(one)
            continue
        groups.setdefault(
            ("" if one.input_path is not None else one.output, one.input_path), []
        ).append(one)
    for (path, input_path), some in groups.items():
        ex.origins = {one.number: one.batch for one in some}
        try:
            batches = outputs.run_processors(some, input_path, ex)
            written += outputs.payloads(_send_once(batches, outputs.sender_of(path), failed, ex))
        except ReplayTimeoutError as error:
            failed.update({one.number: error.text for one in some if one.number not in failed})
    # What an output inside has rejected is one of those that were sent.
    for out in ex.rejected:
        if out.origin is not None:
            failed.setdefault(out.origin, out.text)
    ex.rejected.clear()
    yield from make_frames(written, 0)
    for body in encode_rejected(_mark_failed(rejected, failed)):
        yield Frame(FrameKind.REJECTED, _LAST_ORDER, 0, 0, 0, "", body)
    for kind, body in task.frames():
        if kind not in _SKIPPED_KINDS:
            yield Frame(kind, _LAST_ORDER, 0, 0, 0, "", body)


class _ReplayOutputs:
    """Builds what messages go through again, each once."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._senders: dict[str, Sender] = {}
        self._numbers = {**plan.driver_output_numbers}
        self._by_path = {one.path: one for one in flatten_outputs(plan.outputs, plan.resources)}
        self._stream_output_paths = {one.path for one in plan.outputs}

    def sender_of(self, path: str) -> Sender:
        """Return the output of a path; that of the stream where there is none any more.

        The processors beside an output at the end of a stream have run on what it got.
        """
        component = self._by_path.get(path, self._plan.output)
        if component.path not in self._senders:
            context = self._plan.context(component)
            bare = replace(component, processors=())
            built = bare if component.path in self._stream_output_paths else component
            self._senders[component.path] = context.build(built)
        return self._senders[component.path]

    def run_processors(
        self, some: Sequence[RejectedMessages], input_path: InputPath | None, ex: Execution
    ) -> list[Batch]:
        """Return what messages become on their way to the output; each knows which it is of."""
        batches: list[Batch] = []
        processors = self._processors(input_path)
        for one in some:
            place = (one.number,)
            for batch in run(processors, [[*one.batch]], ex) if processors else [one.batch]:
                batches.append([IndexedMessage.with_place(message, place) for message in batch])
        if ex.strict:
            # Those behind a window have failed before it, too.
            batches = [*reject_failed(batches, self._plan.output, ex)]
        return batches

    def _processors(self, input_path: InputPath | None) -> list[Processor]:
        plan = self._plan
        if input_path is None:
            return []
        context = plan.context()
        made: list[Processor] = []
        if input_path != PIPELINE_PATH:
            made += context.build_all(
                input_of_path(plan.input, input_path, plan.resources).processors
            )
        output = plan.context(plan.output).build_all(plan.output.processors)
        return [*made, *context.build_all(plan.processors), *output]

    def read_encoded(self, one: RejectedMessages) -> Iterator[Payload]:
        """Return bytes that an output has made before, as the driver is to write them."""
        number = self._numbers.get(one.output, 0)
        for message in one.batch:
            yield Payload(
                _LAST_ORDER, number, message.meta[ROUTE_METADATA], message.raw, joins=False
            )

    def payloads(self, written: Sequence[DriverWrite]) -> Iterator[Payload]:
        """Return what the driver has to write."""
        for leaf, route, body, append in written:
            yield Payload(_LAST_ORDER, self._numbers[leaf], route, body, append)


def _send_once(
    batches: list[Batch],
    sender: Sender,
    failed: dict[int, str],
    ex: Execution,
) -> Sequence[DriverWrite]:
    """Send batches once; note which could not be sent, by the number of what they are of."""
    if not batches:
        return ()
    sent = sender.deliver(batches, ex)
    for left in sent.failures(batches):
        texts = left.error.by_index(len(left.batch))
        for index, message in enumerate(left.batch):
            assert isinstance(message, IndexedMessage)
            failed.setdefault(message.place[0], texts[index])
    return sent.written


def _mark_failed(
    rejected: Sequence[RejectedMessages], failed: dict[int, str]
) -> Iterator[RejectedMessages]:
    for one in rejected:
        text = failed.get(one.number)
        if text is not None:
            reason = str(text.reason) if isinstance(text, Rejection) else UNSENT
            yield one._replace(text=str(text), reason=reason, fate=Fate.KEPT, batch=[])


def _make_bounded_sleep(until: float) -> Callable[[int], None]:
    """Return pauses of which there are no more after a time."""

    def sleep(ns: int) -> None:
        left = until - time.monotonic()
        if ns / 1e9 > left:
            raise ReplayTimeoutError(f"the receiver does not answer within {REPLAY_TIMEOUT_S:g} s")
        time.sleep(ns / 1e9)

    return sleep
