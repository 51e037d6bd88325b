"""When a micro-batch starts: plenty of data, old data, a window due."""

from streamer.core.durations import SECOND
from streamer.engine.planner.planner_channels import MicroBatchOffset, PlannerChannel
from streamer.engine.planner.trigger import (
    FULL_BATCH_MESSAGES,
    TriggerPolicy,
    WaitSetting,
    next_tick,
)
from streamer.window import SystemWindow


def test_data_waits_for_the_interval():
    pacer = TriggerPolicy(2 * SECOND)
    assert not pacer.should_start(1, False, 10 * SECOND)
    assert not pacer.should_start(5, False, 11 * SECOND)
    assert pacer.should_start(9, False, 12 * SECOND)
    assert not pacer.should_start(1, False, 12 * SECOND), "the wait begins anew"


def test_where_cores_are_few_data_waits_longer_but_not_what_is_urgent():
    pacer = TriggerPolicy(2 * SECOND)
    assert not pacer.should_start(1, False, 10 * SECOND, min_wait=4.0)
    assert not pacer.should_start(1, False, 13 * SECOND, min_wait=4.0)
    assert pacer.should_start(1, False, 14 * SECOND, min_wait=4.0)
    assert not pacer.should_start(1, False, 20 * SECOND, min_wait=1.0)
    assert pacer.should_start(1, True, 20 * SECOND, min_wait=4.0)


def test_plenty_or_urgent_data_does_not_wait():
    assert TriggerPolicy(SECOND).should_start(FULL_BATCH_MESSAGES, False, 0)
    assert TriggerPolicy(SECOND).should_start(1, True, 0)
    assert not TriggerPolicy(SECOND).should_start(0, True, 0)


def test_a_clock_that_is_set_back_does_not_hold_data_for_ever():
    pacer = TriggerPolicy(SECOND)
    assert not pacer.should_start(1, False, 100 * SECOND)
    assert not pacer.should_start(1, False, 50 * SECOND)
    assert pacer.should_start(1, False, 51 * SECOND)


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


def test_a_wait_is_said_when_it_has_changed_by_more_than_a_fifth(tmp_path):
    signals = PlannerChannel(tmp_path / "signals")
    signals.clear()
    setting, published = WaitSetting(signals), []
    for seconds in (4.0, 4.5, 0.0, 3.0, 0.1):
        setting.update(seconds)
        published.append(signals.driver.read().min_wait)
    assert published == [4.0, 4.0, 0.0, 3.0, 0.1]
    signals.clear()
    setting.publish()
    assert signals.driver.read().min_wait == 0.1


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
