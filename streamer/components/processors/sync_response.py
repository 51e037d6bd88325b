"""`sync_response`: answers the request that a message came with, with the message as it is now.

It "adds the payload in its current state as a synchronous response to the input source". Inputs
that wait for no answer take no notice. The message goes on.
"""

from __future__ import annotations

from typing import Final

from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.spec import BuildContext, Example, Kind, ParsedFields, Spec
from streamer.sdk.sync_response import add_answers

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "sync_response",
    "Answers the request of a message, if its input waits for a response.",
    description=(
        "The response is the message in its present form; it is sent when the whole batch is "
        "finished. Messages pass unchanged. Inputs that do not wait for a response ignore it."
    ),
    examples=(
        Example(
            "Answer with what was made",
            "pipeline:\n"
            "  processors:\n"
            "    - mapping: root.id = uuid_v4()\n"
            "    - sync_response: {}\n",
        ),
    ),
    categories=("Utility",),
)


class SyncResponseProcessor:
    """Answers requests with the messages of a batch."""

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Answer, and return the batch."""
        add_answers(batch, ex)
        return [batch]


def build(parsed: ParsedFields, context: BuildContext) -> SyncResponseProcessor:
    """Make the processor."""
    return SyncResponseProcessor()
