"""The parsed document of a message, for generated code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from streamer.bloblang.errors import NoContextError, QueryError
from streamer.bloblang.runtime.paths import find_step
from streamer.core.errors import MessageError
from streamer.core.json.bulk import documents_of
from streamer.core.lazy_batch import Content, LazyBatch
from streamer.core.message import Batch, Message
from streamer.core.value import Number

_NO_PART_REASON = "target message part does not exist"
_PREFIX = "failed to parse message as JSON: "


def _parse_reason(error: MessageError) -> str:
    return str(error).removeprefix(_PREFIX)


def get_document(message: Message) -> Any:
    """Return a message's document for `this`."""
    try:
        return message.doc
    except MessageError as e:
        raise NoContextError(_parse_reason(e)) from None


def get_document_or_null(message: Message) -> Any:
    """Return a message's document, null when it has none; what `match` looks at by default."""
    try:
        return message.doc
    except MessageError:
        return None


def get_json_document(message: Message) -> Any:
    """Return a message's document for `json()`, which fails in its own words."""
    try:
        return message.doc
    except MessageError as e:
        raise QueryError(_json_reason(e)) from None


def _json_reason(error: MessageError) -> str:
    reason = _parse_reason(error)
    return _NO_PART_REASON if reason == "message is empty" else reason


def get_batch_documents(batch: Batch) -> Iterable[Any]:
    """Return the documents of a batch, in order; of a lazy one, they are brought together later."""
    try:
        if isinstance(batch, LazyBatch) and batch.content is not None:
            batch.parse()
            return _LazyDocuments(batch.content)
        return list(documents_of(batch, keep=True))
    except (MessageError, ValueError):
        return [get_json_document(message) for message in batch]


class _LazyDocuments:
    """The documents of a lazy batch, for those who look at all of them."""

    def __init__(self, content: Content) -> None:
        self._content = content

    def __iter__(self) -> Iterator[Any]:
        return iter(self._content.documents())


def get_batch_field(batch: Batch, documents: Iterable[Any], name: str) -> list[Any]:
    """Return what `json("name").from_all()` gives.

    Args:
        batch: the batch.
        documents: what `get_batch_documents` gave for it.
        name: of a field, with nothing that is special in a path.
    """
    if isinstance(batch, LazyBatch) and batch.content is not None:
        return batch.content.column(name, lambda docs: _read_field(docs, name))
    return _read_field(documents, name)


def _read_field(documents: Iterable[Any], name: str) -> list[Any]:
    return [
        value
        if type(value := (d.get(name) if type(d) is dict else find_step(d, name))) is not Number
        else float(value)
        for d in documents
    ]


def to_plain_number(value: Any) -> Any:
    """Return a value without the text of its number; `json()` gives numbers so."""
    return float(value) if type(value) is Number else value


def get_message(batch: Batch, index: int) -> Message:
    """Return the message that `from` looks at.

    A negative index counts from the end; where the batch has no message, it is an empty one.
    """
    place = index + len(batch) if index < 0 else index
    return batch[place] if 0 <= place < len(batch) else Message(b"")
