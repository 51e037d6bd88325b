"""The parsed document of a message, for generated code."""

from __future__ import annotations

from typing import Any

from streamer.bloblang.errors import NoContext, QueryError
from streamer.documents import documents
from streamer.errors import MessageError
from streamer.message import Batch, Message
from streamer.value import Number

_NO_PART = "target message part does not exist"
_PREFIX = "failed to parse message as JSON: "


def _reason(error: MessageError) -> str:
    return str(error).removeprefix(_PREFIX)


def of_message(message: Message) -> Any:
    """Return a message's document for `this`."""
    try:
        return message.doc
    except MessageError as e:
        raise NoContext(_reason(e)) from None


def or_null(message: Message) -> Any:
    """Return a message's document, null when it has none; what `match` looks at by default."""
    try:
        return message.doc
    except MessageError:
        return None


def for_json(message: Message) -> Any:
    """Return a message's document for `json()`, which fails in its own words."""
    try:
        return message.doc
    except MessageError as e:
        raise QueryError(_json_reason(e)) from None


def _json_reason(error: MessageError) -> str:
    reason = _reason(error)
    return _NO_PART if reason == "message is empty" else reason


def of_batch(batch: Batch) -> list[Any]:
    """Return the documents of a batch."""
    try:
        return list(documents(batch, keep=True))
    except (MessageError, ValueError):
        return [for_json(message) for message in batch]


def plain(value: Any) -> Any:
    """Return a value without the text of its number; `json()` gives numbers so."""
    return float(value) if type(value) is Number else value


def at(batch: Batch, index: int) -> Message:
    """Return the message that `from` looks at.

    A negative index counts from the end; where the batch has no message, it is an empty one.
    """
    place = index + len(batch) if index < 0 else index
    return batch[place] if 0 <= place < len(batch) else Message(b"")
