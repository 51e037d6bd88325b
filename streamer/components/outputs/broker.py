"""`broker`: "allows you to route messages to multiple child outputs using a range of patterns"."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Sequence
from typing import Final

from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.backoff import RESEND
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.output.in_order import deliver_one_by_one, goes_one_by_one
from streamer.sdk.output.protocols import (
    Composition,
    FailedBatch,
    SendOrder,
    SendOutcome,
    as_untried,
    renumber_failures,
)
from streamer.sdk.output.retry import HandOverOutput, RetryingOutput, make_attempt_logger
from streamer.sdk.output.wait_budget import NestedWaitBudget, UnsentBatches, with_wait_budget
from streamer.sdk.processing.batching import (
    BATCHING_FIELD,
    BatchPolicy,
    batching_problems,
    output_policy,
)
from streamer.sdk.spec import (
    Access,
    BuildContext,
    Example,
    Field,
    Kind,
    ParsedComponent,
    ParsedFields,
    Spec,
)
from streamer.sdk.thread_pool import ComponentPool

COPIES: Final = "copies"
PATTERN: Final = "pattern"
OUTPUTS: Final = "outputs"

FAN_OUT: Final = "fan_out"
FAN_OUT_FAIL_FAST: Final = "fan_out_fail_fast"
SEQUENTIAL: Final = "fan_out_sequential"
SEQUENTIAL_FAIL_FAST: Final = "fan_out_sequential_fail_fast"
ROUND_ROBIN: Final = "round_robin"
GREEDY: Final = "greedy"

_RETRIED_PATTERNS: Final = (FAN_OUT, SEQUENTIAL)


SPEC: Final = Spec(
    Kind.OUTPUT,
    "broker",
    "Sends messages to several outputs: to all of them, or to one each.",
    description=(
        "`fan_out` sends every message to all outputs in parallel, and retries each output "
        "until it accepts the message. `fan_out_fail_fast` sends a message that one output "
        "does not accept to all of them again. `fan_out_sequential` and "
        "`fan_out_sequential_fail_fast` send to an output only when the previous one has "
        "accepted the message. `round_robin` gives each batch, also a retried one, to the "
        "next output in turn; `greedy` gives it to any free output.\n"
        "\n"
        "Each output gets its batches in order. There is no order between outputs, with one "
        "exception: the outputs of `fan_out_sequential` and `fan_out_sequential_fail_fast`, "
        "if all of them send one batch at a time (`max_in_flight: 1`, without their own "
        "`batching`). A batch then goes to all outputs before the next one goes to the first, "
        "while none of them is unavailable.\n"
        "\n"
        "Processors beside an output run on its messages alone, those beside the broker on "
        "all messages."
    ),
    fields=(
        Field(
            COPIES,
            "int",
            "Number of copies of each output.",
            default=1,
            advanced=True,
            check=lambda copies: None if copies >= 1 else f"is {copies}; expected 1 or more",
        ),
        Field(
            PATTERN,
            "string",
            "Distribution of messages.",
            access=Access.NONE,
            default=FAN_OUT,
            options=(
                *(FAN_OUT, FAN_OUT_FAIL_FAST, SEQUENTIAL, SEQUENTIAL_FAIL_FAST),
                *(ROUND_ROBIN, GREEDY),
            ),
        ),
        Field(
            OUTPUTS,
            "output",
            "The outputs.",
            shape="array",
            check=lambda outputs: None if outputs else "is empty; expected one output at least",
            examples=([{"stdout": {}}],),
        ),
        BATCHING_FIELD,
    ),
    check=batching_problems,
    examples=(
        Example(
            "All to a server, and a copy to a file",
            "output:\n"
            "  broker:\n"
            "    pattern: fan_out\n"
            "    outputs:\n"
            "      - http_client: { url: 'http://localhost:8080' }\n"
            "      - file: { path: copy.jsonl }\n",
        ),
    ),
    categories=("Utility",),
    runs="children",
)


class FanOut(Composition):
    """Sends everything to all outputs, at once."""

    def __init__(self, outputs: Sequence[Composition], policy: BatchPolicy | None) -> None:
        self.policy = policy
        self._outputs = outputs
        self._pool = ComponentPool(lambda: None, len(outputs))

    def children(self) -> Sequence[Composition]:
        """Return the outputs."""
        return self._outputs

    def deliver(
        self, batches: Sequence[Batch], ex: Execution, *, hold: bool = False
    ) -> SendOutcome:
        """Send to all; what one does not take counts as not sent."""
        sent = SendOutcome(len(batches))
        # Nothing is held for one output that the others have: they would get it again.
        for outcome in self._pool.map(
            lambda _, output, its: output.deliver(batches, its), self._outputs, ex
        ):
            sent.written += outcome.written
            if any(outcome.errors):
                for number, error in enumerate(outcome.errors):
                    if error is not None:
                        sent.fail(number, error)
        return sent


class SequentialFanOut(Composition):
    """Sends to an output what the one before it has taken."""

    def __init__(
        self,
        outputs: Sequence[Composition],
        policy: BatchPolicy | None,
        to: ParsedComponent | None = None,
        start: int = 0,
    ) -> None:
        self.policy = policy
        self._outputs = outputs
        self._next_output = to
        self._start = start
        self._is_one_by_one = goes_one_by_one(outputs)

    def children(self) -> Sequence[Composition]:
        """Return the outputs."""
        return self._outputs

    def outputs_from(self, start: int) -> SequentialFanOut:
        """Return what sends to the outputs from one on: those before it have the messages."""
        return SequentialFanOut(self._outputs[start:], None, self._next_output, start)

    def deliver(
        self, batches: Sequence[Batch], ex: Execution, *, hold: bool = False
    ) -> SendOutcome:
        """Send to one after the other; what one does not take, those after it don't get."""
        if self._is_one_by_one and len(batches) > 1:

            def deliver(one: Sequence[Batch], its: Execution) -> SendOutcome:
                return self._deliver_in_sequence(one, its, hold=hold)

            return deliver_one_by_one(deliver, batches, ex, hold=hold)
        return self._deliver_in_sequence(batches, ex, hold=hold)

    def _deliver_in_sequence(
        self, batches: Sequence[Batch], ex: Execution, *, hold: bool
    ) -> SendOutcome:
        sent = SendOutcome(len(batches))
        going = as_untried(batches)
        budget = ex.wait_budget
        # What an output does not take must not count as sent, for the next one would get it.
        its = ex if budget is None else with_wait_budget(ex, NestedWaitBudget(budget))
        for number, output in enumerate(self._outputs):
            # Only the first one may hold something: all others would get it again.
            first = not number
            unsent = [one.batch for one in going]
            at, to = self._start + number, self._next_output
            hands_over = budget is not None and budget.hands_over
            if to and hands_over and budget.follows(unsent, to.path, at):
                break
            outcome = output.deliver(unsent, its, hold=hold and first)
            sent.written += outcome.written
            stopped = renumber_failures(going, outcome)
            waiting = [one for one in stopped if one.error.not_tried]
            if to and waiting and hands_over and not (hold and first):
                # Those before this output have it. Who retries a stream's outputs would begin anew.
                text, place = waiting[0].error.text, ComponentRef(to).fields
                unsent_batches = [one.batch for one in waiting]
                budget.hand_over(UnsentBatches(unsent_batches, text, place, to.path, at))
            else:
                waiting = []
            for one in stopped:
                if one not in waiting:
                    sent.fail(one.number, one.error, one.places)
            stopped_places = {(one.number, place) for one in stopped for place in one.places}
            going = [
                left for one in going if (left := _remove_messages(one, stopped_places)).places
            ]
        return sent


def _remove_messages(one: FailedBatch, removed: Container[tuple[int, int]]) -> FailedBatch:
    """Return what is left of a batch without the messages of these numbers and places."""
    remaining = [
        (place, message)
        for place, message in zip(one.places, one.batch, strict=True)
        if (one.number, place) not in removed
    ]
    return one._replace(
        places=[p for p, _ in remaining], batch=[message for _, message in remaining]
    )


class RoundRobin(Composition):
    """Gives each batch to the next output in turn."""

    def __init__(self, outputs: Sequence[Composition], policy: BatchPolicy | None) -> None:
        self.policy = policy
        self._outputs = outputs
        self._next = 0
        self._pool = ComponentPool(lambda: None, len(outputs))

    def children(self) -> Sequence[Composition]:
        """Return the outputs."""
        return self._outputs

    @property
    def send_order(self) -> SendOrder:
        """Several outputs send at once."""
        return _order_side_by_side(self._outputs)

    def deliver(
        self, batches: Sequence[Batch], ex: Execution, *, hold: bool = False
    ) -> SendOutcome:
        """Send each batch to one output."""
        turns: list[list[int]] = [[] for _ in self._outputs]
        for number in range(len(batches)):
            turns[self._next].append(number)
            self._next = (self._next + 1) % len(self._outputs)
        used = [turn for turn, numbers in enumerate(turns) if numbers]
        outcomes = self._pool.map(
            lambda _, turn, its: self._outputs[turn].deliver(
                [batches[number] for number in turns[turn]], its, hold=hold
            ),
            used,
            ex,
        )
        sent = SendOutcome(len(batches))
        for turn, outcome in zip(used, outcomes, strict=True):
            sent.written += outcome.written
            for number, error in zip(turns[turn], outcome.errors, strict=True):
                sent.errors[number] = error
        return sent


class Greedy(Composition):
    """Lets outputs take batches as they can."""

    def __init__(self, outputs: Sequence[Composition], policy: BatchPolicy | None) -> None:
        self.policy = policy
        # An output that can send several batches at once takes that many.
        self._slots = [
            output for output in outputs for _ in range(getattr(output, "max_in_flight", 1))
        ]
        self._outputs = outputs
        self._pool = ComponentPool(lambda: None)

    def children(self) -> Sequence[Composition]:
        """Return the outputs."""
        return self._outputs

    @property
    def send_order(self) -> SendOrder:
        """Several outputs send at once."""
        return _order_side_by_side(self._outputs)

    def deliver(
        self, batches: Sequence[Batch], ex: Execution, *, hold: bool = False
    ) -> SendOutcome:
        """Send each batch to one output, whichever is free."""
        waiting = deque(enumerate(batches))

        def send_waiting(
            output: Composition, execution: Execution
        ) -> list[tuple[int, SendOutcome]]:
            taken: list[tuple[int, SendOutcome]] = []
            while True:
                try:
                    number, batch = waiting.popleft()
                except IndexError:
                    return taken
                taken.append((number, output.deliver([batch], execution)))

        takers = self._slots[: len(batches)]
        sent = SendOutcome(len(batches))
        for taken in self._pool.map(lambda _, output, its: send_waiting(output, its), takers, ex):
            for number, outcome in taken:
                sent.written += outcome.written
                sent.errors[number] = outcome.errors[0]
        return sent


def _order_side_by_side(outputs: Sequence[Composition]) -> SendOrder:
    """Return the order of batches that go to one of several outputs each, to all at once."""
    orders = [output.send_order for output in outputs]
    sending = [order for order in orders if order is not SendOrder.LOCAL]
    return SendOrder.NONE if len(sending) > 1 else next(iter(sending), SendOrder.LOCAL)


_PATTERNS: Final[dict[str, Callable[[Sequence[Composition], BatchPolicy | None], Composition]]] = {
    FAN_OUT: FanOut,
    ROUND_ROBIN: RoundRobin,
    GREEDY: Greedy,
}


def build(parsed: ParsedFields, context: BuildContext) -> Composition:
    """Build the outputs, each as often as it is there, and what shares messages out to them."""
    origin = ComponentRef(context.component)
    components = [*parsed[OUTPUTS]] * parsed[COPIES]
    outputs: list[Composition] = []
    for _ in range(parsed[COPIES]):
        outputs += context.build_all(parsed[OUTPUTS])
    pattern = parsed[PATTERN].lower()
    if pattern in _RETRIED_PATTERNS:
        outputs = [
            RetryingOutput(output.deliver, RESEND, make_attempt_logger(origin), to, output=output)
            for output, to in zip(outputs, components, strict=True)
        ]
    policy = output_policy(parsed, context)
    if pattern == FAN_OUT_FAIL_FAST:
        both = zip(outputs, components, strict=True)
        return FanOut([HandOverOutput(output, to) for output, to in both], policy)
    if pattern in (SEQUENTIAL, SEQUENTIAL_FAIL_FAST):
        return SequentialFanOut(outputs, policy, context.component)
    return _PATTERNS[pattern](outputs, policy)
