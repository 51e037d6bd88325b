"""The number of messages, which every folded group knows by itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamer.window.aggregate.accumulator import ValueColumn
from streamer.window.settings.int_codec import Ints

_EMPTY_INTS = np.empty(0, np.int64)


class CountAggregate:
    """`from_all().length()` or `batch_size()`; its state is the groups' own counts."""

    def make_column(self, values: list[Any]) -> ValueColumn:
        """Return nothing: messages are counted anyway."""
        return ValueColumn(_EMPTY_INTS)

    def concat_columns(self, columns: list[ValueColumn]) -> ValueColumn:
        """See `part.Accumulator`."""
        return ValueColumn(_EMPTY_INTS)

    def make_state(self, column: ValueColumn, groups: Ints, count: int, arrivals: Ints) -> Ints:
        """See `part.Accumulator`."""
        return np.bincount(groups, minlength=count)

    def merge_states(
        self, states: list[Ints], where: list[Ints], before: list[Ints], count: int
    ) -> Ints:
        """See `part.Accumulator`."""
        counts = np.zeros(count, np.int64)
        for state, numbers in zip(states, where, strict=True):
            np.add.at(counts, numbers, state)
        return counts

    def encode_state(self, state: Ints) -> bytes:
        """See `part.Accumulator`."""
        return np.ascontiguousarray(state).tobytes()

    def decode_state(self, data: bytes, shift: int) -> Ints:
        """See `part.Accumulator`."""
        return np.frombuffer(data, np.int64)

    def result_of(self, state: Ints, group: int) -> int:
        """See `part.Accumulator`."""
        return int(state[group])
