"""Ticks of windows that are due, and the hints between the driver and the planner."""

from streamer.core.durations import SECOND
from streamer.engine.planner.planner_channels import (
    DriverHints,
    MicroBatchOffset,
    PlannerChannel,
)
from streamer.engine.planner.trigger import PaceHints, next_tick
from streamer.window import SystemWindow


def test_a_tick_comes_when_an_open_window_is_due_and_not_before():
    window = SystemWindow(size=10 * SECOND, allowed_lateness=SECOND)
    before = window.due_count(95 * SECOND)
    assert next_tick((window,), before, None, 200 * SECOND) == before, "nothing is open"
    assert next_tick((window,), before, 101 * SECOND, 101 * SECOND - 1) == before
    assert next_tick((window,), before, 101 * SECOND, 101 * SECOND) == before + 1
    assert next_tick((window,), before, 101 * SECOND, 140 * SECOND) == before + 4, (
        "a late tick counts all"
    )
    assert next_tick((), 7, 1, 2) == 7


def test_signals_are_forgotten_at_a_start(tmp_path):
    signals = PlannerChannel(tmp_path / "signals")
    signals.clear()
    assert signals.driver.read().due is None and not signals.driver.read().is_stopping
    signals.driver.update(due=5)
    signals.stop()
    assert signals.driver.read().due == 5 and signals.driver.read().is_stopping
    signals.clear()
    assert signals.driver.read().due is None and not signals.driver.read().is_stopping


def test_how_many_tasks_run_at_once_is_not_known_until_it_is_said(tmp_path):
    signals = PlannerChannel(tmp_path / "signals")
    signals.clear()
    assert signals.driver.read().tasks is None
    signals.driver.update(tasks=8)
    signals.driver.update(tasks=6)
    assert signals.driver.read().tasks == 6


def test_a_hint_is_said_when_it_has_changed_by_more_than_a_fifth(tmp_path):
    signals = PlannerChannel(tmp_path / "signals")
    signals.clear()
    hints, published = PaceHints(signals), []
    for seconds in (4.0, 4.5, 0.0, 0.01, 3.0, 0.1):
        hints.update(min_interval=round(seconds * SECOND))
        published.append(signals.driver.read().min_interval / SECOND)
    assert published == [4.0, 4.0, 0.0, 0.0, 3.0, 0.1]
    signals.clear()
    hints.update_lag(None, [{"now": 5 * SECOND}], 6 * SECOND)
    hints.update_lag(8.0, [], 6 * SECOND)
    assert signals.driver.read() == DriverHints()
    hints.update_lag(8.0, [{"now": 5 * SECOND}, {"now": 4 * SECOND}], 6 * SECOND)
    assert signals.driver.read() == DriverHints(min_interval=SECOND // 10, event_lag=7 * SECOND)
    hints.update_lag(1e9, [{"now": 5 * SECOND}], 6 * SECOND)
    assert signals.driver.read().event_lag == 3600 * SECOND


def test_a_micro_batch_is_backlog_until_it_ends_where_kafka_ended_at_the_start():
    bare = {"start": "a", "ended": False, "time": 7}
    offset = {**bare, "backlog_ends": [{"cars": {"0": 100, "1": 7}}]}
    for ends, backlog in (({"0": 50, "1": 7}, True), ({"0": 100, "1": 6}, True)):
        assert MicroBatchOffset.from_fields(offset).batch_info([{"cars": ends}]).backlog is backlog
    assert (
        not MicroBatchOffset.from_fields(offset).batch_info([{"cars": {"0": 100, "1": 9}}]).backlog
    )
    # Without Kafka, and of a checkpoint of before.
    assert (
        not MicroBatchOffset.from_fields(offset).batch_info().backlog
        and MicroBatchOffset.from_fields(offset).batch_info().batch_time == 7
    )
    assert not MicroBatchOffset.from_fields(bare).batch_info([{"cars": {"0": 1}}]).backlog
