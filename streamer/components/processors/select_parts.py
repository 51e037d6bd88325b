"""`select_parts`: keeps some messages of each batch, by their places.

"The selected parts are added to the new message batch in the same order as the selection array."
Places that a batch does not have are left out; a batch of which nothing is left is filtered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.spec import BuildContext, Field, Kind, ParsedFields, Spec

PARTS: Final = "parts"

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "select_parts",
    "Keeps the messages of a batch at given positions, in the order of the positions.",
    description=(
        "Missing positions are ignored, and a batch without any of them is dropped. With `[ "
        "2, 0, 1 ]` a batch of four becomes its third, first and second message."
    ),
    fields=(
        Field(
            PARTS,
            "int",
            "The places, from 0. Negative ones count from the end: -1 is the last message.",
            default=(),
            shape="array",
        ),
    ),
    categories=("Utility",),
)


class SelectPartsProcessor:
    """Picks messages."""

    def __init__(self, parts: Sequence[int]) -> None:
        """Take the places."""
        self._parts = parts

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return the messages at the places as one batch."""
        size = len(batch)
        selected = [batch[place] for place in self._parts if -size <= place < size]
        return [selected] if selected else []


def build(parsed: ParsedFields, context: BuildContext) -> SelectPartsProcessor:
    """Take the places."""
    return SelectPartsProcessor(parsed[PARTS])
