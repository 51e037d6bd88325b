"""`switch`: "allows you to route messages to different outputs based on their contents"."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from streamer.bloblang import Mapping, compile_mapping
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.backoff import RESEND
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.mapping_query import query_bool
from streamer.sdk.output.in_order import holds_others, waits_for_another
from streamer.sdk.output.protocols import Composition, SendError, SendOrder, SendOutcome
from streamer.sdk.output.rejection import Reason, Rejection
from streamer.sdk.output.retry import HandOverOutput, RetryingOutput, make_attempt_logger
from streamer.sdk.output.wait_budget import NestedWaitBudget, with_wait_budget
from streamer.sdk.spec import (
    BuildContext,
    Example,
    Field,
    Kind,
    ParsedComponent,
    ParsedFields,
    Spec,
)
from streamer.sdk.thread_pool import ComponentPool

RETRY_UNTIL_SUCCESS: Final = "retry_until_success"
STRICT_MODE: Final = "strict_mode"
KEEP_ORDER: Final = "keep_order"
CASES: Final = "cases"
CHECK: Final = "check"
CONTINUE: Final = "continue"
OUTPUT: Final = "output"

# Names of outputs that several cases may have with the same place to write to.
_WRITTEN_BY_DRIVER: Final = ("file", "stdout")

NO_CASE: Final = "no switch output conditions were met by message"


def _problems(parsed: Any) -> Iterable[tuple[str, str]]:
    if len(parsed[CASES]) < 2:
        yield CASES, f"has {len(parsed[CASES])}; expected two cases at least"
    if parsed[RETRY_UNTIL_SUCCESS]:
        for number, case in enumerate(parsed[CASES]):
            if case[OUTPUT].name == "reject":
                yield (
                    f"{CASES}.{number}",
                    "is a reject, which would be tried again for ever; leave out "
                    "retry_until_success",
                )


SPEC: Final = Spec(
    Kind.OUTPUT,
    "switch",
    "Sends each message to the output of the first case that it meets.",
    description=(
        "A message that meets no case is dropped, unless `strict_mode` is set. A check that fails "
        "is not met, and is logged. When an output does not take a message, only that one is sent "
        "again. Each output gets the messages of a batch that are for it as a batch.\n\n"
        "Cases whose outputs send one batch at a time (`max_in_flight: 1`) keep the order of the "
        "messages among each other, as two that write to the same place do: a delete does not "
        "overtake an upsert. In Benthos they do not. The price: one such case sends at a time, and "
        "each gets a batch of the messages that follow one another, so cases that take turns are "
        "sent messages one by one. `keep_order: false` sends to all cases at once. Upserts and "
        "deletes of one table are faster in one `sql_insert` with `upsert_by` and `delete_when`."
    ),
    fields=(
        Field(
            RETRY_UNTIL_SUCCESS,
            "bool",
            "True if each output is tried again by itself until it takes a message. Where a "
            "message may go to several outputs, this saves the others from getting it again.",
            default=False,
        ),
        Field(
            STRICT_MODE,
            "bool",
            "True if a message that meets no case counts as not sent, and is rejected.",
            default=False,
            advanced=True,
        ),
        Field(
            KEEP_ORDER,
            "bool",
            "True if cases whose outputs send one batch at a time keep the order among each other. "
            "They don't where a case has `continue`, and cases whose outputs send several batches "
            "at once never do.",
            default=True,
            advanced=True,
        ),
        Field(
            CASES,
            "object",
            "The cases, in the order in which they are looked at.",
            shape="array",
            examples=(
                [
                    {"check": 'this.type == "foo"', "output": {"stdout": {}}},
                    {"output": {"drop": {}}},
                ],
            ),
            children=(
                Field(
                    CHECK,
                    "string",
                    "A Bloblang query that gives true or false; an empty one is always met.",
                    default="",
                    mapping=True,
                    examples=(
                        'this.type == "foo"',
                        'this.contents.urls.contains("https://example.com/")',
                    ),
                ),
                Field(OUTPUT, "output", "Output for the messages of the case."),
                Field(
                    CONTINUE,
                    "bool",
                    "True if a message that meets the case is shown to the next one too.",
                    default=False,
                    advanced=True,
                ),
            ),
        ),
    ),
    check=_problems,
    examples=(
        Example(
            "By type",
            "output:\n"
            "  switch:\n"
            "    cases:\n"
            '      - check: this.type == "foo"\n'
            "        output: { file: { path: foo.jsonl } }\n"
            "      - output: { stdout: {} }\n"
            "        # Whatever else there is.\n",
        ),
    ),
    categories=("Utility",),
    runs="children",
)


@dataclass(frozen=True, slots=True)
class Case:
    """One case.

    Attributes:
        check: what is asked of a message; None when it is always met.
        output: where messages go that meet it.
        continues: whether the next case is shown them too.
        place: what the driver writes, where nothing leaves the worker and another case may write
            to the same place; None otherwise.
    """

    check: Mapping | None
    output: Composition
    continues: bool
    place: Any = None


@dataclass(slots=True)
class _CaseRun:
    """Messages that follow one another for one case: batches, and where they come from."""

    case: int
    batches: list[Batch] = field(default_factory=list)
    origins: list[tuple[int, list[int]]] = field(default_factory=list)

    def add(self, number: int, place: int, message: Any) -> None:
        if not self.origins or self.origins[-1][0] != number:
            self.origins.append((number, []))
            self.batches.append([])
        self.origins[-1][1].append(place)
        self.batches[-1].append(message)

    def fail(self) -> SendOutcome:
        """Return the outcome of what is not tried, since something before it has failed."""
        outcome = SendOutcome(len(self.batches))
        outcome.errors = [waits_for_another() for _ in self.batches]
        return outcome


def _group_cases(cases: Sequence[Case], keep_order: bool) -> list[int]:
    """Return a number for each case: those of one number keep the order among each other."""
    groups = [*range(len(cases))]
    if not keep_order or any(case.continues for case in cases):
        # What goes to several outputs is not held for one of them: the others would get it again.
        return groups
    first_of: list[tuple[Any, int]] = []
    for number, case in enumerate(cases):
        order = case.output.send_order
        same = order if order is SendOrder.KEPT else case.place
        if same is None:
            continue
        same_group = next((group for other, group in first_of if other == same), None)
        if same_group is None:
            first_of.append((same, number))
        else:
            groups[number] = same_group
    return groups


class SwitchOutput(Composition):
    """Shares messages out among the outputs of its cases."""

    def __init__(
        self, cases: Sequence[Case], strict: bool, origin: ComponentRef, keep_order: bool = True
    ) -> None:
        self._cases = cases
        self._strict = strict
        self._origin = origin
        self._keeps_messages = not any(case.continues for case in cases)
        self._groups = _group_cases(cases, keep_order)
        self._pool = ComponentPool(lambda: None, len(cases))

    def children(self) -> Sequence[Composition]:
        """Return the outputs of the cases."""
        return [case.output for case in self._cases]

    @property
    def send_order(self) -> SendOrder:
        """The order is kept only where all cases that send keep it among each other."""
        sending = {
            group
            for case, group in zip(self._cases, self._groups, strict=True)
            if case.output.send_order is not SendOrder.LOCAL
        }
        return super().send_order if len(sending) < 2 else SendOrder.NONE

    def deliver(
        self, batches: Sequence[Batch], ex: Execution, *, hold: bool = False
    ) -> SendOutcome:
        """Send messages to their outputs: to all at once that keep no order among each other."""
        sent = SendOutcome(len(batches))
        groups: dict[int, list[_CaseRun]] = {}
        newest: dict[int, _CaseRun] = {}
        for number, batch in enumerate(batches):
            ways = [self._matching_cases(batch, place, ex) for place in range(len(batch))]
            if self._strict and not all(ways):
                # Benthos lets the whole batch fail; the others have nothing to do with it.
                text = Rejection(NO_CASE, Reason.CONFIG)
                errors = {place: text for place, way in enumerate(ways) if not way}
                sent.fail(number, SendError(text, errors))
            for place, way in enumerate(ways):
                for case in way:
                    group = self._groups[case]
                    run = newest.get(group)
                    if run is None or run.case != case:
                        run = newest[group] = _CaseRun(case)
                        groups.setdefault(group, []).append(run)
                    run.add(number, place, batch[place])
        used = [groups[group] for group in sorted(groups)]
        outcomes = self._pool.map(
            lambda _, runs, its: self._deliver_runs(runs, its, hold and self._keeps_messages),
            used,
            ex,
        )
        for runs, of_runs in zip(used, outcomes, strict=True):
            for run, outcome in zip(runs, of_runs, strict=True):
                sent.written += outcome.written
                for (number, places), error in zip(run.origins, outcome.errors, strict=True):
                    if error is not None:
                        sent.fail(number, error, places)
        return sent

    def _deliver_runs(
        self, runs: Sequence[_CaseRun], ex: Execution, hold: bool
    ) -> list[SendOutcome]:
        """Send messages to the cases of one group, one case after the other."""
        budget = ex.wait_budget
        if hold and budget is not None and len(runs) > 1:
            # What an output does not take must not count as sent, for what follows would be.
            ex = with_wait_budget(ex, NestedWaitBudget(budget))
        outcomes: list[SendOutcome] = []
        is_blocked = False
        for run in runs:
            if is_blocked:
                outcomes.append(run.fail())
                continue
            outcome = self._cases[run.case].output.deliver(run.batches, ex, hold=hold)
            outcomes.append(outcome)
            is_blocked = hold and any(map(holds_others, outcome.errors))
        return outcomes

    def _matching_cases(self, batch: Batch, place: int, ex: Execution) -> list[int]:
        """Return the cases that a message meets."""
        numbers = []
        for number, case in enumerate(self._cases):
            try:
                met = case.check is None or query_bool(case.check, batch, place, ex)
            except MessageError as error:
                self._origin.log(ex, "ERROR", f"Failed to test case {number}: {error}")
                met = False
            if met:
                numbers.append(number)
                if not case.continues:
                    break
        return numbers


def build(parsed: ParsedFields, context: BuildContext) -> SwitchOutput:
    """Compile the checks and build the outputs."""
    origin = ComponentRef(context.component)
    continues = any(case[CONTINUE] for case in parsed[CASES])

    def child(case: ParsedFields) -> Composition:
        output: Composition = context.build(case[OUTPUT])
        if not parsed[RETRY_UNTIL_SUCCESS]:
            return HandOverOutput(output, case[OUTPUT]) if continues else output
        return RetryingOutput(
            output.deliver, RESEND, make_attempt_logger(origin), case[OUTPUT], output=output
        )

    cases = [
        Case(
            compile_mapping(case[CHECK]) if case[CHECK] else None,
            child(case),
            case[CONTINUE],
            _place_of(case[OUTPUT]),
        )
        for case in parsed[CASES]
    ]
    return SwitchOutput(cases, parsed[STRICT_MODE], origin, parsed[KEEP_ORDER])


def _place_of(output: ParsedComponent) -> Any:
    """Return what two outputs have in common that the driver writes to the same place."""
    return (output.name, output.config) if output.name in _WRITTEN_BY_DRIVER else None
