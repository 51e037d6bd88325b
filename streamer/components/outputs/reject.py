"""`reject`: "rejects all messages, treating them as though the output destination failed"."""

from __future__ import annotations

from typing import Final

from streamer.bloblang import Interpolation, compile_interpolation
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.output.protocols import Output, SendError
from streamer.sdk.output.rejection import Reason, Rejection
from streamer.sdk.spec import BuildContext, Example, Field, Kind, Spec

SPEC: Final = Spec(
    Kind.OUTPUT,
    "reject",
    "Takes no message, and says why.",
    description=(
        "A message that is rejected and that nothing catches is dealt with by itself, as the page "
        "on delivery says: who sent it gets an error, or it is sent again later, or dropped. As a "
        "case of a `switch` inside of a `fallback`, the next output gets the message, with the "
        "reason in `fallback_error`."
    ),
    config=Field(
        "",
        "string",
        "The reason.",
        default="",
        interpolated=True,
        check=lambda text: (
            None
            if text
            else "an error message must be provided in order to provide context for the rejection"
        ),
        examples=("failed: ${! error() }",),
    ),
    examples=(
        Example(
            "Keep failed messages apart",
            "output:\n"
            "  fallback:\n"
            "    - switch:\n"
            "        cases:\n"
            "          - check: '!errored()'\n"
            "            output: { stdout: {} }\n"
            "          - output:\n"
            "              reject: 'processing failed: ${! error() }'\n"
            "    - file: { path: failed.jsonl }\n",
        ),
    ),
    categories=("Utility",),
    delivery="nothing leaves",
)


class RejectOutput(Output):
    """Fails with a text, which is that of the first message of a batch."""

    is_local = True

    def __init__(self, reason: Interpolation) -> None:
        self._reason = reason

    def send(self, batch: Batch, ex: Execution) -> None:
        """Send nothing."""
        try:
            text = self._reason.text_of(batch, 0, ex)
        except MessageError as error:
            text = f"reject message interpolation error: {error}"
        reason = Rejection(text, Reason.CONFIG)
        raise SendError(reason, dict.fromkeys(range(len(batch)), reason))


def build(parsed: str, context: BuildContext) -> RejectOutput:
    """Compile the reason."""
    return RejectOutput(compile_interpolation(parsed))
