"""`switch`: runs the processors of the first case whose check is true.

"For each switch case a Bloblang query is checked and, if the result is true (or the check is empty)
the child processors are executed on the message." The messages of a batch are checked one by one;
those of a case are a batch for its processors. What comes out is one batch, in the order in which
the messages came in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from streamer.bloblang import Mapping, compile_mapping
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch, IndexedMessage, Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.mapping_query import query_bool
from streamer.sdk.processing import Processor, run
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

CHECK: Final = "check"
PROCESSORS: Final = "processors"
FALLTHROUGH: Final = "fallthrough"
CONTINUE: Final = "continue"


def _check(cases: Sequence[ParsedFields]) -> Iterable[tuple[str, str]]:
    for number, case in enumerate(cases):
        if case[FALLTHROUGH] and case[CONTINUE]:
            text = "a case cannot have both 'fallthrough' and 'continue' set to true"
            yield f"{number}.{CONTINUE}", text
        if not case[PROCESSORS]:
            text = "case has no processors, in order to have a no-op case use a `noop` processor"
            yield f"{number}", text


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "switch",
    "Runs processors on messages that pass a check; the first case that is passed decides.",
    description=(
        "A message that passes no case stays as it is. When a check fails, the message is "
        "marked as failed, and no further case is tried. The messages of a case are one batch "
        "for its processors. At the end all are one batch again, in their original order, "
        "even if the processors have split them. To keep groups apart use `group_by`."
    ),
    config=Field(
        "",
        "object",
        "The cases, in the order in which they are tried.",
        shape="array",
        children=(
            Field(
                CHECK,
                "string",
                "A Bloblang query that returns whether the case is for a message; empty for all.",
                default="",
                mapping=True,
                examples=(
                    'this.type == "foo"',
                    'this.contents.urls.contains("https://benthos.dev/")',
                ),
            ),
            Field(
                PROCESSORS,
                "processor",
                "Processors to run on the case's messages.",
                default=(),
                shape="array",
            ),
            Field(
                FALLTHROUGH,
                "bool",
                "Run the next case's processors too, without its check.",
                default=False,
                advanced=True,
            ),
            Field(
                CONTINUE,
                "bool",
                "Try the next case too, with its check.",
                default=False,
                advanced=True,
            ),
        ),
    ),
    check=_check,
    examples=(
        Example(
            "Ignore George",
            "pipeline:\n"
            "  processors:\n"
            "    - switch:\n"
            '        - check: this.user.name.first != "George"\n'
            "          processors:\n"
            "            - mapping: root.cared_about = true\n"
            "        - processors:\n"
            "            - mapping: root = deleted()\n",
        ),
    ),
    categories=("Composition",),
)


@dataclass(frozen=True, slots=True)
class Case:
    """A case: which messages it takes (None for all), what runs on them, and what comes then."""

    check: Mapping | None
    processors: Sequence[Processor]
    fallthrough: bool = False
    continues: bool = False


class SwitchProcessor:
    """Tries cases in turn, each with the messages that no case before it has taken."""

    def __init__(self, cases: Sequence[Case], origin: ComponentRef) -> None:
        """Take the cases, and where they stand."""
        self._cases = cases
        self._origin = origin

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return all that the cases make as one batch."""
        result: Batch = []
        remaining: Batch = [
            IndexedMessage.at_index(message, number) for number, message in enumerate(batch)
        ]
        fallen: Batch = []
        for number, case in enumerate(self._cases):
            taken, others = fallen, list[Message]()
            for index, message in enumerate(remaining):
                try:
                    takes = case.check is None or query_bool(case.check, remaining, index, ex)
                except MessageError as error:
                    line = f"Failed to test case {number}: {error}"
                    result.append(self._origin.fail_unattributed(message, str(error), ex, line))
                    continue
                (taken if takes else others).append(message)
            remaining, fallen = others, []
            where = fallen if case.fallthrough else remaining if case.continues else result
            for made in run(case.processors, [taken], ex):
                where += made
        result += remaining
        return [_sort_by_place(result)] if result else []


def _sort_by_place(batch: Batch) -> Batch:
    """Sort what has come out by where it stood; what is new stays about where it came out."""
    keys = [
        m.place[-1] if isinstance(m, IndexedMessage) else number for number, m in enumerate(batch)
    ]
    numbers = sorted(range(len(batch)), key=keys.__getitem__)
    return [_without_place(batch[number]) for number in numbers]


def _without_place(message: Message) -> Message:
    return message.without_innermost_place() if isinstance(message, IndexedMessage) else message


def build(parsed: Sequence[ParsedFields], context: BuildContext) -> SwitchProcessor:
    """Compile the checks and build the cases' processors."""
    cases = [
        Case(
            compile_mapping(one[CHECK]) if one[CHECK].strip() else None,
            context.build_all(one[PROCESSORS]),
            one[FALLTHROUGH],
            one[CONTINUE],
        )
        for one in parsed
    ]
    return SwitchProcessor(cases, ComponentRef(context.component))
