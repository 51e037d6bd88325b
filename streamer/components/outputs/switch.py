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
from streamer.sdk.output.protocols import Composition, SendError, SendOutcome
from streamer.sdk.output.rejection import Reason, Rejection
from streamer.sdk.output.retry import HandOverOutput, RetryingOutput, make_attempt_logger
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec
from streamer.sdk.thread_pool import ComponentPool

RETRY_UNTIL_SUCCESS: Final = "retry_until_success"
STRICT_MODE: Final = "strict_mode"
CASES: Final = "cases"
CHECK: Final = "check"
CONTINUE: Final = "continue"
OUTPUT: Final = "output"

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
        "again. Each output gets the messages of a batch that are for it as a batch."
    ),
    fields=(
        Field(
            RETRY_UNTIL_SUCCESS,
            "bool",
            "Whether each output is tried again by itself until it takes a message. Where a "
            "message may go to several outputs, this saves the others from getting it again.",
            default=False,
        ),
        Field(
            STRICT_MODE,
            "bool",
            "Whether a message that meets no case counts as not sent, and is rejected.",
            default=False,
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
                Field(OUTPUT, "output", "Where messages go that meet the case."),
                Field(
                    CONTINUE,
                    "bool",
                    "Whether a message that meets the case is shown to the next one too.",
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
    """One case: its check (None when it is always met), its output, and whether to go on."""

    check: Mapping | None
    output: Composition
    continues: bool


@dataclass(slots=True)
class _OutputShare:
    """The share of one output: batches, and where their messages come from."""

    batches: list[Batch] = field(default_factory=list)
    origins: list[tuple[int, list[int]]] = field(default_factory=list)

    def add(self, number: int, place: int, message: Any) -> None:
        if not self.origins or self.origins[-1][0] != number:
            self.origins.append((number, []))
            self.batches.append([])
        self.origins[-1][1].append(place)
        self.batches[-1].append(message)


class SwitchOutput(Composition):
    """Shares messages out among the outputs of its cases."""

    def __init__(self, cases: Sequence[Case], strict: bool, origin: ComponentRef) -> None:
        self._cases = cases
        self._strict = strict
        self._origin = origin
        # What goes to several outputs is not held for one of them: the others would get it again.
        self._keeps_messages = not any(case.continues for case in cases)
        self._pool = ComponentPool(lambda: None, len(cases))

    def deliver(
        self, batches: Sequence[Batch], ex: Execution, *, hold: bool = False
    ) -> SendOutcome:
        """Send messages to their outputs, to all of them at once."""
        sent = SendOutcome(len(batches))
        shares = [_OutputShare() for _ in self._cases]
        for number, batch in enumerate(batches):
            ways = [self._matching_cases(batch, place, ex) for place in range(len(batch))]
            if self._strict and not all(ways):
                # Benthos lets the whole batch fail; the others have nothing to do with it.
                text = Rejection(NO_CASE, Reason.CONFIG)
                errors = {place: text for place, way in enumerate(ways) if not way}
                sent.fail(number, SendError(text, errors))
            for place, way in enumerate(ways):
                for target in way:
                    shares[target].add(number, place, batch[place])
        used = [number for number, share in enumerate(shares) if share.batches]
        outcomes = self._pool.map(
            lambda _, one, its: self._cases[one].output.deliver(
                shares[one].batches, its, hold=hold and self._keeps_messages
            ),
            used,
            ex,
        )
        for target, outcome in zip(used, outcomes, strict=True):
            sent.written += outcome.written
            for (number, places), error in zip(shares[target].origins, outcome.errors, strict=True):
                if error is not None:
                    sent.fail(number, error, places)
        return sent

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
        return RetryingOutput(output.deliver, RESEND, make_attempt_logger(origin), case[OUTPUT])

    cases = [
        Case(compile_mapping(case[CHECK]) if case[CHECK] else None, child(case), case[CONTINUE])
        for case in parsed[CASES]
    ]
    return SwitchOutput(cases, parsed[STRICT_MODE], origin)
