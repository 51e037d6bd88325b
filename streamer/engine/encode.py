"""Run batches through an output's processors and turn them into the bytes that it writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count, repeat
from typing import Protocol

from streamer.backoff import REPLAY
from streamer.engine.bracket import Bracket
from streamer.engine.frame import Payload
from streamer.engine.portions import cut_portions
from streamer.failure import Origin
from streamer.message import Batch, Execution, Placed
from streamer.pipeline import Processor, run
from streamer.plan import Plan
from streamer.plan.written import cuts_tries, is_numbered
from streamer.sending import Encoder, Left, PlainEncoder, SendError, Transactional, encoded
from streamer.sending.rejection import Reason, Rejection, take_out
from streamer.sending.retrying import Retrying, telling
from streamer.sending.sender import Sender
from streamer.sending.wait_budget import Unsent, with_wait_budget
from streamer.spec import ParsedComponent
from streamer.tally import Tally

_TOGETHER = 1_000

MOST_MESSAGES = 10_000
"""How many are handed on at a time to an output that sends, since it cuts batches itself and sends
some at once: what is said to be batched must be at hand together."""


class Stage(Protocol):
    """What stands at the end of a stream: it takes batches, and makes payloads of them."""

    def payloads(self, batches: Iterable[Batch], order: int, ex: Execution) -> Iterator[Payload]:
        """Take batches; `order` is where they stand among those of the micro-batch."""

    def finish(self) -> None:
        """Hear that the task has given all of its micro-batch.

        Raises:
            TakenBackError: what was sent is taken back; the task has failed.
        """


class OutputStage:
    """One output with its processors, as the workers run it."""

    def __init__(self, plan: Plan, number: int, component: ParsedComponent) -> None:
        """Build the output of that number."""
        context = plan.context(component)
        self._processors: list[Processor] = context.all(component.processors)
        self._sender: Sender = context.build(replace(component, processors=()))
        self._numbers = {**plan.written_numbers, component.path: number}
        self._number = number
        self._key = Origin(component).key
        self._component = component
        log = telling(Origin(component))
        self._retrying = Retrying(self._sender.deliver, REPLAY, log, component)
        self._cuts_tries = cuts_tries(component, plan.resources)
        self._encoder = self._sender.output if isinstance(self._sender.output, Encoder) else None
        output = self._sender.output
        transactional = isinstance(output, Transactional) and output.transactional
        self._bracket = Bracket(output) if transactional else None
        self._places = count() if is_numbered(component, plan.resources) else None

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
        if self._places is not None:
            ex.origins = None  # these places are for something else
        if self._processors:
            if ex.crashes is not None:
                batches = self._past_crashes(batches, ex)
            else:
                work = run if ex.origins is None else _run_traced
                batches = work(self._processors, batches, ex)
        if ex.strict:
            batches = accepted(batches, self._component, ex)
        if ex.sampler is not None:
            batches = ex.sampler.given(batches, self._key, "before")
        output = self._encoder
        if output is not None:
            counted = _together if output.ignores_batches else _one_by_one
            for batch in counted(batches, ex.tally(self._key)):
                for route, body in self._encoded(output, batch, ex):
                    yield Payload(order, self._number, route, body, output.append)
                _forget_origins(ex)
            return
        if self._places is not None:
            batches = self._placed(batches, self._places)
        try:
            for some in cut_portions(batches, MOST_MESSAGES):
                yield from self.resend(some, order, ex)
                _forget_origins(ex)
            if self._bracket is not None and ex.crashes is not None:
                ex.crashes.report()  # here, so that what was sent is taken back
        except BaseException:
            if self._bracket is not None:
                self._bracket.drop()
            raise

    def resend(
        self,
        batches: Sequence[Batch],
        order: int,
        ex: Execution,
        deliver: Retrying | None = None,
    ) -> Iterator[Payload]:
        """Send batches on which the output's processors have run; an output that sends can.

        Args:
            batches: the batches.
            order: where they stand among the batches of the micro-batch.
            ex: the run.
            deliver: sends them in the place of the whole output.
        """
        if ex.wait_budget is not None:
            part = ex.micro_batch.part if self._bracket and ex.micro_batch else ""
            ex.wait_budget.place = (self._number, order, part)
            ex.wait_budget.cuts_tries = self._cuts_tries
        if self._bracket is not None:
            self._bracketed(self._bracket, batches, ex)
            return
        for leaf, route, body, append in (deliver or self._retrying).until_sent(batches, ex):
            yield Payload(order, self._numbers[leaf], route, body, append)

    def _past_crashes(self, batches: Iterable[Batch], ex: Execution) -> Iterator[Batch]:
        """Run batches through the processors where a worker has died."""
        for some in cut_portions(batches, MOST_MESSAGES):
            for made in ex.crashes.passed_apart(
                self._processors, some, ex, f"output {self._number}"
            ):
                yield from made

    def _encoded(self, output: Encoder, batch: Batch, ex: Execution) -> list[tuple[str, bytes]]:
        """Encode a batch; the messages that have no place to go are taken out of the run."""
        items, error = encoded(output, batch, ex)
        if error is not None:
            left = Left(0, [*range(len(batch))], batch, error)
            bad = sorted(error.errors)
            take_out(self._component.path, self._component.label, left.only(bad), ex)
            ex.tally(self._key).sent -= len(bad)
        return items

    def finish(self) -> None:
        """End the task's part of the micro-batch; see `Stage`."""
        if self._places is not None:
            self._places = count()
        if self._bracket is not None:
            self._bracket.close()

    def _bracketed(self, bracket: Bracket, some: Sequence[Batch], ex: Execution) -> None:
        """Send batches in a transaction, unless they have been sent in one."""
        budget, path = ex.wait_budget, self._component.path
        if budget is not None and budget.follows(some, path):
            return
        try:
            takes = bracket.takes(ex)
        except SendError as error:
            # None of the task's part has been sent: all of it is, later, in one transaction.
            place = Origin(self._component).fields
            budget.hand_over(Unsent(some, error.text, place, path))
            return
        try:
            if takes:
                # What has begun cannot be handed over in parts.
                for _ in self._retrying.until_sent(some, with_wait_budget(ex, None)):
                    raise AssertionError("an output with transactions leaves nothing to write")
            else:
                tally = ex.tally(self._key)
                tally.sent += sum(map(len, some))
                tally.batches_sent += len(some)
        except BaseException:
            bracket.drop()
            raise

    def _placed(self, batches: Iterable[Batch], places: Iterator[int]) -> Iterator[Batch]:
        """Let messages know where they stand among those of the task."""
        for batch in batches:
            yield [Placed.like(message, (self._number, next(places))) for message in batch]

    @property
    def plain(self) -> bool:
        """Whether messages are written as they are, and alike however they are cut into batches."""
        encoder = self._encoder
        known = isinstance(encoder, PlainEncoder) and encoder.ignores_batches
        return known and not self._processors

    def ordered(self, orders: Iterable[int], messages: Batch, ex: Execution) -> Iterator[Payload]:
        """Encode messages that stand at places of their own, each a batch; `plain` outputs can.

        Args:
            orders: where each stands among those of the micro-batch.
            messages: the messages.
            ex: the run, which is not strict.
        """
        output, tally = self._encoder, ex.tally(self._key)
        assert isinstance(output, PlainEncoder)
        if ex.sampler is not None:
            for message in messages:
                ex.sampler.note([message], self._key, "before")
        tally.sent += len(messages)
        tally.batches_sent += len(messages)
        route, bodies = output.each(messages, ex)
        return map(Payload, orders, repeat(self._number), repeat(route), bodies, repeat(True))


def accepted(
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
        left = Left(0, [*range(len(batch))], batch, error)
        take_out(path, label, left.only([*errors]), ex)
        kept = [message for index, message in enumerate(batch) if index not in errors]
        if kept:
            yield kept


def _run_traced(
    processors: Sequence[Processor], batches: Iterable[Batch], ex: Execution
) -> Iterator[Batch]:
    """Run batches whose messages know what they are made of through processors."""
    for batch in batches:
        place = batch[0].place if batch and isinstance(batch[0], Placed) else None
        for made in run(processors, [batch], ex):
            yield made if place is None else [Placed.like(one, place) for one in made]


def _forget_origins(ex: Execution) -> None:
    """Forget what is delivered; what has come out so far is all that was taken in."""
    if ex.origins:
        wanted = {one.origin for one in ex.rejected}
        for number in [number for number in ex.origins if number not in wanted]:
            del ex.origins[number]


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
