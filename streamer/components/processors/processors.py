"""`processors`: a list of processors as one.

It is for "situations where you want to collect several processors under a single resource
identifier". They do what they would do without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.processing import Processor, run, run_each
from streamer.sdk.processing.composition import ProcessorComposition, compose
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedComponent, Spec

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "processors",
    "Runs a list of processors, which can have one label, or be one resource.",
    config=Field("", "processor", "The processors to run.", default=(), shape="array"),
    examples=(
        Example(
            "A group with a name",
            "pipeline:\n"
            "  processors:\n"
            "    - label: cleaning\n"
            "      processors:\n"
            "        - mapping: root.name = this.name.trim()\n"
            "        - log:\n"
            "            level: DEBUG\n"
            "            message: 'cleaned ${! this.name }'\n",
        ),
    ),
    categories=("Composition",),
)


class ProcessorsProcessor(ProcessorComposition):
    """Runs children over batches."""

    def __init__(self, children: Sequence[Processor]) -> None:
        """Take the children."""
        self._children = children

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return the batches that come out of the last one."""
        return list(run(self._children, [batch], ex))

    def run_singly(self, messages: list[Message], ex: Execution) -> list[Message]:
        """Run the children on messages that are batches by themselves."""
        return [m for batch in run_each(self._children, messages, ex) for m in batch]


def build(parsed: tuple[ParsedComponent, ...], context: BuildContext) -> Processor:
    """Build the children."""
    children = context.build_all(parsed)
    return compose(ProcessorsProcessor(children), children)
