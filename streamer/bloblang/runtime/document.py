"""The parsed document of a message, for generated code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from streamer.bloblang.errors import NoContext, QueryError
from streamer.bloblang.runtime.paths import step
from streamer.documents import documents
from streamer.errors import MessageError
from streamer.lazy_batch import Content, LazyBatch
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


def of_batch(batch: Batch) -> Iterable[Any]:
    """Return the documents of a batch, in order; of a lazy one, they are brought together later."""
    try:
        if isinstance(batch, LazyBatch) and batch.content is not None:
            batch.parse()
            return _Documents(batch.content)
        return list(documents(batch, keep=True))
    except (MessageError, ValueError):
        return [for_json(message) for message in batch]


class _Documents:
    """The documents of a lazy batch, for those who look at all of them."""

    def __init__(self, content: Content) -> None:
        self._content = content

    def __iter__(self) -> Iterator[Any]:
        return iter(self._content.documents())


def field_of_batch(batch: Batch, documents: Iterable[Any], name: str) -> list[Any]:
    """Return what `json("name").from_all()` gives.

    Args:
        batch: the batch.
        documents: what `of_batch` gave for it.
        name: of a field, with nothing that is special in a path.
    """
    if isinstance(batch, LazyBatch) and batch.content is not None:
        return batch.content.column(name, lambda docs: _field(docs, name))
    return _field(documents, name)


def _field(documents: Iterable[Any], name: str) -> list[Any]:
    return [
        found
        if type(found := (d.get(name) if type(d) is dict else step(d, name))) is not Number
        else float(found)
        for d in documents
    ]


def plain(value: Any) -> Any:
    """Return a value without the text of its number; `json()` gives numbers so."""
    return float(value) if type(value) is Number else value


def at(batch: Batch, index: int) -> Message:
    """Return the message that `from` looks at.

    A negative index counts from the end; where the batch has no message, it is an empty one.
    """
    place = index + len(batch) if index < 0 else index
    return batch[place] if 0 <= place < len(batch) else Message(b"")
