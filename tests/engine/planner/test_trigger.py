"""When a micro-batch starts: plenty of data, old data, a window due."""

from streamer.core.durations import SECOND
from streamer.engine.planner.planner_channels import MicroBatchOffset, PlannerChannel
from streamer.engine.planner.trigger import (
    FULL_BATCH_MESSAGES,
    IdlePause,
    PollSettings,
    TriggerPolicy,
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
    assert not pacer.should_start(1, False, 10 * SECOND, min_wait=4 * SECOND)
    assert not pacer.should_start(1, False, 13 * SECOND, min_wait=4 * SECOND)
    assert pacer.should_start(1, False, 14 * SECOND, min_wait=4 * SECOND)
    assert not pacer.should_start(1, False, 20 * SECOND, min_wait=SECOND)
    assert pacer.should_start(1, True, 20 * SECOND, min_wait=4 * SECOND)


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


class Sleeper:
    """A clock that only sleeping moves, and what a test does meanwhile."""

    def __init__(self, meanwhile=lambda: None):
        self.at, self.meanwhile = 0.0, meanwhile

    def sleep(self, seconds):
        self.at += seconds
        self.meanwhile()


def rest_of(signals, sleeper):
    return IdlePause(signals, lambda: sleeper.at, sleeper.sleep, lambda: int(sleeper.at * SECOND))


def paced(tmp_path, seconds):
    signals = PlannerChannel(tmp_path / "signals")
    signals.clear()
    signals.driver.update(poll_interval=seconds)
    return signals


def test_a_source_rests_between_looks_that_find_nothing_and_only_then(tmp_path):
    signals, sleeper = paced(tmp_path, 3.0), Sleeper()
    rest = rest_of(signals, sleeper)
    rest.wait()
    assert sleeper.at == 0, "nobody has looked yet"
    rest.note_poll(False)
    rest.wait()
    assert sleeper.at == 3.0
    rest.note_poll(True)
    rest.wait()
    assert sleeper.at == 3.0, "there was something: there may be more"


def test_a_source_that_is_alone_does_not_rest(tmp_path):
    signals, sleeper = paced(tmp_path, 0.0), Sleeper()
    rest = rest_of(signals, sleeper)
    rest.note_poll(False)
    rest.wait()
    assert sleeper.at == 0


def test_a_window_that_is_due_and_a_stop_end_a_rest(tmp_path):
    signals, sleeper = paced(tmp_path, 60.0), Sleeper()
    rest = rest_of(signals, sleeper)
    signals.driver.update(due=5 * SECOND)
    rest.note_poll(False)
    rest.wait()
    assert 5 <= sleeper.at <= 5.25
    signals.driver.update(due=None)
    rest.note_poll(False)
    sleeper.meanwhile = lambda: signals.stop() if sleeper.at >= 8 else None
    rest.wait()
    assert 8 <= sleeper.at <= 8.25


def test_a_pace_is_said_when_it_has_changed_by_more_than_a_fifth(tmp_path):
    signals = paced(tmp_path, 9.0)
    pace = PollSettings(signals)
    pace.update(2.5, 4.0)
    assert (signals.driver.read().poll_interval, signals.driver.read().min_wait) == (2.5, 4.0)
    pace.update(2.9, 4.5)
    assert (signals.driver.read().poll_interval, signals.driver.read().min_wait) == (2.5, 4.0), (
        "about the same"
    )
    pace.update(3.1, 0.0)
    assert (signals.driver.read().poll_interval, signals.driver.read().min_wait) == (3.1, 0.0)
    signals.clear()
    pace.publish()
    assert (signals.driver.read().poll_interval, signals.driver.read().min_wait) == (3.1, 0.0)
    pace.update(0.0, 0.1)
    assert (signals.driver.read().poll_interval, signals.driver.read().min_wait) == (0.0, 0.1)


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
