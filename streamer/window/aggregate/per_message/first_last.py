"""The number of messages, and the value of the first or the last of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamer.bloblang.errors import RecordedError
from streamer.bloblang.message_expression import ErrorValue
from streamer.window.aggregate.per_message.message_accumulator import (
    RowSpan,
    dump_value,
    load_value,
)


class CountAccumulator:
    """See `part.Running`. The state is the number."""

    empty_state = 0

    def prepare(self, values: list[Any]) -> Sequence[Any]:
        """See `part.Running`; nothing is taken of a message."""
        return [None] * len(values)

    def add(self, state: int, value: Any, arrival: int, place: int) -> int:
        """See `part.Running`."""
        return state + 1

    def add_all(self, state: int, values: Sequence[Any], span: RowSpan, place: int) -> int:
        """See `part.BulkMessageAccumulator`."""
        return state + span.last - span.first

    def merge(self, one: int, other: int) -> int:
        """See `part.Running`."""
        return one + other

    def result_of(self, state: int) -> int:
        """See `part.Running`."""
        return state

    def dump(self, state: int) -> Any:
        """See `part.Running`."""
        return state

    def load(self, plain: Any) -> int:
        """See `part.Running`."""
        return int(plain)


class FirstLastAccumulator:
    """See `part.Running`. The state is the arrival and the value; None without any."""

    empty_state = None

    def __init__(self, last: bool) -> None:
        """Take which one."""
        self._last = last

    def prepare(self, values: list[Any]) -> Sequence[Any]:
        """See `part.Running`."""
        return values

    def add(self, state: Any, value: Any, arrival: int, place: int) -> Any:
        """See `part.Running`."""
        return (arrival, value) if self._last or state is None else state

    def add_all(self, state: Any, values: Sequence[Any], span: RowSpan, place: int) -> Any:
        """See `part.BulkMessageAccumulator`."""
        if not self._last and state is not None:
            return state
        at = span.last - 1 if self._last else span.first
        return span.arrivals[at], values[at]

    def merge(self, one: Any, other: Any) -> Any:
        """See `part.Running`."""
        if one is None or other is None:
            return one or other
        return one if (one[0] > other[0]) == self._last else other

    def result_of(self, state: Any) -> Any:
        """See `part.Running`."""
        value = state[1]
        if type(value) is ErrorValue:
            raise RecordedError(value.text, value.sealed, value.is_mismatch)
        return value

    def dump(self, state: Any) -> Any:
        """See `part.Running`."""
        return None if state is None else [state[0], dump_value(state[1])]

    def load(self, plain: Any) -> Any:
        """See `part.Running`."""
        return None if plain is None else (plain[0], load_value(plain[1]))
