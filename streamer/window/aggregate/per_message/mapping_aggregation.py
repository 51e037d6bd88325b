"""A mapping's parts, kept up to date in one window: what messages bring, what it comes to."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from streamer.bloblang.errors import QueryError, RecordedError
from streamer.bloblang.message_expression import InvalidDocument
from streamer.bloblang.runtime import document
from streamer.core.message import Message
from streamer.window.aggregate.fields import FieldReader
from streamer.window.aggregate.partial_aggregates import aggregation_for
from streamer.window.aggregate.per_message.message_accumulator import RowSpan, bulk_adder_of
from streamer.window.aggregate.registry import make_message_accumulator

States = Sequence[Any]
"""What each part has come to in a window."""


ValueColumns = Sequence[Sequence[Any]]
"""By part, what it takes of each message."""


class MessageValues(NamedTuple):
    """What messages bring.

    Attributes:
        columns: by part, what it takes of each message.
        unparsable: by message that is no document, why.
    """

    columns: ValueColumns
    unparsable: dict[int, str]


class MappingAggregation:
    """Keeps the parts of one mapping up to date.

    Attributes:
        text: the mapping.
        new_states: what the parts are before any message, for a new window.
    """

    def __init__(self, text: str) -> None:
        """Take the mapping.

        Raises:
            StreamerError: this program does not know how to fold it.
        """
        self.text = text
        aggregation = aggregation_for(text)
        self._parts = aggregation.aggregates
        self._fields = FieldReader(aggregation)
        self._runnings = [make_message_accumulator(part) for part in aggregation.aggregates]
        self._adds = [running.add for running in self._runnings]
        self._adds_all = [bulk_adder_of(running) for running in self._runnings]

    def new_states(self) -> States:
        """Return what the parts are in a window without messages."""
        return [running.empty_state for running in self._runnings]

    def read_messages(self, raws: list[bytes]) -> MessageValues:
        """Return what payloads bring."""
        broken: dict[int, str] = {}
        docs: list[Any] | None = None
        if not self._fields.exact:
            try:
                docs = list(map(orjson.loads, raws))
            except ValueError:
                docs = None
        if docs is None:
            docs = [_parse_document(raw, row, broken) for row, raw in enumerate(raws)]
        values = self._fields.read_values(docs)
        columns = [r.prepare(some) for r, some in zip(self._runnings, values, strict=True)]
        return MessageValues(columns, broken)

    def add(
        self, states: States, columns: ValueColumns, row: int, arrival: int, place: int
    ) -> States:
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

    def add_all(self, states: States, columns: ValueColumns, span: RowSpan, place: int) -> States:
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

    def merge(self, one: States, other: States) -> States:
        """Return what the parts come to over the messages of two windows."""
        runnings = self._runnings
        return [r.merge(a, b) for r, a, b in zip(runnings, one, other, strict=True)]

    def result_of(self, states: States, broken: str | None, part: int) -> Any:
        """Return what a part comes to.

        Args:
            states: what the parts have come to.
            broken: why the first message that is no document is none.
            part: its number.

        Raises:
            UnplacedError: it fails, in Benthos's words.
        """
        if broken is not None and self._parts[part].expression is None and self._parts[part].origin:
            raise RecordedError(broken, sealed=False)
        return self._runnings[part].result_of(states[part])

    def dump(self, states: States) -> list[Any]:
        """Return what the parts have come to as plain values."""
        return [r.dump(state) for r, state in zip(self._runnings, states, strict=True)]

    def load(self, plain: list[Any]) -> States:
        """Return what was dumped."""
        return [r.load(state) for r, state in zip(self._runnings, plain, strict=True)]


@lru_cache(maxsize=64)
def mapping_aggregation_for(text: str) -> MappingAggregation:
    """Return what keeps the parts of a mapping up to date.

    Raises:
        StreamerError: this program does not know how to fold it.
    """
    return MappingAggregation(text)


def _parse_document(raw: bytes, row: int, broken: dict[int, str]) -> Any:
    try:
        return document.get_json_document(Message(raw))
    except QueryError as e:
        broken[row] = str(e)
        return InvalidDocument(raw)
