"""`mutation`: changes each message in place by a Bloblang mapping, or filters it.

"Executes a Bloblang mapping and directly transforms the contents of messages, mutating (or
deleting) them": assignments fall on the document itself, so that a later query sees what an
earlier one made, and a later message of the batch sees the earlier messages changed (`from_all`).
A mutation that fails is logged, and its message marked; it keeps the payload that it had.
"""

from __future__ import annotations

from typing import Final

from streamer.bloblang import Mapping, compile_mapping
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.mapping_query import empty_mapping_problem
from streamer.sdk.spec import BuildContext, Example, Field, Kind, Spec

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "mutation",
    "Changes each message by a Bloblang mapping, or deletes it.",
    description=(
        "Where a `mapping` builds a new document, a mutation starts with the message's own, and "
        "each assignment changes what the next one sees. It suits small changes of large "
        "documents. When it fails, the message keeps its payload, the error is logged and the "
        "message is marked as failed."
    ),
    config=Field(
        "",
        "string",
        "The Bloblang mapping.",
        mapping=True,
        check=empty_mapping_problem,
        examples=("root.description = deleted()",),
    ),
    examples=(
        Example(
            "Remove one field and change another",
            "pipeline:\n"
            "  processors:\n"
            "    - mutation: |\n"
            "        root.description = deleted()\n"
            "        root.fans = this.fans.filter(fan -> fan.obsession > 0.5)\n",
        ),
    ),
    categories=("Mapping", "Parsing"),
)


class MutationProcessor:
    """Applies a mutation to every message of a batch."""

    def __init__(self, mapping: Mapping, origin: ComponentRef) -> None:
        self._mapping = mapping
        self._origin = origin
        self._keeps_state = mapping.uses.keyed_state

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return one batch of the changed messages, or none when all were deleted."""
        self._enter_state(ex)
        seen = list(batch)
        made: Batch = []
        for index in range(len(batch)):
            result = self._mutate(seen, index, ex)
            if result is not None:
                seen[index] = result
                made.append(result)
        return [made] if made else []

    def process_each(self, messages: list[Message], ex: Execution) -> list[Message]:
        """Change messages that are batches by themselves."""
        self._enter_state(ex)
        results = (self._mutate([message], 0, ex) for message in messages)
        return [result for result in results if result is not None]

    def _enter_state(self, ex: Execution) -> None:
        if self._keeps_state and ex.keyed_state is not None:
            ex.keyed_state.scope = self._origin.state_scope

    def _mutate(self, batch: Batch, index: int, ex: Execution) -> Message | None:
        try:
            return self._mapping.mutate(batch, index, ex)
        except MessageError as error:
            return self._origin.fail(batch[index], str(error), ex)


def build(parsed: str, context: BuildContext) -> MutationProcessor:
    """Compile the mutation."""
    return MutationProcessor(compile_mapping(parsed), ComponentRef(context.component))
