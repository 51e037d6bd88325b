"""Counts by key, as Bloblang's `count_by` gives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from streamer.bloblang.message_expression import ElementQuery
from streamer.bloblang.methods.aggregates import format_key
from streamer.window.aggregate.accumulator import (
    InvalidValue,
    ValueColumn,
    find_invalid,
    join_invalid,
)
from streamer.window.aggregate.query_values import query_values
from streamer.window.aggregate.string_columns import (
    TextAccumulator,
    TextSets,
    make_text_array,
    unmark_text,
)
from streamer.window.settings.int_codec import (
    Ints,
    pack_ints,
    unpack_ints,
)


class CountLog:
    """The counts of a window, and the keys that were added in this micro-batch, in their order.

    A copy after every message would take more memory than the messages do; so the counts at an
    earlier message are found by counting on from those last asked for, or from the start.
    """

    def __init__(self, counts: dict[str, int]) -> None:
        self._before = counts
        self._now = dict(counts)
        self._added: list[str] = []
        self._counted = 0

    def add(self, key: str) -> None:
        """Add a key."""
        self._added.append(key)

    def counts_at(self, number: int) -> dict[str, int]:
        """Return the counts after the first so many keys that were added."""
        if number < self._counted:
            self._now, self._counted = dict(self._before), 0
        now = self._now
        for key in self._added[self._counted : number]:
            now[key] = now.get(key, 0) + 1
        self._counted = number
        return dict(sorted(now.items()))


class CountByAccumulator(TextAccumulator):
    """Counts values by their text, or by that of a query's result for them.

    The numbers of `TextSets` say how often each key occurs.

    A window's state is a `CountLog` and how many keys had been added to it, or `InvalidValue`.
    """

    _dumps_invalid_as_list = True

    def __init__(self, origin: str, question: ElementQuery | None) -> None:
        """Take what error texts call the values, and the query."""
        self._origin = origin
        self._question = question

    def make_column(self, values: list[Any]) -> ValueColumn:
        """Return a column of marked texts: the keys."""
        invalid: list[InvalidValue] = []
        keys = values
        if self._question is not None or set(map(type, values)) != {str}:
            keys, invalid = self._find_keys(values)
        texts = make_text_array(keys)
        return ValueColumn(texts, invalid, texts.nbytes)

    def _find_keys(self, values: list[Any]) -> tuple[list[Any], list[InvalidValue]]:
        return query_values(values, self._question, format_key, self._origin, "")

    def make_state(self, column: ValueColumn, groups: Ints, count: int, arrivals: Ints) -> TextSets:
        """Count the keys of each group."""
        invalid = find_invalid(column, groups, arrivals)
        ones = np.ones(len(groups), np.int64)
        return self._unite_texts(self._table, groups, column.values, ones, count, invalid)

    def _unite_entries(self, pairs: Ints, groups: Ints, numbers: Ints) -> tuple[Ints, Ints]:
        order = np.argsort(pairs, kind="stable")
        pairs = pairs[order]
        starts = np.flatnonzero(np.diff(pairs, prepend=-1) != 0)
        numbers = np.add.reduceat(numbers[order], starts) if len(starts) else numbers
        return pairs[starts], numbers

    def _encode_numbers(self, numbers: Ints) -> bytes:
        return pack_ints(numbers)

    def _decode_numbers(self, data: bytes, shift: int) -> Ints:
        return unpack_ints(data)

    def result_of_group(self, state: TextSets, group: int) -> dict[str, int]:
        """Return a group's counts, by key in ascending order."""
        if group in state.invalid:
            raise self._make_error(state.invalid[group])
        keys, times = self._take_texts(state, group)
        return dict(sorted(zip(map(unmark_text, keys), times.tolist(), strict=True)))

    @property
    def empty_state(self) -> tuple[CountLog, int]:
        """New counts: each window has its own."""
        return CountLog({}), 0

    def prepare(self, values: list[Any]) -> Sequence[Any]:
        """Return the key of each value, or `InvalidValue`."""
        return join_invalid(*self._find_keys(values))

    def add(self, state: Any, value: Any, arrival: int, place: int) -> Any:
        """Count a key; the first invalid value stays."""
        if type(state) is InvalidValue:
            return state
        if type(value) is InvalidValue:
            return InvalidValue(place, arrival, value.text)
        counts, number = state
        counts.add(value)
        return counts, number + 1

    def _merge_valid(self, one: Any, other: Any) -> Any:
        together = self.result_of(one)
        for key, count in self.result_of(other).items():
            together[key] = together.get(key, 0) + count
        return CountLog(together), 0

    def result_of(self, state: Any) -> dict[str, int]:
        """Return a window's counts, by key in ascending order."""
        if type(state) is InvalidValue:
            raise self._make_error(state)
        counts, number = state
        counts_by_key: dict[str, int] = counts.counts_at(number)
        return counts_by_key

    def _dump_valid(self, state: Any) -> Any:
        return self.result_of(state)

    def _load_valid(self, plain: Any) -> Any:
        return CountLog(plain), 0
