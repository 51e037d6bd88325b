"""The simulated micro-batch, where its answer is known without it."""

import pytest

from tests.bench.sizing import MEASURED, Constants, Load, efficiency, rate, seconds, shares, stage

FREE = Constants(2.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0)
"""A cluster on which nothing costs anything but the events."""


@pytest.mark.parametrize(
    ("works", "dispatch", "cores", "expected"),
    [
        ([1, 1, 1, 1], 0, 4, 1),
        ([1, 1, 1, 1], 0, 2, 2),
        ([4, 1, 1, 1], 0, 2, 4),
        # The third is handed out after three of the driver's turns.
        ([1, 1, 1], 0.5, 3, 2.5),
        # It waits for a core, which is free at 2.
        ([1, 1, 1], 1, 1, 4),
    ],
)
def test_a_stage_is_over_when_its_last_task_is(works, dispatch, cores, expected):
    assert stage(works, dispatch, cores) == expected


def test_shares_add_up_and_a_key_is_never_cut():
    for shards in (1, 3, 128):
        found = shares(shards, 1_000, 1.0)
        assert sum(found) == pytest.approx(1)
        # The first key alone has 13 % of all.
        assert max(found) >= 0.13


def test_without_costs_of_its_own_a_cluster_is_as_fast_as_its_keys_are_even():
    load = Load(keys=1_000_000, fetch=0, bandwidth=1e15)
    # One has two million events, three seconds each.
    assert seconds(FREE, load, 1) == pytest.approx(6)
    assert efficiency(FREE, load, 16) > 0.98
    assert efficiency(FREE, Load(keys=16, fetch=0), 16) < 0.75
    # Two cores do the work of eight workers in four turns.
    shared = Load(keys=1_000_000, fetch=0, bandwidth=1e15, cores=2)
    assert rate(FREE, shared, 8) == pytest.approx(rate(FREE, load, 2), rel=0.02)


def test_more_workers_are_faster_and_less_efficient():
    load = Load()
    rates = [rate(MEASURED, load, count) for count in (1, 2, 4, 8, 16)]
    assert rates == sorted(rates)
    gained = [efficiency(MEASURED, load, count) for count in (2, 16, 64, 128)]
    assert gained == sorted(gained, reverse=True)
    assert efficiency(MEASURED, Load(skew=1.0), 16) < efficiency(MEASURED, load, 16)
    small = Load(most=1_000_000)
    assert efficiency(MEASURED, small, 64) < efficiency(MEASURED, load, 64)
