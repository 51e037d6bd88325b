"""The number of messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from streamer.window.aggregate.accumulator import Accumulator, RowSpan, ValueColumn
from streamer.window.settings.int_codec import Ints

_EMPTY_INTS = np.empty(0, np.int64)


class CountAccumulator(Accumulator):
    """`from_all().length()` or `batch_size()`; a state is a number, or an array of one by group."""

    def make_column(self, values: list[Any]) -> ValueColumn:
        """Return an empty column: `make_state` counts the messages by their groups."""
        return ValueColumn(_EMPTY_INTS)

    def concat_columns(self, columns: list[ValueColumn]) -> ValueColumn:
        """Return an empty column."""
        return ValueColumn(_EMPTY_INTS)

    def make_state(self, column: ValueColumn, groups: Ints, count: int, arrivals: Ints) -> Ints:
        """Count the messages of each group."""
        return np.bincount(groups, minlength=count)

    def merge_states(
        self, states: list[Ints], where: list[Ints], before: list[Ints], count: int
    ) -> Ints:
        """Add the counts of each group."""
        counts = np.zeros(count, np.int64)
        for state, numbers in zip(states, where, strict=True):
            np.add.at(counts, numbers, state)
        return counts

    def take_groups(self, state: Ints, indices: Ints) -> Ints:
        """Return the state of some groups."""
        return state[indices]

    def encode_state(self, state: Ints) -> bytes:
        """Write the counts as int64."""
        return np.ascontiguousarray(state).tobytes()

    def decode_state(self, data: bytes, shift: int) -> Ints:
        """Read the counts."""
        return np.frombuffer(data, np.int64)

    def result_of_group(self, state: Ints, group: int) -> int:
        """Return the count of a group."""
        return int(state[group])

    def results_of_groups(self, state: Ints, groups: Ints) -> list[Any]:
        """Return the counts of some groups."""
        counts: list[Any] = state[groups].tolist()
        return counts

    empty_state = 0

    def prepare(self, values: list[Any]) -> Sequence[Any]:
        """Return nothing of each message: `add` needs no value."""
        return [None] * len(values)

    def add(self, state: int, value: Any, arrival: int, place: int) -> int:
        """Count one more message."""
        return state + 1

    def add_all(self, state: int, values: Sequence[Any], span: RowSpan, place: int) -> int:
        """Count some more messages."""
        return state + span.last - span.first

    def result_of(self, state: int) -> int:
        """Return the count."""
        return state

    def _merge_valid(self, one: int, other: int) -> int:
        return one + other
