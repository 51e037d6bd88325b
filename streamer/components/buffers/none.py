"""`none`: no buffer; batches go from the input to the processors as they come.

"Selecting no buffer means the output layer is directly coupled with the input layer."
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from streamer.sdk.spec import BuildContext, Field, Kind, Spec

SPEC: Final = Spec(
    Kind.BUFFER,
    "none",
    "Keeps nothing: messages go straight from the input to the processors. The default.",
    config=Field("", "object", "There is nothing to set.", default={}),
    delivery="nothing is kept",
)


@dataclass(frozen=True, slots=True)
class NoBuffer:
    """The plan has one stage and no state."""


def build(parsed: Any, context: BuildContext) -> NoBuffer:
    """Make one."""
    return NoBuffer()
