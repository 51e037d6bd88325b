"""`sync_response`: "returns the final message payload back to the input origin of the message"."""

from __future__ import annotations

from typing import Any, Final

from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.output.protocols import Output
from streamer.sdk.spec import BuildContext, Example, Field, Kind, Spec
from streamer.sdk.sync_response import add_answers

SPEC: Final = Spec(
    Kind.OUTPUT,
    "sync_response",
    "Answers the request that a message came with.",
    description=(
        "`http_server` is the input that waits for answers; messages of others are dropped. It is "
        "safe to use with other outputs in a `broker`: the request is answered when all of them "
        "are done with its messages."
    ),
    config=Field("", "object", "There is nothing to set.", default={}),
    examples=(
        Example(
            "Answer with what is written",
            "input:\n"
            "  http_server: { path: /post }\n"
            "output:\n"
            "  broker:\n"
            "    outputs:\n"
            "      - file: { path: posted.jsonl }\n"
            "      - sync_response: {}\n"
            "        processors:\n"
            "          - mapping: root = content().uppercase()\n",
        ),
    ),
    categories=("Utility",),
    runs="driver",
    delivery="to the request, while it waits",
)


class SyncResponseOutput(Output):
    """Puts messages into the run as answers."""

    is_local = True

    def send(self, batch: Batch, ex: Execution) -> None:
        """Answer; the driver passes it on when the micro-batch is written."""
        add_answers(batch, ex)


def build(parsed: Any, context: BuildContext) -> SyncResponseOutput:
    """Make one."""
    return SyncResponseOutput()
