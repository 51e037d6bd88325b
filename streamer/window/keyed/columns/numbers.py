"""Columns of the numbers that are aggregated, as float64 without loss.

Integers up to 2^31 are added exactly in float64, up to a sum of 2^52. Keys of messages with larger
integers, or with values that are not numbers, take the row path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from streamer.window.settings.int_codec import Bools, Ints

Floats = NDArray[np.float64]
_MAX_EXACT_INT: Final = float(1 << 31)
MAX_EXACT_SUM: Final = float(1 << 52)
"""Larger sums of integers are continued on the row path, as integers: a float would round them."""


@dataclass(slots=True)
class NumberColumn:
    """A column of numbers.

    Attributes:
        values: the numbers.
        whole: which of them are integers, or sums of integers only.
    """

    values: Floats
    whole: Bools

    def take(self, indices: Ints | Bools) -> NumberColumn:
        """Return some numbers, by index or mask."""
        return NumberColumn(self.values[indices], self.whole[indices])


def concat_numbers(columns: Sequence[NumberColumn]) -> NumberColumn:
    """Concatenate columns."""
    values = np.concatenate([column.values for column in columns])
    return NumberColumn(values, np.concatenate([column.whole for column in columns]))


def read_numbers(values: list[Any]) -> tuple[NumberColumn, Ints]:
    """Convert values to a column; also return the rows that need the row path.

    Args:
        values: by message, the value of the aggregate's field.
    """
    kinds = set(map(type, values))
    if kinds == {int}:
        try:
            whole = np.array(values, np.int64)
        except OverflowError:
            return _read_mixed(values)
        column = NumberColumn(whole.astype(np.float64), np.ones(len(values), np.bool_))
        return column, np.flatnonzero(np.abs(column.values) > _MAX_EXACT_INT)
    if kinds == {float}:
        column = NumberColumn(np.array(values, np.float64), np.zeros(len(values), np.bool_))
        return column, np.flatnonzero(_find_special_floats(column.values))
    return _read_mixed(values)


def _find_special_floats(values: Floats) -> Bools:
    """Return which floats do not compare by size: NaN and -0."""
    odd: Bools = np.isnan(values) | ((values == 0) & np.signbit(values))
    return odd


def _read_mixed(values: list[Any]) -> tuple[NumberColumn, Ints]:
    plain = [
        type(value) is float or (type(value) is int and abs(value) <= _MAX_EXACT_INT)
        for value in values
    ]
    some = np.array(plain, np.bool_)
    floats = np.array([v if good else 0.0 for v, good in zip(values, plain, strict=True)], float)
    whole = np.array([type(value) is int for value in values], np.bool_)
    return NumberColumn(floats, whole), np.flatnonzero(
        ~some | (~whole & _find_special_floats(floats))
    )
