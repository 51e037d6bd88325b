"""`reject_errored`: "rejects messages that have failed their processing steps".

"... resulting in nack behavior at the input level, otherwise sends them to a child output."
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.output.protocols import Composition, SendError, SendOutcome
from streamer.sdk.output.rejection import Reason, Rejection
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedComponent, Spec

SPEC: Final = Spec(
    Kind.OUTPUT,
    "reject_errored",
    "Sends messages on, but those on which a processor has failed.",
    description=(
        "Of a batch only the messages that have failed are rejected. In a `fallback` the next "
        "output gets them; where nothing catches them, each is dealt with by itself, as the page "
        "on delivery says: who sent it gets an error, or it goes through the processors again "
        "later, or it is dropped."
    ),
    config=Field("", "output", "The output for all others."),
    examples=(
        Example(
            "A file for what could not be processed",
            "pipeline:\n"
            "  processors:\n"
            "    - mapping: root.age = this.age.number()\n"
            "output:\n"
            "  fallback:\n"
            "    - reject_errored:\n"
            "        stdout: {}\n"
            "    - file: { path: failed.jsonl }\n",
        ),
    ),
    categories=("Utility",),
    runs="children",
)


class RejectErroredOutput(Composition):
    """Passes on what no processor has failed on."""

    def __init__(self, output: Composition) -> None:
        self._output = output

    def children(self) -> Sequence[Composition]:
        """Return the output."""
        return (self._output,)

    def deliver(
        self, batches: Sequence[Batch], ex: Execution, *, hold: bool = False
    ) -> SendOutcome:
        """Send the messages that have not failed; the others count as not sent."""
        sent = SendOutcome(len(batches))
        going: list[tuple[int, list[int]]] = []
        for number, batch in enumerate(batches):
            errors = {
                index: Rejection(
                    f"rejecting due to failed processing: {message.error}", Reason.CONFIG
                )
                for index, message in enumerate(batch)
                if message.error is not None
            }
            if errors:
                sent.fail(number, SendError(next(iter(errors.values())), errors))
            places = [index for index in range(len(batch)) if index not in errors]
            if places:
                going.append((number, places))
        passed = [[batches[number][place] for place in places] for number, places in going]
        outcome = self._output.deliver(passed, ex, hold=hold)
        sent.written = outcome.written
        for (number, places), error in zip(going, outcome.errors, strict=True):
            if error is not None:
                sent.fail(number, error, places)
        return sent


def build(parsed: ParsedComponent, context: BuildContext) -> RejectErroredOutput:
    """Build the output."""
    return RejectErroredOutput(context.build(parsed))
