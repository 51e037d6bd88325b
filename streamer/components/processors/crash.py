"""`crash`: ends the stream with a message.

It "crashes the process using a fatal log message". Source: the documentation of Benthos's
processor; there the process ends, here the stream, since others may run in the same process.
"""

from __future__ import annotations

from typing import Final

from streamer.bloblang import Interpolation, compile_interpolation
from streamer.core.errors import MessageError, StreamAbortedError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import BuildContext, Example, Field, Kind, Spec

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "crash",
    "Ends the stream with a message as the reason.",
    description=(
        "The stream ends at the first message that comes here, and is not started again: the "
        "program ends with the reason on its standard error and exit code 1, and a stream of a "
        "service is `failed`.\n\n"
        "Nothing of the micro-batch in hand is acknowledged. The next start reads it again, and "
        "the message comes here once more if the config is the same."
    ),
    config=Field(
        "",
        "string",
        "The reason.",
        interpolated=True,
        examples=("no price: ${! content() }",),
    ),
    examples=(
        Example(
            "End at a message that must not be there",
            "pipeline:\n"
            "  processors:\n"
            "    - switch:\n"
            "        - check: this.version > 2\n"
            "          processors:\n"
            "            - crash: 'unknown version ${! this.version }'\n",
        ),
    ),
    categories=("Utility",),
    limits="ends the stream, not the process; nothing of the micro-batch is delivered",
)


class CrashProcessor:
    """Ends the stream at the first message."""

    def __init__(self, reason: Interpolation, origin: ComponentRef) -> None:
        """Take the reason, and the component in whose name the stream ends."""
        self._reason = reason
        self._origin = origin

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """End the stream.

        Raises:
            StreamAbortedError: always, but for an empty batch.
        """
        if not batch:
            return []
        try:
            text = self._reason.text_of(batch, 0, ex)
        except MessageError as error:
            text = f"failed to interpolate crash message: {error}"
        _, label, path = self._origin.key
        raise StreamAbortedError(text, label, path)


def build(parsed: str, context: BuildContext) -> CrashProcessor:
    """Compile the reason."""
    return CrashProcessor(compile_interpolation(parsed), ComponentRef(context.component))
