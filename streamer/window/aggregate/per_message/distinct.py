"""Distinct values: how many, or which in the order of their first message."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

from streamer.bloblang.errors import TypeMismatch, UnplacedError
from streamer.bloblang.golib.operations import NUMBER_TYPES
from streamer.core.timestamps import Timestamp
from streamer.window.aggregate.accumulator import InvalidValue
from streamer.window.aggregate.per_message.message_accumulator import (
    InvalidState,
    RowSpan,
    dump_value,
    load_value,
    make_invalid_state,
    select_earlier,
)

KnownValues = tuple[dict[Any, int], int]
"""Values by the arrival of their first message, and how many of them there are: a dict is shared by
all states that a window has had, and the first so many are a state's own."""

_PLAIN_TYPES: Final = frozenset((str, int, float))


class DistinctAccumulator:
    """See `part.Running`. The state is `Known`, or the first message that spoils the part."""

    def __init__(self, ordered: bool, origin: str) -> None:
        """Take whether the values are asked for, and what error texts call them."""
        self._ordered = ordered
        self._origin = origin

    @property
    def empty_state(self) -> KnownValues:
        """See `part.Running`; each window gets a dict of its own."""
        return {}, 0

    def prepare(self, values: list[Any]) -> Sequence[Any]:
        """See `part.Running`."""
        if set(map(type, values)) <= _PLAIN_TYPES:
            return values
        return [self._normalise(value) for value in values]

    def _normalise(self, value: Any) -> Any:
        kind = type(value)
        if kind is str:
            return value
        if kind is bytes:
            # They are equal to a text of the same bytes, which hardly comes beside them.
            return value if self._ordered else value.decode("utf-8", "surrogateescape")
        if kind is Timestamp:
            return _TimeText(value) if self._ordered else str(value)
        if kind in NUMBER_TYPES:
            return int(value) if isinstance(value, int) else float(value)
        return InvalidValue(0, 0, str(TypeMismatch(value, "string", "number")))

    def add(self, state: Any, value: Any, arrival: int, place: int) -> Any:
        """See `part.Running`."""
        if type(state) is InvalidState:
            return state
        if type(value) is InvalidValue:
            return make_invalid_state(value, arrival, place)
        known = state[0]
        if value in known:
            return state
        known[value] = arrival
        return known, len(known)

    def add_all(self, state: Any, values: Sequence[Any], span: RowSpan, place: int) -> Any:
        """See `part.BulkMessageAccumulator`."""
        first, last, arrivals = span
        for at, value in enumerate(values[first:last]):
            if type(state) is InvalidState:
                return state
            if type(value) is InvalidValue:
                return make_invalid_state(value, arrivals[first + at], place + at)
            known = state[0]
            if value not in known:
                known[value] = arrivals[first + at]
                state = known, len(known)
        return state

    def merge(self, one: Any, other: Any) -> Any:
        """See `part.Running`."""
        if type(one) is InvalidState:
            return select_earlier(one, other)
        if type(other) is InvalidState:
            return other
        first: dict[Any, tuple[int, Any]] = {}
        for known, count in (one, other):
            for value, arrival in islice(known.items(), count):
                if value not in first or arrival < first[value][0]:
                    first[value] = (arrival, value)
        together = {value: arrival for arrival, value in sorted(first.values(), key=_arrival_of)}
        return together, len(together)

    def result_of(self, state: Any) -> Any:
        """See `part.Running`."""
        if type(state) is InvalidState:
            raise UnplacedError(f"{self._origin}: index {state.place}: {state.text}")
        known, count = state
        return list(map(_value_of, islice(known, count))) if self._ordered else count

    def dump(self, state: Any) -> Any:
        """See `part.Running`."""
        if type(state) is InvalidState:
            return {"bad": state}
        known, count = state
        entries = list(islice(known.items(), count))
        arrivals = [arrival for _, arrival in entries]
        steps = [b - a for a, b in zip([0, *arrivals], arrivals, strict=False)]
        return [[dump_value(_value_of(value)) for value, _ in entries], steps]

    def load(self, plain: Any) -> Any:
        """See `part.Running`."""
        if type(plain) is dict:
            return InvalidState(*plain["bad"])
        known: dict[Any, int] = {}
        arrival = 0
        for value, step in zip(*plain, strict=True):
            arrival += step
            item = load_value(value)
            known[_TimeText(item) if type(item) is Timestamp else item] = arrival
        return known, len(known)


class _TimeText(str):
    """A time's text, and the time: it is equal to the text, and to other times of that text."""

    __slots__ = ("time",)
    time: Timestamp

    def __new__(cls, time: Timestamp) -> _TimeText:
        self = super().__new__(cls, str(time))
        self.time = time
        return self


def _value_of(key: Any) -> Any:
    return key.time if type(key) is _TimeText else key


def _arrival_of(entry: tuple[int, Any]) -> int:
    return entry[0]
