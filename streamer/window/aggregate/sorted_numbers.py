"""All numbers of a group in ascending order, for exact percentiles."""

from __future__ import annotations

import base64
from bisect import insort
from itertools import islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from streamer.bloblang.runtime.quantiles import SortedNumbers, ascending_key, sort_numbers
from streamer.window.aggregate.accumulator import InvalidValue, ValueColumn
from streamer.window.aggregate.entries import EntriesAccumulator, EntriesState
from streamer.window.aggregate.number_columns import NumberColumnAccumulator
from streamer.window.settings.int_codec import Ints, pack_deltas, unpack_deltas

_NO_NUMBERS: Final = np.empty(0, np.int64)
_MAX_EXACT_INT: Final = 1 << 53
_MAX_INSERTED: Final = 8
"""So many numbers are put into their places one by one; more are sorted with all others."""

_MIN_GROUP_SIZE: Final = 16
"""From so many numbers to a group on, groups are sorted one by one."""


class NumberLog:
    """All numbers of a window, in the order in which they were added.

    Those in ascending order are kept from one question to the next, so that an answer after every
    message does not sort all of them anew.
    """

    def __init__(self, numbers: list[float]) -> None:
        self._numbers = numbers
        self._sorted: list[float] = []

    def add(self, number: float) -> None:
        """Add a number."""
        self._numbers.append(number)

    def sorted_at(self, count: int) -> SortedNumbers:
        """Return the first so many numbers; what is returned is good until the next call."""
        known = len(self._sorted)
        if known < count <= known + _MAX_INSERTED:
            for number in self._numbers[known:count]:
                insort(self._sorted, number + 0.0, key=ascending_key)
        elif known != count:
            self._sorted = list(sort_numbers(islice(self._numbers, count)).values)
        return SortedNumbers(self._sorted)


class SortedNumbersAccumulator(EntriesAccumulator, NumberColumnAccumulator):
    """Keeps all numbers; a window's state is a `NumberLog` and how many of it are its own.

    It may be `InvalidValue` instead.
    """

    def _take_column(self, column: ValueColumn) -> tuple[NDArray[Any], Ints]:
        # Adding zero makes one zero of the two that floats have.
        return column.values.astype(np.float64) + 0.0, _NO_NUMBERS

    def _unite(
        self, entries: NDArray[Any], numbers: Ints, groups: Ints, count: int
    ) -> tuple[Ints, NDArray[Any], Ints]:
        if len(entries) < _MIN_GROUP_SIZE * count or np.isnan(entries).any():
            # What is not a number comes first.
            order = np.lexsort((entries, entries == entries, groups))
            return groups[order], entries[order], numbers
        order = np.argsort(groups, kind="stable")
        groups, entries = groups[order], entries[order]
        starts = np.searchsorted(groups, np.arange(count + 1)).tolist()
        for start, end in zip(starts, starts[1:], strict=False):
            entries[start:end].sort()
        return groups, entries, numbers

    def _encode_entries(self, entries: NDArray[Any]) -> bytes:
        if not len(entries):
            return b""
        # Neither infinity nor what is not a number is less than the bound.
        if np.all(np.abs(entries) < _MAX_EXACT_INT) and not np.any(entries % 1):
            whole = entries.astype(np.int64)
            least = int(whole.min())
            return b"i" + least.to_bytes(8, "little", signed=True) + pack_deltas(whole - least)
        planes = np.ascontiguousarray(entries).view(np.uint8).reshape(-1, 8).T
        return b"f" + planes.tobytes()

    def _decode_entries(self, data: bytes) -> NDArray[Any]:
        if data[:1] == b"i":
            least = int.from_bytes(data[1:9], "little", signed=True)
            return (unpack_deltas(data[9:]) + least).astype(np.float64)
        planes = np.frombuffer(data, np.uint8, offset=1 if data else 0).reshape(8, -1)
        return np.ascontiguousarray(planes.T).view(np.float64).ravel()

    def result_of_group(self, state: EntriesState, group: int) -> SortedNumbers:
        """Return a group's numbers."""
        if group in state.invalid:
            raise self._make_error(state.invalid[group])
        return SortedNumbers(state.entries[state.span_of(group)].tolist())

    @property
    def empty_state(self) -> tuple[NumberLog, int]:
        """A new log: each window has its own."""
        return NumberLog([]), 0

    def add(self, state: Any, value: Any, arrival: int, place: int) -> Any:
        """Add a number; the first invalid value stays."""
        if type(state) is InvalidValue:
            return state
        if type(value) is InvalidValue:
            return InvalidValue(place, arrival, value.text)
        log, count = state
        log.add(float(value))
        return log, count + 1

    def _merge_valid(self, one: Any, other: Any) -> Any:
        together = [*self.result_of(one).values, *self.result_of(other).values]
        return NumberLog(together), len(together)

    def result_of(self, state: Any) -> SortedNumbers:
        """Return a window's numbers."""
        if type(state) is InvalidValue:
            raise self._make_error(state)
        log, count = state
        numbers: SortedNumbers = log.sorted_at(count)
        return numbers

    def _dump_valid(self, state: Any) -> Any:
        entries = np.array(self.result_of(state).values, np.float64)
        return base64.b64encode(self._encode_entries(entries)).decode()

    def _load_valid(self, plain: Any) -> Any:
        numbers = self._decode_entries(base64.b64decode(plain)).tolist()
        return NumberLog(numbers), len(numbers)
