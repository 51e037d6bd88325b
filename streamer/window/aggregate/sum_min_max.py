"""Sums and extremes of numbers, as Bloblang's `sum`, `min` and `max` give them.

Integers are added exactly as long as int64 holds their sum. Floats are added in order of arrival
within a pack, and packs one after another, so that a sum may differ in its last digits from one
that was added message by message.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamer.bloblang.errors import TypeMismatch, UnplacedError
from streamer.window.aggregate.accumulator import (
    InvalidByGroup,
    InvalidValue,
    ValueColumn,
    concat_invalid,
    decode_invalid,
    encode_invalid,
    find_invalid,
    merge_invalid,
)
from streamer.window.settings.int_codec import Ints

_MAX_EXACT_SUM: Final = 1 << 53
_INT64_LIMIT: Final = 1 << 63


class SumMinMaxState(NamedTuple):
    """By group, a number (int64 or float64); and the groups that are spoilt."""

    values: NDArray[Any]
    invalid: InvalidByGroup


class SumMinMaxAggregate:
    """A sum, the least or the greatest of the numbers that a field holds."""

    def __init__(self, kind: Literal["sum", "min", "max"], origin: str) -> None:
        """Take what to do, and what error texts call the field's values."""
        self._kind = kind
        self._origin = origin
        # `sum` tells of the last message that is no number, the other two of the first.
        self._last = kind == "sum"

    def make_column(self, values: list[Any]) -> ValueColumn:
        """Return the numbers of messages, with something neutral for what is none."""
        kinds = set(map(type, values))
        try:
            if kinds == {int}:
                return ValueColumn(np.array(values, np.int64), size=8 * len(values))
        except OverflowError:
            pass
        if all(issubclass(kind, int | float) and kind is not bool for kind in kinds):
            return ValueColumn(np.array(values, np.float64), size=8 * len(values))
        neutral = {"sum": 0.0, "min": np.inf, "max": -np.inf}[self._kind]
        bad = []
        numbers = []
        for index, value in enumerate(values):
            if isinstance(value, int | float) and type(value) is not bool:
                numbers.append(float(value))
            else:
                numbers.append(neutral)
                bad.append(InvalidValue(index, 0, str(TypeMismatch(value, "number"))))
        return ValueColumn(np.array(numbers, np.float64), bad, 8 * len(values))

    def concat_columns(self, columns: list[ValueColumn]) -> ValueColumn:
        """See `part.Accumulator`."""
        bad = concat_invalid(columns, [len(column.values) for column in columns])
        return ValueColumn(np.concatenate([column.values for column in columns]), bad)

    def make_state(
        self, column: ValueColumn, groups: Ints, count: int, arrivals: Ints
    ) -> SumMinMaxState:
        """See `part.Accumulator`."""
        bad = find_invalid(column, groups, arrivals, self._last)
        return SumMinMaxState(self._reduce(column.values, groups, count), bad)

    def merge_states(
        self, states: list[SumMinMaxState], where: list[Ints], before: list[Ints], count: int
    ) -> SumMinMaxState:
        """See `part.Accumulator`."""
        values = np.concatenate([state.values for state in states])
        bad = merge_invalid([state.invalid for state in states], where, before, self._last)
        return SumMinMaxState(self._reduce(values, np.concatenate(where), count), bad)

    def _reduce(self, values: NDArray[Any], groups: Ints, count: int) -> NDArray[Any]:
        if self._kind == "sum":
            return _sum_groups(values, groups, count)
        least = self._kind == "min"
        extremes = np.full(count, np.inf if least else -np.inf)
        values = values.astype(np.float64)
        (np.fmin if least else np.fmax).at(extremes, groups, values)
        none = np.isnan(values)
        if none.any():
            # What is not a number stays when it comes first, and else is passed over.
            first = np.empty(count, np.int64)
            first[groups[::-1]] = np.arange(len(groups))[::-1]
            some = np.unique(groups[none])
            extremes[some[none[first[some]]]] = np.nan
        return extremes

    def encode_state(self, state: SumMinMaxState) -> bytes:
        """See `part.Accumulator`."""
        kind = b"i" if state.values.dtype == np.int64 else b"f"
        bad = encode_invalid(state.invalid)
        planes = np.ascontiguousarray(state.values).view(np.uint8).reshape(-1, 8).T
        return len(bad).to_bytes(4, "little") + bad + kind + planes.tobytes()

    def decode_state(self, data: bytes, shift: int) -> SumMinMaxState:
        """See `part.Accumulator`."""
        start = 4 + int.from_bytes(data[:4], "little")
        bad = decode_invalid(data[4:start], shift)
        kind: Any = np.int64 if data[start : start + 1] == b"i" else np.float64
        planes = np.frombuffer(data, np.uint8, offset=start + 1).reshape(8, -1)
        return SumMinMaxState(np.ascontiguousarray(planes.T).view(kind).ravel(), bad)

    def result_of(self, state: SumMinMaxState, group: int) -> float:
        """See `part.Accumulator`."""
        if group in state.invalid:
            place, _, text = state.invalid[group]
            if self._kind == "sum":
                raise UnplacedError(f"index {place}: {text}")
            raise UnplacedError(f"{self._origin}: index {place} of array: {text}")
        return float(state.values[group])


def _sum_groups(values: NDArray[Any], groups: Ints, count: int) -> NDArray[Any]:
    if values.dtype != np.int64:
        return np.bincount(groups, values, count)
    most = max(abs(int(values.max())), abs(int(values.min()))) * len(values)
    if most < _MAX_EXACT_SUM:
        return np.bincount(groups, values, count).astype(np.int64)
    if most < _INT64_LIMIT:
        sums = np.zeros(count, np.int64)
        np.add.at(sums, groups, values)
        return sums
    return np.bincount(groups, values.astype(np.float64), count)
