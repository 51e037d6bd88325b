"""The pace of a stream: by what a micro-batch costs, and what waits, without a setting."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest

from streamer.core.durations import MILLISECOND, SECOND
from streamer.engine.planner.pacing import (
    FULL_BATCH_MESSAGES,
    PacingPolicy,
    PacingSettings,
    PendingData,
    estimate_fixed_cost,
)
from streamer.window import SystemWindow
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.window_types import Session, Tumbling

STATELESS = PacingSettings(SECOND // 2)
WINDOWS = PacingSettings(2 * SECOND)
T0 = 1_700_000_000 * SECOND
COST = 80 * MILLISECOND


def paced(
    settings: PacingSettings, *windows: object, cost: int = COST, time: int = T0
) -> PacingPolicy:
    """A policy that has just ended a micro-batch, at second 1 of the steady clock."""
    policy = PacingPolicy(settings, windows)  # type: ignore[arg-type]
    policy.note_start(PendingData(1, SECOND - cost, time))
    policy.note_end(SECOND)
    return policy


def wait_of(policy: PacingPolicy, messages: int, after_ms: int = 0, **more: int) -> float:
    """Return how many ms data waits that is seen some ms after the last micro-batch."""
    steady = SECOND + after_ms * MILLISECOND
    data = PendingData(messages, steady, T0 + after_ms * MILLISECOND)._replace(**more)
    at = policy.starts_at(data)
    assert at is not None
    return max(at - steady, 0) / MILLISECOND


def test_the_first_message_of_an_idle_stream_starts_its_micro_batch_at_once() -> None:
    for settings in (STATELESS, WINDOWS, PacingSettings(SECOND, is_fixed=True)):
        assert PacingPolicy(settings).starts_at(PendingData(1, SECOND)) == SECOND, "the first"
        assert wait_of(paced(settings), 1, after_ms=5_000) == 0
    assert PacingPolicy(STATELESS).starts_at(PendingData(0, SECOND)) is None
    assert wait_of(paced(PacingSettings(SECOND, is_fixed=True)), 1, after_ms=500) == 420


@pytest.mark.parametrize(("messages", "factor"), [(1, 5), (4, 3.33), (20, 1.5), (10_000, 1.5)])
def test_a_stream_rests_by_what_a_small_micro_batch_takes_and_how_much_waits(
    messages: int, factor: float
) -> None:
    for cost in (COST, 60 * MILLISECOND):
        # Seen 120 ms after the start of the last one.
        policy = paced(STATELESS, cost=cost)
        after = 120 - cost // MILLISECOND
        rest = wait_of(policy, messages, after) + after
        assert rest == pytest.approx(factor * cost / MILLISECOND, rel=0.01)


@pytest.mark.parametrize("message_us", [1, 4, 40])
def test_what_messages_take_is_not_what_a_micro_batch_costs(message_us: int) -> None:
    of_sizes = [
        (count, COST + count * message_us * 1_000) for count in (9_000, 30_000, 12_000, 20_000)
    ]
    assert estimate_fixed_cost(of_sizes) == pytest.approx(COST, rel=0.2)
    # One that took long had much to do, or waited for its output: it says nothing.
    waited = [(1, 10 * COST)] * 7
    assert estimate_fixed_cost([*waited, (1, COST)]) == pytest.approx(COST, rel=0.01)
    # Where all are of a size, part of it is taken for their messages.
    same = estimate_fixed_cost([(10_000, COST + 10_000 * message_us * 1_000)] * 8)
    assert COST / 8 <= same <= COST + 10_000 * message_us * 1_000


def test_nothing_rests_longer_than_data_may_wait_nor_for_plenty() -> None:
    assert wait_of(paced(STATELESS, cost=9 * SECOND), 1) == 500
    assert wait_of(paced(WINDOWS, cost=9 * SECOND), 1) == 2_000
    assert wait_of(paced(STATELESS, cost=9 * SECOND), FULL_BATCH_MESSAGES) == 0
    policy = paced(PacingSettings(3 * SECOND, collect=3 * SECOND))
    assert wait_of(policy, 1, after_ms=9_000) == 3_000, "a batching period collects"
    assert wait_of(policy, 5, after_ms=10_000) == 2_000
    assert wait_of(paced(PacingSettings(SECOND, answers_requests=True)), 1) == 0
    assert wait_of(paced(STATELESS), 1, min_distance=SECOND) == 920, "others share the cores"
    assert wait_of(paced(STATELESS), 1, after_ms=2_000, min_distance=SECOND) == 0


def test_what_the_config_sets_is_the_distance_of_micro_batches() -> None:
    fixed = PacingSettings(10 * SECOND, is_fixed=True)
    assert wait_of(paced(fixed), 1) == 10_000 - COST / MILLISECOND
    assert wait_of(paced(fixed), 1, after_ms=9_000) == 1_000 - COST / MILLISECOND
    quick = PacingSettings(10 * MILLISECOND, is_fixed=True)
    assert wait_of(paced(quick), 1) == 0


def test_data_of_windows_is_taken_when_they_close_and_not_just_before() -> None:
    window = SystemWindow(size=10 * SECOND)
    assert wait_of(paced(WINDOWS, window), 50) == 1_920, "nothing is due within 2 s"
    assert wait_of(paced(WINDOWS, window), 50, time=T0 + 9_000 * MILLISECOND) == 1_000
    assert wait_of(paced(WINDOWS, window), 50, 2_000, time=T0 + 9_950 * MILLISECOND) == 50
    assert wait_of(paced(WINDOWS, window), 50, 2_000, time=T0 + 9_800 * MILLISECOND) == 0
    # By event time: when the messages behind the end have come, as late as they come of late.
    tumbling = EventWindow(Tumbling(10 * SECOND, 10 * SECOND))
    waits = [
        wait_of(planned, 50, time=T0 + ms * MILLISECOND, event_lag=lag)
        for ms, lag in ((9_500, 0), (9_500, SECOND), (9_900, 300 * MILLISECOND))
        for planned in [paced(WINDOWS, tumbling, time=T0 + 2 * SECOND)]
    ]
    assert waits == [520, 1_520, 420]
    assert wait_of(paced(WINDOWS, tumbling), 50, time=T0 + 200 * MILLISECOND) == 0, "it is late"
    # A message that closes it may come later than others: for a second the stream is quick.
    closed = paced(WINDOWS, tumbling, time=T0 + 30 * MILLISECOND)
    wait = wait_of(closed, 50, time=T0 + 200 * MILLISECOND)
    assert wait == pytest.approx(240, abs=0.1)
    closed = paced(WINDOWS, tumbling, time=T0 + 30 * MILLISECOND)
    assert wait_of(closed, 50, time=T0 + 3_000 * MILLISECOND) == 1_920
    days = EventWindow(Tumbling(86_400 * SECOND, 86_400 * SECOND, timezone="Europe/Berlin"))
    assert wait_of(paced(WINDOWS, days), 50, event_lag=3600 * SECOND) == 1_920
    # Without a grid any message may close one.
    assert wait_of(paced(WINDOWS, EventWindow(Session(SECOND))), 50) == pytest.approx(240, abs=0.1)
    assert wait_of(paced(WINDOWS, tumbling, EventWindow(Session(SECOND))), 50) == pytest.approx(
        240, abs=0.1
    )


class Load(NamedTuple):
    """An hour of a day.

    Attributes:
        rate: messages a second.
        cost: what a micro-batch takes beside its messages, ms: more where others use the cores.
    """

    rate: float
    cost: float = 50


@dataclass
class Simulation:
    """A stream of evenly spaced messages on one core, in a time of its own.

    Attributes:
        policy: decides when micro-batches start.
        message_us: what a message takes of a micro-batch, µs.
    """

    policy: PacingPolicy
    message_us: float = 4.0
    latencies: list[tuple[float, int]] = field(default_factory=list)
    busy: float = 0.0
    now: float = 0.0

    def run(self, load: Load, seconds: float) -> None:
        """Go on for a while; latencies are kept as (ms, messages)."""
        until, gap = self.now + seconds, 1 / load.rate
        first = self.now + gap
        while self.now < until:
            waiting = math.floor((self.now - first) / gap + 1e-6) + 1
            if waiting <= 0:
                self.now = first
                continue
            at = self.policy.starts_at(PendingData(waiting, round(self.now * SECOND)))
            assert at is not None
            if at / SECOND > self.now + 1e-9:
                # As the planner does, which polls again meanwhile.
                self.now = min(at / SECOND, self.now + 0.05)
                continue
            self.policy.note_start(PendingData(waiting, round(self.now * SECOND)))
            took = load.cost / 1e3 + waiting * self.message_us / 1e6
            self.busy += took
            self.now += took
            self.policy.note_end(round(self.now * SECOND))
            for part in range(10):
                of = first + (waiting - 1) * gap * (part + 0.5) / 10
                self.latencies.append(((self.now - of) * 1e3, waiting))
            first += waiting * gap


def measured(loads: list[Load], seconds: float) -> tuple[float, float, float]:
    """Return p50 and p99 of the latency, ms, and the share of a core."""
    simulation = Simulation(PacingPolicy(STATELESS))
    simulation.run(loads[0], 5)
    simulation.latencies.clear()
    simulation.busy, began = 0.0, simulation.now
    for load in loads:
        simulation.run(load, seconds)
    found = sorted(simulation.latencies)
    total, seen, quantiles = sum(count for _, count in found), 0, []
    for ms, count in found:
        seen += count
        if seen >= total * (0.5 if not quantiles else 0.99):
            quantiles.append(ms)
            if len(quantiles) == 2:
                break
    return quantiles[0], quantiles[1], simulation.busy / (simulation.now - began)


@pytest.mark.parametrize(
    ("rate", "p50", "p99", "share"),
    [
        (0.2, 51, 51, 0.01),
        (1, 51, 51, 0.06),
        (10, 200, 310, 0.18),
        (100, 110, 170, 0.42),
        (1_000, 110, 180, 0.42),
        (20_000, 130, 200, 0.47),
        (100_000, 240, 350, 0.67),
        (200_000, 400, 520, 1.0),
    ],
)
def test_latency_and_cpu_are_near_their_best_at_every_rate(
    rate: float, p50: float, p99: float, share: float
) -> None:
    found = measured([Load(rate)], 60)
    assert all(one <= bound for one, bound in zip(found, (p50, p99, share), strict=True)), found


def test_over_a_day_of_changing_load_latency_and_cpu_keep_their_bounds() -> None:
    # An hour in a minute: a night of hardly any, a morning, a peak, and the machine at work on
    # something else in the afternoon, so that a micro-batch takes five times as long.
    night = [Load(0.2)] * 6
    day = [Load(10), Load(100), Load(1_000), Load(20_000), Load(100_000), Load(50_000)]
    slow = [Load(1_000, 250), Load(100, 250), Load(10, 250)]
    evening = [Load(200), Load(30), Load(5), Load(1)]
    p50, p99, share = measured([*night, *day, *slow, *evening, *night[:5]], 60)
    assert p50 <= 200 and p99 <= 350, (p50, p99)
    assert share <= 0.2, share
    worst = [measured([load], 20) for load in (*day, *slow, *evening)]
    assert max(one[1] for one in worst) <= 950, worst
    assert max(one[2] for one in worst[-7:]) <= 0.42, "a slow machine is not loaded any more"
