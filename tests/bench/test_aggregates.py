"""The aggregates that are measured all fold, and what is bounded stays small."""

import random

import pytest

from tests.bench.aggregates import AGGREGATES, KEYS, make_events, state_sizes

BOUNDED = ("avg", "stddev_samp", "percentile_approx", "approx_count_distinct", "slice(-100)")


@pytest.mark.parametrize("name", AGGREGATES)
def test_the_state_of_an_aggregate_is_measured(name: str) -> None:
    chance = random.Random(1)
    batches = [make_events(chance, 2_000) for _ in range(3)]
    first, merged = state_sizes(AGGREGATES[name], batches)
    assert 0 < first <= 200 * KEYS + 2_000
    if name in BOUNDED:
        assert merged < 3_000 * KEYS
