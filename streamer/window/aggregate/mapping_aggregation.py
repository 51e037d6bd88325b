"""The aggregates of one mapping, kept up to date message by message."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from streamer.bloblang.errors import QueryError, RecordedError
from streamer.bloblang.message_expression import InvalidDocument
from streamer.bloblang.runtime import document
from streamer.core.message import Message
from streamer.window.aggregate.accumulator import RowSpan
from streamer.window.aggregate.fields import FieldReader
from streamer.window.aggregate.partial_aggregates import aggregation_for

States = Sequence[Any]
"""By aggregate, its state in a window."""

ValueColumns = Sequence[Sequence[Any]]
"""By aggregate, what it takes of each message."""


class MessageValues(NamedTuple):
    """The values of some messages.

    Attributes:
        columns: by aggregate, what it takes of each message.
        unparsable: by message that is no document, why.
    """

    columns: ValueColumns
    unparsable: dict[int, str]


class MappingAggregation:
    """Keeps the aggregates of one mapping up to date, in many windows one by one.

    Attributes:
        text: the mapping.
        parts: what it asks of all messages.
    """

    def __init__(self, text: str) -> None:
        """Take the mapping.

        Raises:
            StreamerError: this program cannot aggregate it.
        """
        self.text = text
        aggregation = aggregation_for(text)
        self.parts = aggregation.aggregates
        self._fields = FieldReader(aggregation)
        self._accumulators = self._fields.accumulators
        self._adds = [each.add for each in self._accumulators]
        self._adds_all = [each.add_all for each in self._accumulators]
        self._results_of = [each.result_of for each in self._accumulators]

    def new_states(self) -> States:
        """Return the states of a window without messages."""
        return [each.empty_state for each in self._accumulators]

    def read_messages(self, raws: list[bytes]) -> MessageValues:
        """Return the values of messages, given by their payloads."""
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
        columns = [a.prepare(some) for a, some in zip(self._accumulators, values, strict=True)]
        return MessageValues(columns, broken)

    def add(
        self, states: States, columns: ValueColumns, row: int, arrival: int, place: int
    ) -> States:
        """Return the states with one more message.

        Args:
            states: the states so far.
            columns: the messages' values.
            row: which of them it is.
            arrival: its arrival number.
            place: how many messages the window had before.
        """
        return [
            add(state, column[row], arrival, place)
            for add, state, column in zip(self._adds, states, columns, strict=True)
        ]

    def add_all(self, states: States, columns: ValueColumns, span: RowSpan, place: int) -> States:
        """Return the states with some more messages.

        Args:
            states: the states so far.
            columns: the messages' values.
            span: which of them to add.
            place: how many messages the window had before.
        """
        return [
            add_all(state, column, span, place)
            for add_all, state, column in zip(self._adds_all, states, columns, strict=True)
        ]

    def merge(self, one: States, other: States) -> States:
        """Return the states of the messages of two windows."""
        each = zip(self._accumulators, one, other, strict=True)
        return [accumulator.merge(a, b) for accumulator, a, b in each]

    def result_of(self, states: States, broken: str | None, part: int) -> Any:
        """Return the value of an aggregate.

        Args:
            states: the states.
            broken: why the first message that is no document is none; None without one.
            part: the aggregate's number.

        Raises:
            UnplacedError: it fails, in Benthos's words.
        """
        if broken is not None and self.parts[part].expression is None and self.parts[part].origin:
            raise RecordedError(broken, sealed=False)
        return self._results_of[part](states[part])

    def dump(self, states: States) -> list[Any]:
        """Return the states as values of JSON."""
        return [a.dump(state) for a, state in zip(self._accumulators, states, strict=True)]

    def load(self, plain: list[Any]) -> States:
        """Return the states that were dumped."""
        return [a.load(state) for a, state in zip(self._accumulators, plain, strict=True)]


@lru_cache(maxsize=64)
def mapping_aggregation_for(text: str) -> MappingAggregation:
    """Return the aggregation of a mapping, made once.

    Raises:
        StreamerError: this program cannot aggregate it.
    """
    return MappingAggregation(text)


def _parse_document(raw: bytes, row: int, broken: dict[int, str]) -> Any:
    try:
        return document.get_json_document(Message(raw))
    except QueryError as e:
        broken[row] = str(e)
        return InvalidDocument(raw)
