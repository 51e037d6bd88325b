"""Sums of windows in which a filter has left no value."""

from __future__ import annotations

import numpy as np

from streamer.window.aggregate.sum_min_max import SumAccumulator


def test_the_sum_of_no_values_is_zero() -> None:
    accumulator = SumAccumulator()
    none = np.array([], np.int64)
    state = accumulator.make_state(accumulator.make_column([]), none, 2, none)
    assert state.values.tolist() == [0, 0]
