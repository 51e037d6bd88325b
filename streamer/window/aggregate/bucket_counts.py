"""Histograms of numbers, for approximate percentiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from streamer.bloblang.runtime.quantiles import (
    BUCKET_SHIFT,
    LEAST_BUCKET,
    NAN_BUCKET,
    BucketCounts,
    bucket_of,
)
from streamer.window.aggregate.accumulator import InvalidValue, ValueColumn
from streamer.window.aggregate.entries import CombiningAccumulator, EntriesState
from streamer.window.aggregate.number_columns import NumberColumnAccumulator, prepare_numbers
from streamer.window.settings.int_codec import Ints, pack_deltas, unpack_deltas

_TABLE_FACTOR: Final = 8
"""Messages are counted in a table that has at most so many places for each of them."""


class BucketCountAccumulator(CombiningAccumulator, NumberColumnAccumulator):
    """Counts numbers by their bucket: the entries are buckets, with their counts."""

    @staticmethod
    def _combine(one: int, other: int) -> int:
        return one + other

    def _take_column(self, column: ValueColumn) -> tuple[NDArray[Any], Ints]:
        buckets = _find_buckets(column.values.astype(np.float64))
        return buckets, np.ones(len(buckets), np.int64)

    def _unite(
        self, entries: NDArray[Any], numbers: Ints, groups: Ints, count: int
    ) -> tuple[Ints, NDArray[Any], Ints]:
        if not len(entries):
            return groups, entries, numbers
        least = int(entries.min())
        width = int(entries.max()) - least + 1
        codes = groups * width + (entries - least)
        if count * width <= _TABLE_FACTOR * len(codes):
            # Floats are exact for counts below 2 ** 53.
            table = np.bincount(codes, numbers, count * width)
            codes = np.flatnonzero(table)
            numbers = table[codes].astype(np.int64)
        else:
            order = np.argsort(codes, kind="stable")
            codes = codes[order]
            starts = np.flatnonzero(np.diff(codes, prepend=-1) != 0)
            codes, numbers = codes[starts], np.add.reduceat(numbers[order], starts)
        groups, places = np.divmod(codes, width)
        return groups, places + least, numbers

    def _encode_entries(self, entries: NDArray[Any]) -> bytes:
        return pack_deltas(entries - NAN_BUCKET)

    def _decode_entries(self, data: bytes) -> NDArray[Any]:
        return unpack_deltas(data) + NAN_BUCKET

    def result_of_group(self, state: EntriesState, group: int) -> BucketCounts:
        """Return a group's histogram."""
        if group in state.invalid:
            raise self._make_error(state.invalid[group])
        span = state.span_of(group)
        return BucketCounts(state.entries[span].tolist(), state.numbers[span].tolist())

    def prepare(self, values: list[Any]) -> Sequence[Any]:
        """Return each number's bucket, and one that it counts for; or `InvalidValue`."""
        return [
            number if type(number) is InvalidValue else (bucket_of(float(number)), 1)
            for number in prepare_numbers(values)
        ]

    def result_of(self, state: Any) -> BucketCounts:
        """Return a window's histogram."""
        entries = self._entries_of(state)
        return BucketCounts(list(entries), list(entries.values()))


def _find_buckets(numbers: NDArray[np.float64]) -> Ints:
    """Return what `bucket_of` does for each number."""
    buckets = np.abs(numbers).view(np.int64) >> BUCKET_SHIFT
    buckets[buckets < LEAST_BUCKET] = 0
    buckets = np.where(numbers < 0, -buckets, buckets)
    buckets[np.isnan(numbers)] = NAN_BUCKET
    return buckets
