"""`catch`: runs processors on failed messages only, and clears their mark afterwards.

"Processors are only applied to messages that failed a processing step prior to the catch", each
message by itself. "When messages leave the catch block their fail flags are cleared." A message
that is caught stays caught until the end of the block.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.processing import Processor, run_processor
from streamer.sdk.processing.composition import ProcessorComposition, compose
from streamer.sdk.spec import BuildContext, Field, Kind, ParsedComponent, Spec


def _check(children: Sequence[ParsedComponent]) -> Iterable[tuple[str, str]]:
    # Benthos's own lint: within a catch the mark is still there, and a try skips marked messages.
    if any(child.name == "try" for child in children):
        yield (
            "",
            "'catch' block contains a 'try' block which will never execute, since errors are only "
            "cleared at the end of the 'catch'; put an empty 'catch: []' before the 'try'",
        )


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "catch",
    "Runs processors on messages that have failed, and clears their error.",
    description=(
        "Messages without an error skip the block. `error()` within the block returns the text of "
        "the error. An empty list only clears errors."
    ),
    config=Field("", "processor", "The processors to run.", default=(), shape="array"),
    check=_check,
    categories=("Composition",),
)


class CatchProcessor(ProcessorComposition):
    """Runs children over the failed messages of a batch, as batches of one."""

    def __init__(self, children: Sequence[Processor]) -> None:
        self._children = children

    def run_singly(self, messages: list[Message], ex: Execution) -> list[Message]:
        """Run the children on those messages that have failed."""
        results: list[list[Batch]] = [[[message]] for message in messages]
        caught = [index for index, message in enumerate(messages) if message.error is not None]
        if not caught:
            return messages
        for child in self._children:
            for index in caught:
                results[index] = run_processor(child, results[index], ex)
        made = (message for batches in results for batch in batches for message in batch)
        return [m if m.error is None else m.with_error(None) for m in made]


def build(parsed: tuple[ParsedComponent, ...], context: BuildContext) -> Processor:
    """Build the children."""
    children = context.build_all(parsed)
    return compose(CatchProcessor(children), children)
