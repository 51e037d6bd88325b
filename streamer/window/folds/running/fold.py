"""A mapping's parts, kept up to date in one window: what messages bring, what it comes to."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from streamer.bloblang.element import Broken
from streamer.bloblang.errors import QueryError, ToldError
from streamer.bloblang.runtime import document
from streamer.message import Message
from streamer.window.folds.accumulators import running_of
from streamer.window.folds.fields import Fields
from streamer.window.folds.groups import fold_for
from streamer.window.folds.running.part import Span, adding_all

States = Sequence[Any]
"""What each part has come to in a window."""


Columns = Sequence[Sequence[Any]]
"""By part, what it takes of each message."""


class Brought(NamedTuple):
    """What messages bring.

    Attributes:
        columns: by part, what it takes of each message.
        broken: by message that is no document, why.
    """

    columns: Columns
    broken: dict[int, str]


class RunningFold:
    """Keeps the parts of one mapping up to date.

    Attributes:
        text: the mapping.
        begin: what the parts are before any message, for a new window.
    """

    def __init__(self, text: str) -> None:
        """Take the mapping.

        Raises:
            StreamerError: this program does not know how to fold it.
        """
        self.text = text
        fold = fold_for(text)
        self._parts = fold.parts
        self._fields = Fields(fold)
        self._runnings = [running_of(part) for part in fold.parts]
        self._adds = [running.add for running in self._runnings]
        self._adds_all = [adding_all(running) for running in self._runnings]

    def begin(self) -> States:
        """Return what the parts are in a window without messages."""
        return [running.empty for running in self._runnings]

    def brought(self, raws: list[bytes]) -> Brought:
        """Return what payloads bring."""
        broken: dict[int, str] = {}
        docs: list[Any] | None = None
        if not self._fields.exact:
            try:
                docs = list(map(orjson.loads, raws))
            except ValueError:
                docs = None
        if docs is None:
            docs = [_document(raw, row, broken) for row, raw in enumerate(raws)]
        values = self._fields.values(docs)
        columns = [r.prepared(some) for r, some in zip(self._runnings, values, strict=True)]
        return Brought(columns, broken)

    def add(self, states: States, columns: Columns, row: int, arrival: int, place: int) -> States:
        """Return what the parts come to with one more message.

        Args:
            states: what they have come to before.
            columns: what messages bring.
            row: which of them it is.
            arrival: its arrival number.
            place: how many messages the window had before.
        """
        return [
            add(state, column[row], arrival, place)
            for add, state, column in zip(self._adds, states, columns, strict=True)
        ]

    def add_all(self, states: States, columns: Columns, span: Span, place: int) -> States:
        """Return what the parts come to with some more messages.

        Args:
            states: what they have come to before.
            columns: what messages bring.
            span: which of them are meant.
            place: how many messages the window had before.
        """
        return [
            add_all(state, column, span, place)
            for add_all, state, column in zip(self._adds_all, states, columns, strict=True)
        ]

    def joined(self, one: States, other: States) -> States:
        """Return what the parts come to over the messages of two windows."""
        runnings = self._runnings
        return [r.joined(a, b) for r, a, b in zip(runnings, one, other, strict=True)]

    def value(self, states: States, broken: str | None, part: int) -> Any:
        """Return what a part comes to.

        Args:
            states: what the parts have come to.
            broken: why the first message that is no document is none.
            part: its number.

        Raises:
            UnplacedError: it fails, in Benthos's words.
        """
        if broken is not None and self._parts[part].element is None and self._parts[part].origin:
            raise ToldError(broken, sealed=False)
        return self._runnings[part].value(states[part])

    def dump(self, states: States) -> list[Any]:
        """Return what the parts have come to as plain values."""
        return [r.dump(state) for r, state in zip(self._runnings, states, strict=True)]

    def load(self, plain: list[Any]) -> States:
        """Return what was dumped."""
        return [r.load(state) for r, state in zip(self._runnings, plain, strict=True)]


@lru_cache(maxsize=64)
def running_fold(text: str) -> RunningFold:
    """Return what keeps the parts of a mapping up to date.

    Raises:
        StreamerError: this program does not know how to fold it.
    """
    return RunningFold(text)


def _document(raw: bytes, row: int, broken: dict[int, str]) -> Any:
    try:
        return document.for_json(Message(raw))
    except QueryError as e:
        broken[row] = str(e)
        return Broken(raw)
