"""`string_split`: "splits a string by a delimiter into an array"."""

from __future__ import annotations

from typing import Any, Final

from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.processing.per_message import PerMessageProcessor
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec

DELIMITER: Final = "delimiter"
EMIT_BYTES: Final = "emit_bytes"
EMPTY_AS_NULL: Final = "empty_as_null"

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "string_split",
    "Splits each message at a delimiter, and replaces it by the list of its parts.",
    description="The method `split` of Bloblang does the same within a mapping.",
    fields=(
        Field(
            DELIMITER,
            "string",
            "The text to split at. An empty one splits between characters.",
            default="\n",
            access=Access.NONE,
        ),
        Field(
            EMIT_BYTES,
            "bool",
            "True if the parts are bytes in mappings that follow, and not texts.",
            default=False,
            advanced=True,
        ),
        Field(EMPTY_AS_NULL, "bool", "True if empty parts become `null`.", default=False),
    ),
    examples=(
        Example(
            "Fields of a line",
            "pipeline:\n"
            "  processors:\n"
            "    - string_split:\n"
            '        delimiter: ","\n'
            "        empty_as_null: true\n"
            "    - mapping: root.name = this.0\n",
        ),
    ),
    categories=("Parsing",),
)


class _Splitter:
    """Splits a message."""

    def __init__(self, parsed: ParsedFields) -> None:
        self._delimiter: str = parsed[DELIMITER]
        self._emits_bytes: bool = parsed[EMIT_BYTES]
        self._empty_is_null: bool = parsed[EMPTY_AS_NULL]

    def __call__(self, message: Message, ex: Execution) -> Message:
        """Return the message with the list of its parts in its place."""
        parts = self._split(message.raw)
        return message.with_doc([part or None for part in parts] if self._empty_is_null else parts)

    def _split(self, raw: bytes) -> list[Any]:
        if self._emits_bytes and self._delimiter:
            return raw.split(self._delimiter.encode())
        text = raw.decode(errors="surrogateescape")
        if self._delimiter:
            return text.split(self._delimiter)
        return [one.encode(errors="surrogateescape") if self._emits_bytes else one for one in text]


def build(parsed: ParsedFields, context: BuildContext) -> PerMessageProcessor:
    """Take the fields."""
    return PerMessageProcessor(_Splitter(parsed), ComponentRef(context.component))
