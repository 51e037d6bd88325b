"""The largest values of some groups, whatever numbers they are."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from streamer.window.aggregate.top_k import TopKAccumulator


def top(values: list[Any], number: int, distinct: bool) -> Any:
    """The largest of values that came in two packs, written and read again."""
    ranked = TopKAccumulator(number, "it", None, distinct)
    states = []
    half = len(values) // 2
    for start, some in ((0, values[:half]), (half, values[half:])):
        column = ranked.concat_columns([ranked.make_column(some)])
        groups = np.zeros(len(some), np.int64)
        state = ranked.make_state(column, groups, 1, np.arange(start, start + len(some)))
        states.append(ranked.decode_state(ranked.encode_state(state), 0))
    where = [np.zeros(1, np.int64)] * 2
    return ranked.result_of_group(ranked.merge_states(states, where, where, 1), 0)


@pytest.mark.parametrize("distinct", [True, False])
@pytest.mark.parametrize(
    "values",
    [
        [-math.inf, 1.0, -math.inf, 2.0, math.inf, math.inf],
        [3, 2**62, -(2**63), 2**62 + 1, 3, 5],
        [3, 2.5, 2**53 + 1, 2.0**53, 3.0, 4],
        ["b", "a", "b", "é", "\x00n1", ""],
        [1.5, 1.5, 7, 7, 2, 8],
    ],
)
def test_the_top_of_two_packs_is_that_of_all_values(values: list[Any], distinct: bool) -> None:
    wanted = sorted(dict.fromkeys(values) if distinct else values, reverse=True)[:3]
    found = top(values, 3, distinct)
    assert [(type(one), one) for one in found] == [(type(one), one) for one in wanted]
