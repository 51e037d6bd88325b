"""`for_each`: runs processors on each message as if it were a batch by itself.

It "applies a list of child processors to messages of a batch as though they were each a batch of
one message". What comes out of all of them is one batch again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.processing import Processor, run, run_each
from streamer.sdk.processing.composition import ProcessorComposition, compose
from streamer.sdk.spec import BuildContext, Field, Kind, ParsedComponent, Spec

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "for_each",
    "Runs processors on each message of a batch by itself.",
    description=(
        "It is for processors that look at whole batches, which then see batches of one. Most "
        "processors work message by message anyway."
    ),
    config=Field("", "processor", "The processors to run.", default=(), shape="array"),
    categories=("Composition",),
)


class ForEachProcessor(ProcessorComposition):
    """Runs children over batches of one."""

    def __init__(self, children: Sequence[Processor]) -> None:
        """Take the children."""
        self._children = children

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return all that comes out as one batch, in order."""
        singles = ([message] for message in batch)
        made = [message for one in run(self._children, singles, ex) for message in one]
        return [made] if made else []

    def run_singly(self, messages: list[Message], ex: Execution) -> list[Message]:
        """Run the children on messages that are batches by themselves."""
        return [m for batch in run_each(self._children, messages, ex) for m in batch]


def build(parsed: tuple[ParsedComponent, ...], context: BuildContext) -> Processor:
    """Build the children."""
    children = context.build_all(parsed)
    return compose(ForEachProcessor(children), children)
