"""`try`: runs processors on each message by itself, until one of them fails.

"If a message has failed any prior processor (before or during the try block) then that message
will skip all following processors." The messages that come out are one batch again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.sdk.processing import Processor, run_singly
from streamer.sdk.processing.composition import ProcessorComposition, compose
from streamer.sdk.spec import BuildContext, Field, Kind, ParsedComponent, Spec

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "try",
    "Runs processors on each message, until one fails; failed messages skip the rest.",
    description=(
        "Inside, each message is a separate batch. A message that failed before the block "
        "skips all of it; a message that fails inside skips the rest. Handle failed messages "
        "with a `catch` behind it."
    ),
    config=Field("", "processor", "The processors to run.", default=(), shape="array"),
    categories=("Composition",),
)


class TryProcessor(ProcessorComposition):
    """Runs children in strict mode over batches of one."""

    def __init__(self, children: Sequence[Processor]) -> None:
        self._children = children

    def run_singly(self, messages: list[Message], ex: Execution) -> list[Message]:
        """Run the children on each message."""
        batches = run_singly(self._children, messages, ex)
        return [message for batch in batches for message in batch]


def build(parsed: tuple[ParsedComponent, ...], context: BuildContext) -> Processor:
    """Build the children."""
    children = context.build_all(parsed)
    return compose(TryProcessor(children), children)
