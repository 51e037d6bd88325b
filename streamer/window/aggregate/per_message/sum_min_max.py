"""Sums and extremes of numbers; integers are added exactly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import gt, lt
from typing import Any, Literal

from streamer.bloblang.errors import TypeMismatch, UnplacedError
from streamer.bloblang.golib.operations import NUMBER_TYPES
from streamer.window.aggregate.accumulator import InvalidValue
from streamer.window.aggregate.per_message.message_accumulator import (
    InvalidState,
    RowSpan,
    dump_value,
    load_value,
    make_invalid_state,
    select_earlier,
)


def _prepare_numbers(values: list[Any]) -> Sequence[Any]:
    if set(map(type, values)) <= {int, float}:
        return values
    return [_prepare_number(value) for value in values]


def _prepare_number(value: Any) -> Any:
    if type(value) not in NUMBER_TYPES:
        return InvalidValue(0, 0, str(TypeMismatch(value, "number")))
    return int(value) if isinstance(value, int) else float(value)


class SumAccumulator:
    """See `part.Running`. The state is a number, or the last message that is none."""

    empty_state = 0

    def prepare(self, values: list[Any]) -> Sequence[Any]:
        """See `part.Running`."""
        return _prepare_numbers(values)

    def add(self, state: Any, value: Any, arrival: int, place: int) -> Any:
        """See `part.Running`."""
        if type(value) is InvalidValue:
            return make_invalid_state(value, arrival, place)
        return state if type(state) is InvalidState else state + value

    def add_all(self, state: Any, values: Sequence[Any], span: RowSpan, place: int) -> Any:
        """See `part.BulkMessageAccumulator`."""
        first, last, arrivals = span
        for at, value in enumerate(values[first:last]):
            # One by one: a sum of floats depends on their order, and `sum` may correct it.
            if type(value) is InvalidValue:
                state = make_invalid_state(value, arrivals[first + at], place + at)
            elif type(state) is not InvalidState:
                state = state + value
        return state

    def merge(self, one: Any, other: Any) -> Any:
        """See `part.Running`."""
        if type(one) is InvalidState or type(other) is InvalidState:
            # A sum tells of the last of them.
            both = [state for state in (one, other) if type(state) is InvalidState]
            return max(both, key=lambda state: state.arrival)
        return one + other

    def result_of(self, state: Any) -> float:
        """See `part.Running`."""
        if type(state) is InvalidState:
            raise UnplacedError(f"index {state.place}: {state.text}")
        return float(state)

    def dump(self, state: Any) -> Any:
        """See `part.Running`."""
        return {"bad": state} if type(state) is InvalidState else dump_value(state)

    def load(self, plain: Any) -> Any:
        """See `part.Running`."""
        return InvalidState(*plain["bad"]) if type(plain) is dict else load_value(plain)


class ExtremeAccumulator:
    """See `part.Running`. The state is a number, None, or the first message that is no number."""

    empty_state = None

    def __init__(self, kind: Literal["min", "max"], origin: str) -> None:
        """Take which one, and what error texts call the values."""
        self._is_better: Callable[[Any, Any], bool] = lt if kind == "min" else gt
        self._origin = origin

    def prepare(self, values: list[Any]) -> Sequence[Any]:
        """See `part.Running`."""
        return _prepare_numbers(values)

    def add(self, state: Any, value: Any, arrival: int, place: int) -> Any:
        """See `part.Running`."""
        if type(state) is InvalidState:
            return state
        if type(value) is InvalidValue:
            return make_invalid_state(value, arrival, place)
        return value if state is None or self._is_better(value, state) else state

    def merge(self, one: Any, other: Any) -> Any:
        """See `part.Running`."""
        if type(one) is InvalidState:
            return select_earlier(one, other)
        if type(other) is InvalidState or one is None:
            return other
        return other if other is not None and self._is_better(other, one) else one

    def result_of(self, state: Any) -> float:
        """See `part.Running`."""
        if type(state) is InvalidState:
            raise UnplacedError(f"{self._origin}: index {state.place} of array: {state.text}")
        return float(state)

    def dump(self, state: Any) -> Any:
        """See `part.Running`."""
        return {"bad": state} if type(state) is InvalidState else dump_value(state)

    def load(self, plain: Any) -> Any:
        """See `part.Running`."""
        return InvalidState(*plain["bad"]) if type(plain) is dict else load_value(plain)
