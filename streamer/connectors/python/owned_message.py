"""Messages as users' functions get and give them: their own to change, and checked afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamer.core.message import NO_META, UNPARSED, Message, keep_place
from streamer.core.python_values import NoValueError, copy_plain, to_message_value


class OwnedMessage(Message):
    """A message of which a function may change document and metadata in place.

    Attributes:
        origin: the message that it was made of.
    """

    __slots__ = ("origin",)
    origin: Message

    @classmethod
    def own(cls, message: Message) -> OwnedMessage:
        """Return a message as one that may be changed."""
        doc = copy_plain(message.doc) if message.has_doc() else UNPARSED
        raw = None if message.has_doc() else message.raw
        self = cls(raw, dict(message.meta), message.error, doc)
        self.origin = message
        return self

    def _again(self, made: Message) -> OwnedMessage:
        again = OwnedMessage(made._raw, made.meta, made.error, made._doc)
        again.origin = self.origin
        return again

    def copy(self) -> Message:
        """Return a message that shares payload and metadata with this one."""
        return self._again(super().copy())

    def with_bytes(self, raw: bytes) -> Message:
        """Return this message with another payload."""
        return self._again(super().with_bytes(raw))

    def with_doc(self, doc: Any) -> Message:
        """Return this message with another payload, given as a value."""
        return self._again(super().with_doc(doc))

    def with_added_metadata(self, **entries: Any) -> Message:
        """Return this message with more metadata."""
        return self._again(super().with_added_metadata(**entries))

    def with_metadata(self, meta: Mapping[str, Any]) -> Message:
        """Return this message with other metadata."""
        return self._again(super().with_metadata(meta))

    def with_error(self, error: str | None) -> Message:
        """Return this message marked as failed, or with its mark removed."""
        return self._again(super().with_error(error))


def check_metadata(meta: Any) -> Mapping[str, Any]:
    """Return metadata that a function has given, as values that messages have.

    Raises:
        NoValueError: it has others.
    """
    if not isinstance(meta, Mapping):
        raise NoValueError(f"the metadata is of the type {type(meta).__name__}; expected dict")
    if not meta:
        return NO_META
    made: Mapping[str, Any] = to_message_value(dict(meta), "the metadata")
    return made


def release(result: Message, origin: Message | None = None) -> Message:
    """Return a message that a function has given, which it can no longer change.

    Args:
        result: the message.
        origin: the message that it stands for; None for the one that it was made of.

    Raises:
        NoValueError: it holds what messages do not have.
    """
    if isinstance(result, OwnedMessage):
        origin = result.origin
    meta = check_metadata(result.meta)
    error = result.error
    if error is not None and not isinstance(error, str):
        raise NoValueError(f"the error is of the type {type(error).__name__}; expected str")
    if not result.has_doc():
        raw = result.raw
        if not isinstance(raw, bytes):
            raise NoValueError(f"the payload is of the type {type(raw).__name__}; expected bytes")
        made = Message(raw, meta, error)
    else:
        doc = to_message_value(result.doc)
        if origin is not None and origin.has_doc() and doc == origin.doc:
            made = Message(origin._raw, meta, error, origin.doc)
        else:
            made = Message(None, meta, error, doc)
    kept = made if origin is None else keep_place(origin, made)
    assert kept is not None
    return kept
