"""`bounds_check`: filters batches that are too large or too small, or have such a message.

It "removes messages (and batches) that do not fit within certain size boundaries". As in Benthos
one message that does not fit takes its whole batch with it; why is logged at the level DEBUG.
"""

from __future__ import annotations

from typing import Final

from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import BuildContext, Field, Kind, ParsedFields, Spec

MAX_PART_SIZE: Final = "max_part_size"
MIN_PART_SIZE: Final = "min_part_size"
MAX_PARTS: Final = "max_parts"
MIN_PARTS: Final = "min_parts"

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "bounds_check",
    "Filters batches whose number of messages, or one of whose messages, is out of bounds.",
    description="Why a batch is filtered is logged at the level DEBUG.",
    fields=(
        Field(
            MAX_PART_SIZE, "int", "The most bytes that a message may have.", default=1_073_741_824
        ),
        Field(MIN_PART_SIZE, "int", "The fewest bytes that a message may have.", default=1),
        Field(
            MAX_PARTS,
            "int",
            "The most messages that a batch may have.",
            default=100,
            advanced=True,
        ),
        Field(
            MIN_PARTS,
            "int",
            "The fewest messages that a batch may have.",
            default=1,
            advanced=True,
        ),
    ),
    categories=("Utility",),
)


class BoundsCheckProcessor:
    """Lets batches through that are within bounds."""

    def __init__(
        self, parts: tuple[int, int], sizes: tuple[int, int], origin: ComponentRef
    ) -> None:
        """Take the fewest and most of messages and of bytes, and who speaks."""
        self._parts = parts
        self._sizes = sizes
        self._origin = origin

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return the batch, or nothing."""
        fault = self._bounds_problem(batch)
        if fault:
            self._origin.log(ex, "DEBUG", f"Rejecting message due to {fault}")
            return []
        return [batch]

    def process_each(self, messages: list[Message], ex: Execution) -> list[Message]:
        """Return those messages that are within bounds as a batch by themselves."""
        return [message for message in messages if self.process([message], ex)]

    def _bounds_problem(self, batch: Batch) -> str:
        minimum, maximum = self._parts
        if len(batch) < minimum:
            return f"message parts below minimum ({minimum}): {len(batch)}"
        if len(batch) > maximum:
            return f"message parts exceeding limit ({maximum}): {len(batch)}"
        low, high = self._sizes
        for message in batch:
            size = len(message.raw)
            if not low <= size <= high:
                return f"message part size ({low} -> {high}): {size}"
        return ""


def build(parsed: ParsedFields, context: BuildContext) -> BoundsCheckProcessor:
    """Take the bounds."""
    return BoundsCheckProcessor(
        (parsed[MIN_PARTS], parsed[MAX_PARTS]),
        (parsed[MIN_PART_SIZE], parsed[MAX_PART_SIZE]),
        ComponentRef(context.component),
    )
