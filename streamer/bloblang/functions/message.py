"""Functions that look at a message: document, metadata, bytes, place in the batch, error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamer.bloblang.declare import Example, Param, declare
from streamer.bloblang.runtime import document, metadata
from streamer.bloblang.runtime.paths import find_or_null, split_path
from streamer.core.message import Batch, Failure, Message

_CATEGORY = "Message Info"
_KEY = Param("key", "string", default="")


@declare(
    "json",
    _CATEGORY,
    Param("path", "string", default=""),
    examples=(Example('root.to = json("a.b")', '{"a":{"b":"c"}}', '{"to":"c"}'),),
    needs=("message",),
    uses=("document",),
)
def json(message: Message, path: str) -> Any:
    """The original document, or its value at a dot path."""
    value = document.get_json_document(message)
    return document.to_plain_number(find_or_null(value, split_path(path)) if path else value)


@declare(
    "content",
    _CATEGORY,
    examples=(Example("root.doc = content().string()", '{"a":1}', '{"doc":"{\\"a\\":1}"}'),),
    needs=("message",),
    uses=("content",),
)
def content(message: Message) -> bytes:
    """The bytes of the original message."""
    return message.raw


@declare(
    "metadata",
    _CATEGORY,
    _KEY,
    examples=(Example('root.topic = metadata("topic").or("none")', "{}", '{"topic":"none"}'),),
    needs=("original",),
    uses=("meta",),
)
def metadata_value(original: Mapping[str, Any], key: str) -> Any:
    """A metadata value of the original message, null when there is none, or all of them."""
    return original.get(key) if key else dict(original)


@declare(
    "meta",
    _CATEGORY,
    _KEY,
    examples=(Example('root.topic = meta("topic").or("none")', "{}", '{"topic":"none"}'),),
    needs=("original",),
    uses=("meta",),
    deprecated=True,
)
def meta(original: Mapping[str, Any], key: str) -> Any:
    """A metadata value of the original message as text, null when there is none, or all of them."""
    return metadata.value_text(original, key) if key else metadata.to_texts(original)


@declare(
    "root_meta",
    _CATEGORY,
    _KEY,
    examples=(Example('meta to = "a"\nroot.to = root_meta("to")', "{}", '{"to":"a"}'),),
    needs=("meta",),
    uses=("meta",),
    deprecated=True,
)
def root_meta(meta: Mapping[str, Any], key: str) -> Any:
    """A metadata value of the new message as text, null when there is none, or all of them."""
    return metadata.value_text(meta, key) if key else metadata.to_texts(meta)


@declare(
    "batch_index",
    _CATEGORY,
    examples=(Example("root.at = batch_index()", "{}", '{"at":0}'),),
    needs=("index",),
    uses=("batch",),
)
def batch_index(index: int) -> int:
    """The message's place in its batch, from 0."""
    return index


@declare(
    "batch_size",
    _CATEGORY,
    examples=(Example("root.of = batch_size()", "{}", '{"of":1}'),),
    needs=("batch",),
    uses=("batch",),
)
def batch_size(batch: Batch) -> int:
    """The number of messages in the batch."""
    return len(batch)


@declare(
    "error",
    _CATEGORY,
    examples=(Example("root.error = error()", "{}", '{"error":null}'),),
    needs=("message",),
    uses=("error",),
)
def error(message: Message) -> str | None:
    """The error that marks the message, or null."""
    return None if message.error is None else str(message.error)


@declare(
    "errored",
    _CATEGORY,
    examples=(Example("root.failed = errored()", "{}", '{"failed":false}'),),
    needs=("message",),
    uses=("error",),
)
def errored(message: Message) -> bool:
    """True if an error marks the message."""
    return message.error is not None


def _declare_error_source(name: str, attribute: str, summary: str) -> Any:
    @declare(
        name,
        _CATEGORY,
        examples=(Example(f"root = {name}()", "{}", "null"),),
        needs=("message",),
        uses=("error",),
        summary=summary,
    )
    def source(message: Message) -> str | None:
        error = message.error
        value: str | None = getattr(error, attribute) if isinstance(error, Failure) else None
        return value

    return source


error_source_name = _declare_error_source(
    "error_source_name", "name", "The type of the component that failed the message, or null."
)
error_source_label = _declare_error_source(
    "error_source_label", "label", "The label of the component that failed the message, or null."
)
error_source_path = _declare_error_source(
    "error_source_path", "path", "The path of the component that failed the message, or null."
)
