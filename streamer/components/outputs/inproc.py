"""`inproc`: sends messages to inputs `inproc` of the same program.

It "sends data directly to Redpanda Connect inputs by connecting to a unique ID".
"""

from __future__ import annotations

from typing import Final

from streamer.connectors.spool.blocks import pack_batch
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.spec import BuildContext, Example, Field, Kind, Spec

SPEC: Final = Spec(
    Kind.OUTPUT,
    "inproc",
    "Sends messages to inputs `inproc` of the same program.",
    description=(
        "Messages are sent when they are on the disk of the input's stream. Without an input of "
        "this name the output waits, and `/streams` says so. The page of the input has the rest."
    ),
    config=Field(
        "",
        "string",
        "The name that the input has.",
        default="",
        examples=("orders",),
    ),
    examples=(
        Example(
            "The first of two streams of a service",
            "output:\n  inproc: orders\n",
        ),
    ),
    categories=("Utility",),
    runs="driver",
    delivery="exactly once with one input for the name, at least once with several",
)


class InprocOutput:
    """Gives batches to the driver, which passes them on.

    Attributes:
        append: always False: batches are kept apart.
    """

    append: Final = False
    ignores_batches: Final = False

    def encode(self, batch: Batch, ex: Execution) -> list[tuple[str, bytes]]:
        """Return the batch as one item: how many messages it has, and its record of a spool."""
        if not batch:
            return []
        record = pack_batch(batch)
        return [("", record.messages.to_bytes(4, "little") + record.body)]


def build(parsed: str, context: BuildContext) -> InprocOutput:
    """Make one; the driver knows the name."""
    return InprocOutput()
