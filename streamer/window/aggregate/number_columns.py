"""Columns of numbers, for the aggregates that take nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamer.bloblang.errors import TypeMismatch
from streamer.bloblang.golib.operations import NUMBER_TYPES
from streamer.window.aggregate.accumulator import (
    Accumulator,
    InvalidValue,
    ValueColumn,
    split_invalid,
)


class NumberColumnAccumulator(Accumulator):
    """An accumulator that takes numbers, and makes of all else an `InvalidValue`."""

    _neutral: float = 0.0
    """The number that stands for an invalid value in a column."""

    def make_column(self, values: list[Any]) -> ValueColumn:
        """Return a column of int64 where all are integers of that size, else of float64."""
        kinds, size = set(map(type, values)), 8 * len(values)
        try:
            if kinds == {int}:
                return ValueColumn(np.array(values, np.int64), size=size)
        except OverflowError:
            pass
        if kinds <= {int, float}:
            return ValueColumn(np.array(values, np.float64), size=size)
        numbers, invalid = split_invalid(prepare_numbers(values), self._neutral)
        return ValueColumn(np.array(numbers, np.float64), invalid, size)

    def make_number_column(self, numbers: NDArray[Any]) -> ValueColumn:
        """Return a column of the numbers as they are."""
        return ValueColumn(numbers, size=8 * len(numbers))

    def prepare(self, values: list[Any]) -> Sequence[Any]:
        """Return integers and floats as Python's own, and all else as `InvalidValue`."""
        return prepare_numbers(values)


def prepare_numbers(values: list[Any]) -> Sequence[Any]:
    """Return integers and floats as Python's own, and all else as `InvalidValue`."""
    if set(map(type, values)) <= {int, float}:
        return values
    return [_prepare_number(value) for value in values]


def _prepare_number(value: Any) -> Any:
    if type(value) not in NUMBER_TYPES:
        return InvalidValue(0, 0, str(TypeMismatch(value, "number")))
    return int(value) if isinstance(value, int) else float(value)
