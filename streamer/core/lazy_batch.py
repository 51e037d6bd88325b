"""A batch whose messages are made when somebody looks at them, one by one or all.

When a stream with hopping windows catches up, each message is in many batches that come right after
one another. Most mappings look at the first message of a batch, and at the documents of all: these
are shared, and the other messages are never made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol, SupportsIndex

from streamer.core.message import Batch, Message

Column = Callable[[list[Any]], list[Any]]
"""Takes documents, and gives a value for each."""


class Content(Protocol):
    """The content of a batch; its documents are shared with other batches: they are not changed."""

    @property
    def size(self) -> int:
        """The number of messages, one at least."""

    def first(self) -> Message:
        """Make the first message."""

    def messages(self) -> Batch:
        """Make all messages."""

    def parse(self) -> None:
        """Parse all payloads, so that nothing of what follows fails.

        Raises:
            ValueError, MessageError: one of them is not JSON.
        """

    def documents(self) -> list[Any]:
        """Return the parsed payloads of all messages, as a new list; raises as `parse`."""

    def column(self, name: str, of: Column) -> list[Any]:
        """Return what a function gives for all documents, as a new list; raises as `parse`.

        Args:
            name: names the function: what one of this name has given is given again.
            of: the function, which does not fail.
        """


class LazyBatch(list[Message]):
    """The batch.

    Attributes:
        content: what it holds, as long as no message but the first was asked for; then None.
    """

    def __init__(self, content: Content) -> None:
        """Take what it holds."""
        super().__init__()
        self.content: Content | None = content
        self._first: Message | None = None

    def __len__(self) -> int:
        return super().__len__() if self.content is None else self.content.size

    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        if index == 0 and self.content is not None:
            if self._first is None:
                self._first = self.content.first()
            return self._first
        self.materialise()
        return super().__getitem__(index)

    def parse(self) -> None:
        """Parse all payloads, if that is still to be done; raises as `Content.parse`."""
        if self.content is not None:
            self.content.parse()
            if self._first is not None and not self._first.has_doc():
                self._first = self.content.first()

    def materialise(self) -> None:
        """Make all messages: from now on it is a list like any other."""
        if self.content is None:
            return
        messages = self.content.messages()
        if self._first is not None:
            messages[0] = self._first
        # All at once: more than one thread may look at a batch.
        super().__setitem__(slice(None), messages)
        self.content = None


def _materialise_first(name: str) -> Callable[..., Any]:
    plain = getattr(list, name)

    def method(self: LazyBatch, *args: Any, **keywords: Any) -> Any:
        self.materialise()
        return plain(self, *args, **keywords)

    return method


def _add_to(self: LazyBatch, other: list[Message]) -> list[Message]:
    self.materialise()
    return [*other, *self]


_METHODS: Final = (
    *("__add__", "__contains__", "__delitem__", "__eq__", "__ge__", "__gt__", "__iadd__"),
    *("__imul__", "__iter__", "__le__", "__lt__", "__mul__", "__ne__", "__repr__"),
    *("__reversed__", "__rmul__", "__setitem__", "append", "clear", "copy", "count", "extend"),
    *("index", "insert", "pop", "remove", "reverse", "sort"),
)
for _name in _METHODS:
    setattr(LazyBatch, _name, _materialise_first(_name))
# Without it, `[…] + batch` would add what the list holds before anything was made.
LazyBatch.__radd__ = _add_to  # type: ignore[attr-defined]
