"""`group_by`: splits a batch into groups by checks, and runs processors on each group.

"Splits a batch of messages into N batches, where each resulting batch contains a group of
messages determined by a Bloblang query." A message joins the first group whose check is true;
those that pass no check are a batch of their own, which comes last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from streamer.bloblang import Mapping, compile_mapping
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.mapping_query import empty_mapping_problem, query_bool
from streamer.sdk.processing import Processor, run
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

CHECK: Final = "check"
PROCESSORS: Final = "processors"

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "group_by",
    "Splits a batch into groups by Bloblang checks, and runs processors on each group.",
    description=(
        "Checks are tried in order, and the first that is true decides. A check that fails is "
        "logged and counts as false. Messages of no group are a batch by themselves, on which no "
        "processors run."
    ),
    config=Field(
        "",
        "object",
        "The groups.",
        shape="array",
        children=(
            Field(
                CHECK,
                "string",
                "A Bloblang query that returns whether a message belongs to the group.",
                mapping=True,
                check=empty_mapping_problem,
                examples=('this.type == "foo"', "true"),
            ),
            Field(
                PROCESSORS,
                "processor",
                "Processors to run on the group's batch.",
                default=(),
                shape="array",
            ),
        ),
    ),
    examples=(
        Example(
            "Mark one kind of message",
            "pipeline:\n"
            "  processors:\n"
            "    - group_by:\n"
            "        - check: 'this.type == \"foo\"'\n"
            "          processors:\n"
            "            - mapping: 'meta grouping = \"foo\"'\n",
        ),
    ),
    categories=("Composition",),
)


@dataclass(frozen=True, slots=True)
class Group:
    """A group: which messages it takes and what runs on them."""

    check: Mapping
    processors: Sequence[Processor]


class GroupByProcessor:
    """Splits batches by the first check that is true."""

    def __init__(self, groups: Sequence[Group], origin: ComponentRef) -> None:
        self._groups = groups
        self._origin = origin

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return what the groups' processors make of their batches, then the messages of none."""
        members: list[Batch] = [[] for _ in self._groups]
        others: Batch = []
        for index, message in enumerate(batch):
            number = self._group_of(batch, index, ex)
            (others if number is None else members[number]).append(message)
        result: list[Batch] = []
        for group, taken in zip(self._groups, members, strict=True):
            result.extend(run(group.processors, [taken], ex))
        if others:
            result.append(others)
        return result

    def _group_of(self, batch: Batch, index: int, ex: Execution) -> int | None:
        for number, group in enumerate(self._groups):
            try:
                if query_bool(group.check, batch, index, ex):
                    return number
            except MessageError as error:
                self._origin.log(ex, "ERROR", f"Failed to test group {number}: {error}")
        return None


def build(parsed: tuple[ParsedFields, ...], context: BuildContext) -> GroupByProcessor:
    """Compile the checks and build the groups' processors."""
    groups = [
        Group(compile_mapping(one[CHECK]), context.build_all(one[PROCESSORS] or ()))
        for one in parsed
    ]
    return GroupByProcessor(groups, ComponentRef(context.component))
