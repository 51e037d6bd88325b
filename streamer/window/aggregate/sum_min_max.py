"""Sums and extremes of numbers, as Bloblang's `sum`, `min` and `max` give them.

The per-message form adds integers exactly, and all numbers in order of arrival. The column form
adds integers exactly as long as int64 holds their sum, and floats in order of arrival within a
pack, and packs one after another: such a sum may differ in its last digits from the other form's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import gt, lt
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamer.bloblang.errors import QueryError, UnplacedError
from streamer.window.aggregate.accumulator import (
    InvalidByGroup,
    InvalidValue,
    RowSpan,
    ValueColumn,
    decode_invalid,
    encode_invalid,
    find_invalid,
    merge_invalid,
    take_by_group,
)
from streamer.window.aggregate.number_columns import NumberColumnAccumulator
from streamer.window.aggregate.value_codec import dump_value, load_value
from streamer.window.settings.int_codec import Ints

_MAX_EXACT_SUM: Final = 1 << 53
_INT64_LIMIT: Final = 1 << 63


class SumMinMaxState(NamedTuple):
    """By group, a number (int64 or float64); and the invalid values."""

    values: NDArray[Any]
    invalid: InvalidByGroup


class _NumberAccumulator(NumberColumnAccumulator):
    """Reduces numbers to one; a window's state is a number, `InvalidValue` or None."""

    def _reduce(self, values: NDArray[Any], groups: Ints, count: int) -> NDArray[Any]:
        """Return by group what its values, in order of arrival, are reduced to."""
        raise NotImplementedError

    def make_state(
        self, column: ValueColumn, groups: Ints, count: int, arrivals: Ints
    ) -> SumMinMaxState:
        """Reduce the values of each group."""
        invalid = find_invalid(column, groups, arrivals, self._reports_last)
        return SumMinMaxState(self._reduce(column.values, groups, count), invalid)

    def merge_states(
        self, states: list[SumMinMaxState], where: list[Ints], before: list[Ints], count: int
    ) -> SumMinMaxState:
        """Reduce the numbers of each group's partial states."""
        values = np.concatenate([state.values for state in states])
        invalid = merge_invalid(states, where, before, self._reports_last)
        return SumMinMaxState(self._reduce(values, np.concatenate(where), count), invalid)

    def take_groups(self, state: SumMinMaxState, indices: Ints) -> SumMinMaxState:
        """Return the state of some groups."""
        invalid = take_by_group(state.invalid, indices)
        return SumMinMaxState(state.values[indices], invalid)

    def encode_state(self, state: SumMinMaxState) -> bytes:
        """Write the invalid values, the type, then all first bytes, all second bytes and so on."""
        kind = b"i" if state.values.dtype == np.int64 else b"f"
        invalid = encode_invalid(state.invalid) or b"[]"
        planes = np.ascontiguousarray(state.values).view(np.uint8).reshape(-1, 8).T
        return len(invalid).to_bytes(4, "little") + invalid + kind + planes.tobytes()

    def decode_state(self, data: bytes, shift: int) -> SumMinMaxState:
        """Read what `encode_state` wrote."""
        start = 4 + int.from_bytes(data[:4], "little")
        invalid = decode_invalid(data[4:start], shift)
        kind: Any = np.int64 if data[start : start + 1] == b"i" else np.float64
        planes = np.frombuffer(data, np.uint8, offset=start + 1).reshape(8, -1)
        return SumMinMaxState(np.ascontiguousarray(planes.T).view(kind).ravel(), invalid)

    def result_of_group(self, state: SumMinMaxState, group: int) -> float:
        """Return a group's sum or extreme."""
        if group in state.invalid:
            raise self._make_error(state.invalid[group])
        return float(state.values[group])

    def results_of_groups(self, state: SumMinMaxState, groups: Ints) -> list[Any]:
        """Return the sums or extremes of some groups."""
        if state.invalid:
            return super().results_of_groups(state, groups)
        results: list[Any] = state.values[groups].astype(np.float64).tolist()
        return results

    def result_of(self, state: Any) -> float:
        """Return a window's sum or extreme."""
        if type(state) is InvalidValue:
            raise self._make_error(state)
        return float(state)

    def _dump_valid(self, state: Any) -> Any:
        return dump_value(state)

    def _load_valid(self, plain: Any) -> Any:
        return load_value(plain)


class SumAccumulator(_NumberAccumulator):
    """The sum of numbers; its error is about the last value that is no number, as in Benthos."""

    _reports_last = True
    empty_state = 0

    def _reduce(self, values: NDArray[Any], groups: Ints, count: int) -> NDArray[Any]:
        if values.dtype != np.int64:
            return np.bincount(groups, values, count)
        if not len(values):
            # A filter has left none in a window of some messages.
            return np.zeros(count, np.int64)
        most = max(abs(int(values.max())), abs(int(values.min()))) * len(values)
        if most < _MAX_EXACT_SUM:
            return np.bincount(groups, values, count).astype(np.int64)
        if most < _INT64_LIMIT:
            sums = np.zeros(count, np.int64)
            np.add.at(sums, groups, values)
            return sums
        return np.bincount(groups, values.astype(np.float64), count)

    def add(self, state: Any, value: Any, arrival: int, place: int) -> Any:
        """Add a number; an invalid value becomes the state, which later numbers leave as it is."""
        if type(value) is InvalidValue:
            return InvalidValue(place, arrival, value.text)
        return state if type(state) is InvalidValue else state + value

    def add_all(self, state: Any, values: Sequence[Any], span: RowSpan, place: int) -> Any:
        """Add some numbers one by one: Python's `sum` corrects the rounding of floats."""
        first, last, arrivals = span
        for at, value in enumerate(values[first:last]):
            if type(value) is InvalidValue:
                state = InvalidValue(place + at, arrivals[first + at], value.text)
            elif type(state) is not InvalidValue:
                state = state + value
        return state

    def _merge_valid(self, one: Any, other: Any) -> Any:
        return one + other

    def _make_error(self, invalid: InvalidValue) -> QueryError:
        return UnplacedError(f"index {invalid.place}: {invalid.text}")


class ExtremeAccumulator(_NumberAccumulator):
    """The least or the greatest number; its error is about the first value that is no number."""

    def __init__(self, kind: Literal["min", "max"], origin: str) -> None:
        """Choose which one; `origin` is what error texts call the values."""
        least = kind == "min"
        self._neutral = np.inf if least else -np.inf
        self._reduce_at = (np.fmin if least else np.fmax).at
        self._is_better: Callable[[Any, Any], bool] = lt if least else gt
        self._origin = origin

    def _reduce(self, values: NDArray[Any], groups: Ints, count: int) -> NDArray[Any]:
        extremes = np.full(count, self._neutral)
        values = values.astype(np.float64)
        self._reduce_at(extremes, groups, values)
        none = np.isnan(values)
        if none.any():
            # NaN stays when it comes first, and else is passed over.
            first = np.empty(count, np.int64)
            first[groups[::-1]] = np.arange(len(groups))[::-1]
            some = np.unique(groups[none])
            extremes[some[none[first[some]]]] = np.nan
        return extremes

    def add(self, state: Any, value: Any, arrival: int, place: int) -> Any:
        """Return the better one of the state and a number; the first invalid value stays."""
        if type(state) is InvalidValue:
            return state
        if type(value) is InvalidValue:
            return InvalidValue(place, arrival, value.text)
        return value if state is None or self._is_better(value, state) else state

    def _merge_valid(self, one: Any, other: Any) -> Any:
        return other if self._is_better(other, one) else one

    def _make_error(self, invalid: InvalidValue) -> QueryError:
        return UnplacedError(f"{self._origin}: index {invalid.place} of array: {invalid.text}")
