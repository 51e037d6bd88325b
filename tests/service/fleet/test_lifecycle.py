"""The states of a stream: which may follow which, and that nothing else does."""

from __future__ import annotations

from itertools import product

import pytest

from streamer.service.fleet.lifecycle import (
    ACTIVE,
    TRANSITIONS,
    IllegalTransitionError,
    Lifecycle,
    LifecycleState,
)
from streamer.service.monitoring.metric_samples import STREAM_STATES

State = LifecycleState


def way_to(state: LifecycleState) -> list[LifecycleState]:
    """Return the shortest way to a state from that of a stream that is new."""
    ways = [[State.STOPPED]]
    while ways[0][-1] != state:
        way = ways.pop(0)
        ways += [[*way, one] for one in sorted(TRANSITIONS[way[-1]]) if one not in way]
    return ways[0]


def test_every_state_has_a_way_to_it_and_one_back_to_a_run() -> None:
    assert TRANSITIONS.keys() == set(State)
    for state in State:
        assert way_to(state)[-1] == state
        seen = {state}
        for _ in State:
            seen |= {one for before in seen for one in TRANSITIONS[before]}
        assert seen == set(State)


@pytest.mark.parametrize(("before", "after"), product(State, State))
def test_a_state_follows_another_as_the_table_says_and_not_otherwise(
    before: LifecycleState, after: LifecycleState
) -> None:
    lifecycle = Lifecycle()
    for state in way_to(before):
        lifecycle.move_to(state)
    if after == before or after in TRANSITIONS[before]:
        lifecycle.move_to(after, "why")
        assert lifecycle.state == after
    else:
        with pytest.raises(IllegalTransitionError, match=f"that is {before} does not .* {after}"):
            lifecycle.move_to(after)
        assert lifecycle.state == before


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (State.STOPPED, State.RUNNING),
        (State.PAUSED, State.RUNNING),
        (State.ENDED, State.RESTARTING),
        (State.FAILED, State.WAITING),
        (State.RUNNING, State.STARTING),
        (State.RESTARTING, State.RUNNING),
        (State.WAITING, State.STARTING),
    ],
)
def test_no_stream_runs_without_a_start_and_none_starts_that_runs(
    before: LifecycleState, after: LifecycleState
) -> None:
    assert after not in TRANSITIONS[before]


def test_a_stream_can_be_stopped_and_paused_whatever_it_does() -> None:
    for state in State:
        assert {State.STOPPED, State.PAUSED} <= TRANSITIONS[state] | {state}


def test_the_states_have_the_names_of_the_api() -> None:
    assert sorted(State) == sorted(one.name.lower() for one in State)
    assert set(State) == set(STREAM_STATES)


def test_a_reason_stays_while_the_stream_starts_and_goes_when_it_runs() -> None:
    lifecycle = Lifecycle()
    for state in (State.STARTING, State.RUNNING):
        lifecycle.move_to(state)
    lifecycle.move_to(State.RESTARTING, "it broke")
    lifecycle.move_to(State.STARTING)
    assert lifecycle.reason == "it broke"
    lifecycle.move_to(State.RUNNING)
    assert lifecycle.reason == ""


def test_the_time_of_a_run_goes_on_through_restarts_and_stands_when_it_is_over() -> None:
    now = 100.0
    lifecycle = Lifecycle(lambda: now)
    assert lifecycle.uptime() == 0.0
    for state in (State.STARTING, State.RUNNING, State.RESTARTING, State.STARTING, State.RUNNING):
        lifecycle.move_to(state)
        now += 1
    assert State.RUNNING in ACTIVE and lifecycle.uptime() == 5.0
    lifecycle.move_to(State.PAUSED)
    now += 10
    assert lifecycle.uptime() == 5.0
    lifecycle.move_to(State.STARTING)
    assert lifecycle.uptime() == 0.0
