"""`drop`: "drops all messages"."""

from __future__ import annotations

from typing import Any, Final

from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.spec import BuildContext, Field, Kind, Spec

SPEC: Final = Spec(
    Kind.OUTPUT,
    "drop",
    "Drops all messages.",
    config=Field("", "object", "There is nothing to set.", default={}),
    categories=("Utility",),
    delivery="nothing leaves",
)


class DropOutput:
    """Writes nothing.

    Attributes:
        append: see `FileOutput`.
    """

    append: Final = True

    @property
    def ignores_batches(self) -> bool:
        """Always True: nothing is written, however messages are cut into batches."""
        return True

    def encode(self, batch: Batch, ex: Execution) -> list[tuple[str, bytes]]:
        """Return nothing to write."""
        return []

    def encode_each(self, batch: Batch, ex: Execution) -> tuple[str, list[bytes]]:
        """Return nothing to write."""
        return "", []


def build(parsed: Any, context: BuildContext) -> DropOutput:
    """Make one."""
    return DropOutput()
