"""Distinct values: how many, or which in the order of their first message."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

from streamer.bloblang.errors import TypeMismatch, UnplacedError
from streamer.bloblang.runtime.operations import NUMBERS
from streamer.timestamps import Timestamp
from streamer.window.folds.part import Spoiler
from streamer.window.folds.running.part import Span, Spoilt, dump_value, earlier, load_value, spoilt

Known = tuple[dict[Any, int], int]
"""Values by the arrival of their first message, and how many of them there are: a dict is shared by
all states that a window has had, and the first so many are a state's own."""

_TAKEN: Final = frozenset((str, int, float))


class RunningDistinct:
    """See `part.Running`. The state is `Known`, or the first message that spoils the part."""

    def __init__(self, ordered: bool, origin: str) -> None:
        """Take whether the values are asked for, and what error texts call them."""
        self._ordered = ordered
        self._origin = origin

    @property
    def empty(self) -> Known:
        """See `part.Running`; each window gets a dict of its own."""
        return {}, 0

    def prepared(self, values: list[Any]) -> Sequence[Any]:
        """See `part.Running`."""
        if set(map(type, values)) <= _TAKEN:
            return values
        return [self._of(value) for value in values]

    def _of(self, value: Any) -> Any:
        kind = type(value)
        if kind is str:
            return value
        if kind is bytes:
            # They are equal to a text of the same bytes, which hardly comes beside them.
            return value if self._ordered else value.decode("utf-8", "surrogateescape")
        if kind is Timestamp:
            return _Time(value) if self._ordered else str(value)
        if kind in NUMBERS:
            return int(value) if isinstance(value, int) else float(value)
        return Spoiler(0, 0, str(TypeMismatch(value, "string", "number")))

    def add(self, state: Any, value: Any, arrival: int, place: int) -> Any:
        """See `part.Running`."""
        if type(state) is Spoilt:
            return state
        if type(value) is Spoiler:
            return spoilt(value, arrival, place)
        known = state[0]
        if value in known:
            return state
        known[value] = arrival
        return known, len(known)

    def add_all(self, state: Any, values: Sequence[Any], span: Span, place: int) -> Any:
        """See `part.RunningAll`."""
        first, last, arrivals = span
        for at, value in enumerate(values[first:last]):
            if type(state) is Spoilt:
                return state
            if type(value) is Spoiler:
                return spoilt(value, arrivals[first + at], place + at)
            known = state[0]
            if value not in known:
                known[value] = arrivals[first + at]
                state = known, len(known)
        return state

    def joined(self, one: Any, other: Any) -> Any:
        """See `part.Running`."""
        if type(one) is Spoilt:
            return earlier(one, other)
        if type(other) is Spoilt:
            return other
        first: dict[Any, tuple[int, Any]] = {}
        for known, count in (one, other):
            for value, arrival in islice(known.items(), count):
                if value not in first or arrival < first[value][0]:
                    first[value] = (arrival, value)
        together = {value: arrival for arrival, value in sorted(first.values(), key=_arrival)}
        return together, len(together)

    def value(self, state: Any) -> Any:
        """See `part.Running`."""
        if type(state) is Spoilt:
            raise UnplacedError(f"{self._origin}: index {state.place}: {state.text}")
        known, count = state
        return list(map(_value_of, islice(known, count))) if self._ordered else count

    def dump(self, state: Any) -> Any:
        """See `part.Running`."""
        if type(state) is Spoilt:
            return {"bad": state}
        known, count = state
        found = list(islice(known.items(), count))
        arrivals = [arrival for _, arrival in found]
        steps = [b - a for a, b in zip([0, *arrivals], arrivals, strict=False)]
        return [[dump_value(_value_of(value)) for value, _ in found], steps]

    def load(self, plain: Any) -> Any:
        """See `part.Running`."""
        if type(plain) is dict:
            return Spoilt(*plain["bad"])
        known: dict[Any, int] = {}
        arrival = 0
        for value, step in zip(*plain, strict=True):
            arrival += step
            found = load_value(value)
            known[_Time(found) if type(found) is Timestamp else found] = arrival
        return known, len(known)


class _Time(str):
    """A time's text, and the time: it is equal to the text, and to other times of that text."""

    __slots__ = ("time",)
    time: Timestamp

    def __new__(cls, time: Timestamp) -> _Time:
        self = super().__new__(cls, str(time))
        self.time = time
        return self


def _value_of(key: Any) -> Any:
    return key.time if type(key) is _Time else key


def _arrival(entry: tuple[int, Any]) -> int:
    return entry[0]
