"""Texts and bytes that fields of a model's component give for a message."""

from __future__ import annotations

from typing import Any, Final

from streamer.bloblang import Interpolation, Mapping, compile_interpolation, compile_mapping
from streamer.bloblang.golib.text import to_bytes
from streamer.connectors.ai.errors import ModelError
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.json.parse import parse_json
from streamer.core.message import Message
from streamer.core.value import DELETED, NOTHING
from streamer.sdk.mapping_query import interpolate
from streamer.sdk.spec import ParsedFields

_IMAGE_STARTS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"\x00\x00\x01\x00", "image/x-icon"),
    (b"\x00\x00\x02\x00", "image/x-icon"),
)


class FieldText:
    """A field whose text has interpolations; without the field, the payload of the message."""

    def __init__(self, name: str, text: str | None) -> None:
        """Compile the text."""
        self._name = name
        self._text: Interpolation | None = None if text is None else compile_interpolation(text)

    def of(self, message: Message, ex: Execution) -> str:
        """Return the text for a message.

        Raises:
            MessageError: an expression fails.
        """
        if self._text is None:
            return message.raw.decode(errors="replace")
        return interpolate(self._name, self._text, [message], 0, ex)


class FieldBytes:
    """A field whose mapping gives text, bytes or a document; without it, the message's payload."""

    def __init__(self, name: str, mapping: str | None) -> None:
        """Compile the mapping."""
        self._name = name
        self._mapping: Mapping | None = None if mapping is None else compile_mapping(mapping)

    def of(self, message: Message, ex: Execution) -> bytes:
        """Return the bytes for a message.

        Raises:
            MessageError: the mapping fails, or deletes the message.
        """
        if self._mapping is None:
            return message.raw
        try:
            value = self._mapping.query([message], 0, ex)
        except MessageError as error:
            raise ModelError(f"{self._name} execution error: {error}") from None
        if value is DELETED:
            raise ModelError(f"{self._name}: the mapping deletes the message; expected a value")
        return message.raw if value is NOTHING else to_bytes(value)

    def text_of(self, message: Message, ex: Execution) -> str:
        """Return the text for a message; see `of`."""
        return self.of(message, ex).decode(errors="replace")


def optional_text(name: str, parsed: ParsedFields) -> FieldText | None:
    """Compile a field's text; None where the config does not have the field."""
    return None if parsed[name] is None else FieldText(name, parsed[name])


def optional_bytes(name: str, parsed: ParsedFields) -> FieldBytes | None:
    """Compile a field's mapping; None where the config does not have the field."""
    return None if parsed[name] is None else FieldBytes(name, parsed[name])


def read_history(field: FieldBytes, message: Message, ex: Execution) -> list[dict[str, Any]]:
    """Return the messages of a chat before this one.

    Raises:
        MessageError: the field does not give a list of messages with `role` and `content`.
    """
    try:
        history = parse_json(field.of(message, ex))
    except ValueError as error:
        raise ModelError(f"unable to parse history: {error}") from None
    if history is None:
        return []
    entries: list[Any] = history if isinstance(history, list) else [None]
    if not all(isinstance(entry, dict) and isinstance(entry.get("role"), str) for entry in entries):
        raise ModelError(
            'unable to parse history: expected a list such as [{"role": "user", "content": "Hi"}]'
        )
    return entries


def image_type(image: bytes) -> str:
    """Return the media type of an image by how it begins.

    Raises:
        ModelError: it begins as no image does that models take.

    >>> image_type(b"GIF89a...")
    'image/gif'
    """
    for start, kind in _IMAGE_STARTS:
        if image.startswith(start):
            return kind
    if image[:4] == b"RIFF" and image[8:14] == b"WEBPVP":
        return "image/webp"
    raise ModelError(
        "the field image gives no image; expected the bytes of a PNG, JPEG, GIF, WebP or BMP"
    )
