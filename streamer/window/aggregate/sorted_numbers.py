"""All numbers of a group in ascending order, for exact percentiles."""

from __future__ import annotations

import base64
from itertools import islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from streamer.bloblang.runtime.quantiles import SortedNumbers, sort_numbers
from streamer.window.aggregate.accumulator import InvalidValue, ValueColumn
from streamer.window.aggregate.entries import EntriesAccumulator, EntriesState
from streamer.window.aggregate.number_columns import NumberColumnAccumulator
from streamer.window.settings.int_codec import Ints, pack_deltas, unpack_deltas

_NO_NUMBERS: Final = np.empty(0, np.int64)
_MAX_EXACT_INT: Final = 1 << 53
_MIN_GROUP_SIZE: Final = 16
"""From so many numbers to a group on, groups are sorted one by one."""


class SortedNumbersAccumulator(EntriesAccumulator, NumberColumnAccumulator):
    """Keeps all numbers; a window's state is a list of them and how many are its own.

    States of a window share the list, which only grows. It may be `InvalidValue` instead.
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
    def empty_state(self) -> tuple[list[float], int]:
        """A new list: each window has its own."""
        return [], 0

    def add(self, state: Any, value: Any, arrival: int, place: int) -> Any:
        """Add a number; the first invalid value stays."""
        if type(state) is InvalidValue:
            return state
        if type(value) is InvalidValue:
            return InvalidValue(place, arrival, value.text)
        numbers, count = state
        numbers.append(float(value))
        return numbers, count + 1

    def _merge_valid(self, one: Any, other: Any) -> Any:
        together = [*islice(*one), *islice(*other)]
        return together, len(together)

    def result_of(self, state: Any) -> SortedNumbers:
        """Return a window's numbers."""
        if type(state) is InvalidValue:
            raise self._make_error(state)
        return sort_numbers(islice(*state))

    def _dump_valid(self, state: Any) -> Any:
        entries = np.array(self.result_of(state).values, np.float64)
        return base64.b64encode(self._encode_entries(entries)).decode()

    def _load_valid(self, plain: Any) -> Any:
        numbers = self._decode_entries(base64.b64decode(plain)).tolist()
        return numbers, len(numbers)
