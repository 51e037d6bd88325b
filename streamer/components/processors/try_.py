"""`try`: runs processors on each message by itself, until one of them fails.

"If a message has failed any prior processor (before or during the try block) then that message
will skip all following processors." The messages that come out are one batch again.
"""

from __future__ import annotations

from typing import Final

from streamer.core.message import Execution, Message
from streamer.sdk.processing import run_singly
from streamer.sdk.processing.composite import CompositeProcessor, make_composite
from streamer.sdk.spec import BuildContext, Field, Kind, ParsedComponent, Spec

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "try",
    "Runs processors on each message, until one fails; failed messages skip the rest.",
    description=(
        "Each message is a batch by itself inside. A message that failed before the block skips "
        "all of it, one that fails within skips what is left of it. Follow it with a `catch` to "
        "handle the failed ones."
    ),
    config=Field("", "processor", "The processors to run.", default=(), shape="array"),
    categories=("Composition",),
)


def build(parsed: tuple[ParsedComponent, ...], context: BuildContext) -> CompositeProcessor:
    """Build the children, which run in strict mode over batches of one."""
    children = context.build_all(parsed)

    def run_strictly(messages: list[Message], ex: Execution) -> list[Message]:
        batches = run_singly(children, messages, ex)
        return [message for batch in batches for message in batch]

    return make_composite(run_strictly, children)
