"""Run batches through an output's processors and turn them into the bytes that it writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import compress, count, repeat
from typing import Protocol

from streamer.core.component_stats import ComponentStats
from streamer.core.execution import Execution
from streamer.core.message import Batch, IndexedMessage, Message
from streamer.core.portions import cut_portions
from streamer.engine.report.result_frame import Payload
from streamer.engine.stage.task_transaction import TaskTransaction
from streamer.plan import Plan
from streamer.plan.component_lookup import is_numbered, may_cut_retries
from streamer.sdk.backoff import REPLAY
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.output.protocols import (
    Encoder,
    FailedBatch,
    PlainEncoder,
    SendError,
    TaskCollector,
    TaskEncoder,
    TextEncoder,
    Transactional,
    encode_batch,
)
from streamer.sdk.output.rejection import Reason, Rejection
from streamer.sdk.output.retry import RetryingOutput, make_wait_reporter
from streamer.sdk.output.sender import Sender
from streamer.sdk.output.wait_budget import UnsentBatches, with_wait_budget
from streamer.sdk.processing import Processor, run
from streamer.sdk.spec import ParsedComponent

_JOINED_MESSAGES = 1_000

MAX_PORTION_MESSAGES = 10_000
"""How many are handed on at a time to an output that sends, since it cuts batches itself and sends
some at once: what is said to be batched must be at hand together."""


class Stage(Protocol):
    """The end of a stream: takes batches, and makes payloads of them."""

    def payloads(self, batches: Iterable[Batch], order: int, ex: Execution) -> Iterator[Payload]:
        """Take batches; `order` is where they stand among those of the micro-batch."""

    def finish(self) -> None:
        """Finish: the task has given all of its micro-batch.

        Raises:
            TakenBackError: what was sent is taken back; the task has failed.
        """


class OutputStage:
    """One output with its processors, as the workers run it."""

    def __init__(self, plan: Plan, number: int, component: ParsedComponent) -> None:
        """Build the output of that number."""
        context = plan.context(component)
        self._processors: list[Processor] = context.build_all(component.processors)
        self._sender: Sender = context.build(replace(component, processors=()))
        self._numbers = {**plan.driver_output_numbers, component.path: number}
        self._number = number
        self._key = ComponentRef(component).key
        self._component = component
        log = make_wait_reporter(ComponentRef(component))
        self._retrying = RetryingOutput(self._sender.deliver, REPLAY, log, component)
        self._cuts_tries = may_cut_retries(component, plan.resources)
        self._encoder = self._sender.output if isinstance(self._sender.output, Encoder) else None
        output = self._sender.output
        transactional = isinstance(output, Transactional) and output.transactional
        self._transaction = TaskTransaction(output) if transactional else None
        self._shares_disk = plan.master.startswith("local")
        self._message_numbers = count() if is_numbered(component, plan.resources) else None

    def payloads(self, batches: Iterable[Batch], order: int, ex: Execution) -> Iterator[Payload]:
        """Send batches, or encode them for the driver.

        Args:
            batches: what the pipeline has made.
            order: where they stand among the batches of the micro-batch.
            ex: the run.

        What cannot be sent is sent again for as long as the program runs, as an input of Benthos
        replays what is nacked: that is the back pressure which everything upstream feels. A task
        does not wait for it longer than its wait budget: what is unsent then is handed over, with
        all that comes after it, and sent again by the driver.
        """
        if self._message_numbers is not None:
            ex.origins = None  # these places are for something else
        if self._processors:
            if ex.crashes is not None:
                batches = self._run_past_crashes(batches, ex)
            else:
                work = run if ex.origins is None else _run_with_origins
                batches = work(self._processors, batches, ex)
        if ex.strict:
            batches = reject_failed(batches, self._component, ex)
        if ex.sampler is not None:
            batches = ex.sampler.tap(batches, self._key, "before")
        if self._encoder is not None:
            yield from self._encode_all(self._encoder, batches, order, ex)
            return
        if self._message_numbers is not None:
            batches = self._number_messages(batches, self._message_numbers)
        try:
            for some in cut_portions(batches, MAX_PORTION_MESSAGES):
                yield from self.resend(some, order, ex)
                _forget_origins(ex)
            if self._transaction is not None and ex.crashes is not None:
                ex.crashes.report()  # here, so that what was sent is taken back
        except BaseException:
            if self._transaction is not None:
                self._transaction.abort()
            raise

    def resend(
        self,
        batches: Sequence[Batch],
        order: int,
        ex: Execution,
        deliver: RetryingOutput | None = None,
    ) -> Iterator[Payload]:
        """Send batches on which the output's processors have run; an output that sends can.

        Args:
            batches: the batches.
            order: where they stand among the batches of the micro-batch.
            ex: the run.
            deliver: sends them in the place of the whole output.
        """
        if ex.wait_budget is not None:
            part = ex.micro_batch.part if self._transaction and ex.micro_batch else ""
            ex.wait_budget.place = (self._number, order, part)
            ex.wait_budget.cuts_tries = self._cuts_tries
        began = ex.elapsed()
        try:
            if self._transaction is not None:
                self._send_in_transaction(self._transaction, batches, ex)
                return
            deliver = deliver or self._retrying
            for leaf, route, body, append in deliver.send_until_done(batches, ex):
                yield Payload(order, self._numbers[leaf], route, body, append)
        finally:
            path = self._key[-1]
            ex.send_times[path] = ex.send_times.get(path, 0) + ex.elapsed() - began

    def _run_past_crashes(self, batches: Iterable[Batch], ex: Execution) -> Iterator[Batch]:
        """Run batches through the processors where a worker has died."""
        for some in cut_portions(batches, MAX_PORTION_MESSAGES):
            for made in ex.crashes.run_each_batch(
                self._processors, some, ex, f"output {self._number}"
            ):
                yield from made

    def _encode_all(
        self, output: Encoder, batches: Iterable[Batch], order: int, ex: Execution
    ) -> Iterator[Payload]:
        """Encode batches for the driver."""
        collector: TaskCollector | None = None
        if isinstance(output, TaskEncoder) and ex.micro_batch is not None:
            collector = output.begin_task(ex.micro_batch, shares_disk=self._shares_disk)
        if (policy := getattr(output, "policy", None)) is not None:
            batches = policy.batches(batches, ex)
        output = collector or output
        counted = _join_batches if output.ignores_batches else _count_batches
        for batch in counted(batches, ex.stats_of(self._key)):
            for route, body in self._encode(output, batch, ex):
                yield Payload(order, self._number, route, body, output.append)
            _forget_origins(ex)
        if collector is not None:
            for route, body in collector.finish():
                yield Payload(order, self._number, route, body, False)

    def _encode(self, output: Encoder, batch: Batch, ex: Execution) -> list[tuple[str, bytes]]:
        """Encode a batch; the messages that have no place to go are taken out of the run."""
        items, error = encode_batch(output, batch, ex)
        if error is not None:
            left = FailedBatch(0, [*range(len(batch))], batch, error)
            bad = sorted(error.errors)
            left.subset(bad).reject(self._component.path, self._component.label, ex)
            ex.stats_of(self._key).sent -= len(bad)
        return items

    def finish(self) -> None:
        """End the task's part of the micro-batch; see `Stage`."""
        if self._message_numbers is not None:
            self._message_numbers = count()
        if self._transaction is not None:
            self._transaction.close()

    def _send_in_transaction(
        self, transaction: TaskTransaction, some: Sequence[Batch], ex: Execution
    ) -> None:
        """Send batches in a transaction, unless they have been sent in one."""
        budget, path = ex.wait_budget, self._component.path
        if budget is not None and budget.follows(some, path):
            return
        try:
            should_send = transaction.should_send(ex)
        except SendError as error:
            # None of the task's part has been sent: all of it is, later, in one transaction.
            place = ComponentRef(self._component).fields
            budget.hand_over(UnsentBatches(some, error.text, place, path))
            return
        try:
            if should_send:
                # What has begun cannot be handed over in parts.
                for _ in self._retrying.send_until_done(some, with_wait_budget(ex, None)):
                    raise AssertionError("an output with transactions leaves nothing to write")
            else:
                tally = ex.stats_of(self._key)
                tally.sent += sum(map(len, some))
                tally.batches_sent += len(some)
        except BaseException:
            transaction.abort()
            raise

    def _number_messages(self, batches: Iterable[Batch], places: Iterator[int]) -> Iterator[Batch]:
        """Let messages know where they stand among those of the task."""
        for batch in batches:
            yield [
                IndexedMessage.with_place(message, (self._number, next(places)))
                for message in batch
            ]

    @property
    def is_plain(self) -> bool:
        """Whether messages are written as they are, and alike however they are cut into batches."""
        encoder = self._encoder
        known = isinstance(encoder, PlainEncoder) and encoder.ignores_batches
        return known and not self._processors

    def encode_in_order(
        self, orders: Iterable[int], mapped: Sequence[Message | None], ex: Execution
    ) -> Iterator[Payload]:
        """Encode messages that stand at places of their own, each a batch; `plain` outputs can.

        Args:
            orders: where each stands among those of the micro-batch.
            mapped: the messages; None for one that a mapping has deleted.
            ex: the run, which is not strict.
        """
        output, tally = self._encoder, ex.stats_of(self._key)
        assert isinstance(output, PlainEncoder)
        messages = [message for message in mapped if message is not None]
        if len(messages) < len(mapped):
            orders = compress(orders, [message is not None for message in mapped])
        if ex.sampler is not None:
            for message in messages:
                ex.sampler.sample([message], self._key, "before")
        tally.sent += len(messages)
        tally.batches_sent += len(messages)
        route, bodies = output.encode_each(messages, ex)
        return map(Payload, orders, repeat(self._number), repeat(route), bodies, repeat(True))

    def encode_texts_in_order(
        self, orders: Sequence[int], texts: list[bytes], ex: Execution
    ) -> Iterator[Payload]:
        """Encode messages that are texts already, none of them failed; see `encode_in_order`."""
        output, tally = self._encoder, ex.stats_of(self._key)
        tally.sent += len(texts)
        tally.batches_sent += len(texts)
        if isinstance(output, TextEncoder):
            route, bodies = output.encode_texts(texts)
        else:
            assert isinstance(output, PlainEncoder)
            route, bodies = output.encode_each(list(map(Message, texts)), ex)
        if bodies and len(set(orders)) == 1:
            return iter((Payload(orders[0], self._number, route, b"".join(bodies), True),))
        return map(Payload, orders, repeat(self._number), repeat(route), bodies, repeat(True))


def reject_failed(
    batches: Iterable[Batch], component: ParsedComponent, ex: Execution
) -> Iterator[Batch]:
    """Take messages that have failed out of the run: the output must not get them."""
    path, label = component.path, component.label
    for batch in batches:
        errors = {
            index: Rejection(f"rejecting due to failed processing: {message.error}", Reason.CONFIG)
            for index, message in enumerate(batch)
            if message.error is not None
        }
        if not errors:
            yield batch
            continue
        error = SendError("failed", errors)
        left = FailedBatch(0, [*range(len(batch))], batch, error)
        left.subset([*errors]).reject(path, label, ex)
        kept = [message for index, message in enumerate(batch) if index not in errors]
        if kept:
            yield kept


def _run_with_origins(
    processors: Sequence[Processor], batches: Iterable[Batch], ex: Execution
) -> Iterator[Batch]:
    """Run batches whose messages know what they are made of through processors."""
    for batch in batches:
        place = batch[0].place if batch and isinstance(batch[0], IndexedMessage) else None
        for made in run(processors, [batch], ex):
            yield made if place is None else [IndexedMessage.with_place(one, place) for one in made]


def _forget_origins(ex: Execution) -> None:
    """Forget what is delivered; what has come out so far is all that was taken in."""
    if ex.origins:
        rejected_origins = {one.origin for one in ex.rejected}
        for number in [number for number in ex.origins if number not in rejected_origins]:
            del ex.origins[number]


def _count_batches(batches: Iterable[Batch], tally: ComponentStats) -> Iterator[Batch]:
    for batch in batches:
        tally.sent += len(batch)
        tally.batches_sent += 1
        yield batch


def _join_batches(batches: Iterable[Batch], tally: ComponentStats) -> Iterator[Batch]:
    """Join small batches for an output that cannot tell: one by one they cost four times that."""
    joined: Batch = []
    taken = 0
    for taken, batch in enumerate(batches, 1):  # noqa: B007
        joined.extend(batch)
        if len(joined) >= _JOINED_MESSAGES:
            tally.sent += len(joined)
            yield joined
            joined = []
    tally.batches_sent += taken
    if joined:
        tally.sent += len(joined)
        yield joined
