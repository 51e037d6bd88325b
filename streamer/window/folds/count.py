"""The number of messages, which every folded group knows by itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamer.window.folds.part import Column
from streamer.window.ints import Ints

_NONE = np.empty(0, np.int64)


class Count:
    """`from_all().length()` or `batch_size()`; its state is the groups' own counts."""

    def column(self, values: list[Any]) -> Column:
        """Return nothing: messages are counted anyway."""
        return Column(_NONE)

    def gathered(self, columns: list[Column]) -> Column:
        """See `part.Accumulator`."""
        return Column(_NONE)

    def state(self, column: Column, groups: Ints, count: int, arrivals: Ints) -> Ints:
        """See `part.Accumulator`."""
        return np.bincount(groups, minlength=count)

    def merged(self, states: list[Ints], where: list[Ints], before: list[Ints], count: int) -> Ints:
        """See `part.Accumulator`."""
        counts = np.zeros(count, np.int64)
        for state, numbers in zip(states, where, strict=True):
            np.add.at(counts, numbers, state)
        return counts

    def write(self, state: Ints) -> bytes:
        """See `part.Accumulator`."""
        return np.ascontiguousarray(state).tobytes()

    def read(self, data: bytes, shift: int) -> Ints:
        """See `part.Accumulator`."""
        return np.frombuffer(data, np.int64)

    def value(self, state: Ints, group: int) -> int:
        """See `part.Accumulator`."""
        return int(state[group])
