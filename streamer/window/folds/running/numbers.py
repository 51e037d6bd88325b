"""Sums and extremes of numbers; integers are added exactly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import gt, lt
from typing import Any, Literal

from streamer.bloblang.errors import TypeMismatch, UnplacedError
from streamer.bloblang.runtime.operations import NUMBERS
from streamer.window.folds.part import Spoiler
from streamer.window.folds.running.part import Span, Spoilt, dump_value, earlier, load_value, spoilt


def _numbers(values: list[Any]) -> Sequence[Any]:
    if set(map(type, values)) <= {int, float}:
        return values
    return [_number(value) for value in values]


def _number(value: Any) -> Any:
    if type(value) not in NUMBERS:
        return Spoiler(0, 0, str(TypeMismatch(value, "number")))
    return int(value) if isinstance(value, int) else float(value)


class RunningSum:
    """See `part.Running`. The state is a number, or the last message that is none."""

    empty = 0

    def prepared(self, values: list[Any]) -> Sequence[Any]:
        """See `part.Running`."""
        return _numbers(values)

    def add(self, state: Any, value: Any, arrival: int, place: int) -> Any:
        """See `part.Running`."""
        if type(value) is Spoiler:
            return spoilt(value, arrival, place)
        return state if type(state) is Spoilt else state + value

    def add_all(self, state: Any, values: Sequence[Any], span: Span, place: int) -> Any:
        """See `part.RunningAll`."""
        first, last, arrivals = span
        for at, value in enumerate(values[first:last]):
            # One by one: a sum of floats depends on their order, and `sum` may correct it.
            if type(value) is Spoiler:
                state = spoilt(value, arrivals[first + at], place + at)
            elif type(state) is not Spoilt:
                state = state + value
        return state

    def joined(self, one: Any, other: Any) -> Any:
        """See `part.Running`."""
        if type(one) is Spoilt or type(other) is Spoilt:
            # A sum tells of the last of them.
            both = [state for state in (one, other) if type(state) is Spoilt]
            return max(both, key=lambda state: state.arrival)
        return one + other

    def value(self, state: Any) -> float:
        """See `part.Running`."""
        if type(state) is Spoilt:
            raise UnplacedError(f"index {state.place}: {state.text}")
        return float(state)

    def dump(self, state: Any) -> Any:
        """See `part.Running`."""
        return {"bad": state} if type(state) is Spoilt else dump_value(state)

    def load(self, plain: Any) -> Any:
        """See `part.Running`."""
        return Spoilt(*plain["bad"]) if type(plain) is dict else load_value(plain)


class RunningExtreme:
    """See `part.Running`. The state is a number, None, or the first message that is no number."""

    empty = None

    def __init__(self, kind: Literal["min", "max"], origin: str) -> None:
        """Take which one, and what error texts call the values."""
        self._better: Callable[[Any, Any], bool] = lt if kind == "min" else gt
        self._origin = origin

    def prepared(self, values: list[Any]) -> Sequence[Any]:
        """See `part.Running`."""
        return _numbers(values)

    def add(self, state: Any, value: Any, arrival: int, place: int) -> Any:
        """See `part.Running`."""
        if type(state) is Spoilt:
            return state
        if type(value) is Spoiler:
            return spoilt(value, arrival, place)
        return value if state is None or self._better(value, state) else state

    def joined(self, one: Any, other: Any) -> Any:
        """See `part.Running`."""
        if type(one) is Spoilt:
            return earlier(one, other)
        if type(other) is Spoilt or one is None:
            return other
        return other if other is not None and self._better(other, one) else one

    def value(self, state: Any) -> float:
        """See `part.Running`."""
        if type(state) is Spoilt:
            raise UnplacedError(f"{self._origin}: index {state.place} of array: {state.text}")
        return float(state)

    def dump(self, state: Any) -> Any:
        """See `part.Running`."""
        return {"bad": state} if type(state) is Spoilt else dump_value(state)

    def load(self, plain: Any) -> Any:
        """See `part.Running`."""
        return Spoilt(*plain["bad"]) if type(plain) is dict else load_value(plain)
