"""The message: bytes plus metadata, parsed lazily."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from streamer.core.errors import MessageError
from streamer.core.json.dump import dump_json
from streamer.core.json.parse import parse_json

UNPARSED: Final = object()
"""Stands where a message's document will be once it is asked for."""

NO_META: Final[Mapping[str, Any]] = {}


class Failure(str):
    """The text of an error, and the component that it comes from.

    Attributes:
        name: the component's type (`mapping`).
        label: its label, or an empty string.
        path: where it stands in the config (`pipeline.processors.0`).
        first: the first failure of the message, where this one came later; it is often the cause.
    """

    __slots__ = ("name", "label", "path", "first")
    name: str
    label: str
    path: str
    first: str | None

    def __new__(
        cls, text: str, name: str, label: str = "", path: str = "", first: str | None = None
    ) -> Failure:
        """Make a text that knows its component."""
        self = super().__new__(cls, text)
        self.name, self.label, self.path, self.first = name, label, path, first
        return self

    def __reduce__(self) -> tuple[type[Failure], tuple[str, str, str, str, str | None]]:
        return (Failure, (str(self), self.name, self.label, self.path, self.first))


def first_failure(error: str | None) -> str | None:
    """Return the first failure of a message by its newest one; None where it has not failed."""
    return getattr(error, "first", None) or error


def describe_failure(error: str) -> str:
    """Return the failure of a message with the first one, which it hides, where there are two."""
    first = first_failure(error)
    if first is None or first is error:
        return error
    where = f" of {first.path or first.name}" if isinstance(first, Failure) else ""
    return f"{error} (the first failure{where}: {first})"


class Message:
    """A payload (bytes, or the value that they parse to), metadata, and an error mark.

    A document and a metadata mapping are never changed in place once they are in a message: both
    are shared between copies, between the messages of one source and between windows. A change
    puts a new one there. This is what makes `copy` cheap.

    >>> message = Message(b'{"speed": 31}', {"path": "cars.jsonl"})
    >>> message.doc["speed"], message.meta["path"]
    (31, 'cars.jsonl')
    >>> message.with_doc({"fast": True}).raw
    b'{"fast":true}'

    Attributes:
        meta: metadata by key; values are Bloblang values. Shared, never mutated.
        error: the text of the failure that marks this message, or None; a `Failure` when it is
            known which component it comes from.
    """

    __slots__ = ("_raw", "_doc", "meta", "error")

    def __init__(
        self,
        raw: bytes | None,
        meta: Mapping[str, Any] = NO_META,
        error: str | None = None,
        doc: Any = UNPARSED,
    ) -> None:
        self._raw = raw
        self._doc = doc
        self.meta = meta
        self.error = error

    @classmethod
    def from_value(cls, doc: Any, meta: Mapping[str, Any] = NO_META) -> Message:
        """Make a message whose payload is the JSON of a value.

        Example:
            >>> Message.from_value({"id": 1}).with_added_metadata(lane="3")
            Message(b'{"id":1}', meta={'lane': '3'}, error=None)
        """
        return cls(None, meta, None, doc)

    @property
    def raw(self) -> bytes:
        """The payload as bytes; a value is serialised the first time."""
        if self._raw is None:
            self._raw = dump_json(self._doc)
        return self._raw

    @property
    def doc(self) -> Any:
        """The payload as a parsed value. It is shared: don't change it.

        Raises:
            MessageError: the payload is not JSON.
        """
        if self._doc is UNPARSED:
            try:
                self._doc = parse_json(self._raw or b"")
            except ValueError as e:
                raise MessageError(f"failed to parse message as JSON: {e}") from None
        return self._doc

    def has_doc(self) -> bool:
        """Whether the parsed value is at hand already."""
        return self._doc is not UNPARSED

    def copy(self) -> Message:
        """Return a message that shares payload and metadata with this one."""
        return Message(self._raw, self.meta, self.error, self._doc)

    def with_bytes(self, raw: bytes) -> Message:
        """Return this message with another payload."""
        return Message(raw, self.meta, self.error)

    def with_doc(self, doc: Any) -> Message:
        """Return this message with another payload, given as a value."""
        return Message(None, self.meta, self.error, doc)

    def with_added_metadata(self, **entries: Any) -> Message:
        """Return this message with more metadata."""
        return Message(self._raw, {**self.meta, **entries}, self.error, self._doc)

    def with_metadata(self, meta: Mapping[str, Any]) -> Message:
        """Return this message with other metadata."""
        return Message(self._raw, meta, self.error, self._doc)

    def with_error(self, error: str | None) -> Message:
        """Return this message marked as failed, or with its mark removed."""
        return Message(self._raw, self.meta, error, self._doc)

    def __repr__(self) -> str:
        return f"Message({self.raw!r}, meta={dict(self.meta)!r}, error={self.error!r})"


class IndexedMessage(Message):
    """A message that knows where it stood in a batch that a component has taken apart.

    What becomes of it knows so too, as long as it is made by these methods or by a mapping: so the
    parts can be put together in order again, as Benthos does it.

    Attributes:
        place: where it stood, the innermost component's place last.
    """

    __slots__ = ("place",)
    place: tuple[int, ...]

    @classmethod
    def at_index(cls, message: Message, number: int) -> IndexedMessage:
        """Return a message that knows its place."""
        around = message.place if isinstance(message, IndexedMessage) else ()
        return cls.with_place(message, (*around, number))

    @classmethod
    def with_place(cls, message: Message, place: tuple[int, ...]) -> IndexedMessage:
        """Return a message as one of that place."""
        self = cls(message._raw, message.meta, message.error, message._doc)
        self.place = place
        return self

    def without_innermost_place(self) -> Message:
        """Return the message without its innermost place."""
        if len(self.place) > 1:
            return IndexedMessage.with_place(self, self.place[:-1])
        return Message(self._raw, self.meta, self.error, self._doc)

    def copy(self) -> Message:
        """Return a message that shares payload and metadata with this one."""
        return IndexedMessage.with_place(super().copy(), self.place)

    def with_bytes(self, raw: bytes) -> Message:
        """Return this message with another payload."""
        return IndexedMessage.with_place(super().with_bytes(raw), self.place)

    def with_doc(self, doc: Any) -> Message:
        """Return this message with another payload, given as a value."""
        return IndexedMessage.with_place(super().with_doc(doc), self.place)

    def with_added_metadata(self, **entries: Any) -> Message:
        """Return this message with more metadata."""
        return IndexedMessage.with_place(super().with_added_metadata(**entries), self.place)

    def with_metadata(self, meta: Mapping[str, Any]) -> Message:
        """Return this message with other metadata."""
        return IndexedMessage.with_place(super().with_metadata(meta), self.place)

    def with_error(self, error: str | None) -> Message:
        """Return this message marked as failed, or with its mark removed."""
        return IndexedMessage.with_place(super().with_error(error), self.place)


def keep_place(message: Message, result: Message | None) -> Message | None:
    """Return what a message has become, at its place if it has one."""
    if result is None or not isinstance(message, IndexedMessage):
        return result
    return IndexedMessage.with_place(result, message.place)


Batch = list[Message]
