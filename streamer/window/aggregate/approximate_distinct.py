"""Registers of HyperLogLog by group, for the approximate number of distinct values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from streamer.bloblang.errors import QueryError, TypeMismatch, UnplacedError
from streamer.bloblang.runtime.cardinality import (
    INDEX_BITS,
    RANK_BITS,
    estimate_distinct,
    find_register,
    hash_value,
    hash_values,
)
from streamer.window.aggregate.accumulator import InvalidValue, ValueColumn, split_invalid
from streamer.window.aggregate.entries import CombiningAccumulator, EntriesState
from streamer.window.settings.int_codec import Ints, pack_deltas, unpack_deltas

_MAX_RANK_BITS: Final = 6
_MAX_RANK: Final = (1 << _MAX_RANK_BITS) - 1


class ApproximateDistinctAccumulator(CombiningAccumulator):
    """Keeps the longest run of zeros by register: the entries are registers, with these."""

    @staticmethod
    def _combine(one: int, other: int) -> int:
        return max(one, other)

    def make_column(self, values: list[Any]) -> ValueColumn:
        """Return a column of hashes, as uint64."""
        invalid: list[InvalidValue] = []
        try:
            hashes = hash_values(values)
        except TypeMismatch:
            hashes, invalid = split_invalid([_hash_one(value) for value in values], 0)
        return ValueColumn(np.array(hashes, np.uint64), invalid, 8 * len(values))

    def _take_column(self, column: ValueColumn) -> tuple[NDArray[Any], Ints]:
        hashes = column.values
        rest = (hashes & np.uint64((1 << RANK_BITS) - 1)).astype(np.float64)
        # The exponent of an integer below 2 ** 53 is how many bits it has.
        ranks = (RANK_BITS + 1) - np.frexp(rest)[1].astype(np.int64)
        return (hashes >> np.uint64(RANK_BITS)).astype(np.int64), ranks

    def _unite(
        self, entries: NDArray[Any], numbers: Ints, groups: Ints, count: int
    ) -> tuple[Ints, NDArray[Any], Ints]:
        codes = (((groups << INDEX_BITS) + entries) << _MAX_RANK_BITS) + numbers
        codes.sort()
        # The last of each register has its largest rank.
        codes = codes[np.diff(codes >> _MAX_RANK_BITS, append=-1) != 0]
        registers = codes >> _MAX_RANK_BITS
        ranks = codes & _MAX_RANK
        return registers >> INDEX_BITS, registers & ((1 << INDEX_BITS) - 1), ranks

    def _encode_entries(self, entries: NDArray[Any]) -> bytes:
        return pack_deltas(entries)

    def _decode_entries(self, data: bytes) -> NDArray[Any]:
        return unpack_deltas(data)

    def result_of_group(self, state: EntriesState, group: int) -> int:
        """Return about how many values a group has."""
        if group in state.invalid:
            raise self._make_error(state.invalid[group])
        return estimate_distinct(state.numbers[state.span_of(group)].tolist())

    def prepare(self, values: list[Any]) -> Sequence[Any]:
        """Return each value's register and rank, or `InvalidValue`."""
        hashed = [_hash_one(value) for value in values]
        return [one if type(one) is InvalidValue else find_register(one) for one in hashed]

    def result_of(self, state: Any) -> int:
        """Return about how many values a window has."""
        return estimate_distinct(self._entries_of(state).values())

    def _make_error(self, invalid: InvalidValue) -> QueryError:
        return UnplacedError(f"{self._origin}: index {invalid.place}: {invalid.text}")


def _hash_one(value: Any) -> Any:
    try:
        return hash_value(value)
    except TypeMismatch as e:
        return InvalidValue(0, 0, str(e))
