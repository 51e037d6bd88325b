"""`insert_part`: puts a new message into each batch.

"If the specified index is greater than the length of the existing batch it will be appended to the
end." The new message has the metadata of the batch's first one.
"""

from __future__ import annotations

from typing import Final

from streamer.bloblang import Interpolation, compile_interpolation
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import BuildContext, Field, Kind, ParsedFields, Spec

INDEX: Final = "index"
CONTENT: Final = "content"

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "insert_part",
    "Puts a new message into each batch.",
    description=(
        "Its metadata are those of the first message of the batch, which is also used for the "
        "interpolation of the content. If it fails, the error is logged and the batch stays "
        "unchanged."
    ),
    fields=(
        Field(
            INDEX,
            "int",
            "Position of the new message. A negative number counts from the end: -1 is behind "
            "the last message. Beyond either end it is the end.",
            default=-1,
        ),
        Field(
            CONTENT,
            "string",
            "Content of the new message.",
            default="",
            interpolated=True,
        ),
    ),
    categories=("Composition",),
)


class InsertPartProcessor:
    """Puts one message into a batch."""

    def __init__(self, index: int, content: Interpolation, origin: ComponentRef) -> None:
        """Take the fields, and who speaks."""
        self._index = index
        self._content = content
        self._origin = origin

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return the batch with one message more."""
        try:
            made = batch[0].with_bytes(self._content.bytes_of(batch, 0, ex))
        except MessageError as error:
            self._origin.log(ex, "ERROR", f"Content interpolation error: {error}")
            return [batch]
        size = len(batch)
        at = self._index if self._index >= 0 else max(size + self._index + 1, 0)
        return [[*batch[:at], made, *batch[at:]]]


def build(parsed: ParsedFields, context: BuildContext) -> InsertPartProcessor:
    """Compile the content."""
    content = compile_interpolation(parsed[CONTENT])
    return InsertPartProcessor(parsed[INDEX], content, ComponentRef(context.component))
