"""The gate before micro-batches of Kafka: what waits, a broker that is away, loss, a stop."""

import json

import pytest

from streamer.connectors.kafka.input.data_loss import DataLostError
from streamer.connectors.kafka.input.opened_input import Backlog, MetadataSettings
from streamer.core.errors import StreamerError
from streamer.engine.planner.kafka_admission import POLL_INTERVAL_S, KafkaAdmission, StoppedError
from streamer.engine.planner.kafka_inputs import KafkaInputRef, StreamKafkaInput
from streamer.engine.planner.planner_channels import PlannerChannel


class Topic:
    """A Kafka input that says what it is told to: standings, or errors to be raised."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    def backlog(self, known):
        self.asked.append(known)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def signals(tmp_path):
    made = PlannerChannel(tmp_path / "signals")
    made.clear()
    return made


class Clock:
    def __init__(self):
        self.ns = self.shift = 0
        self.slept = []

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.ns += round(seconds * 1e9)

    def wall(self):
        return self.ns + self.shift

    def now(self):
        return self.ns / 1e9


def gate(signals, *topics, clock=None):
    clock = clock or Clock()
    children = [
        StreamKafkaInput(
            KafkaInputRef(n, (n,), (str(n),), MetadataSettings()), topic, max_messages=100
        )
        for n, topic in enumerate(topics)
    ]
    return KafkaAdmission(children, signals, clock.sleep, clock.wall, clock.now), clock


def trouble_of(signals):
    hints = signals.planner.read()
    return hints.trouble, hints.is_lost


def stands(waiting, more=False):
    return Backlog(waiting, more, {"a": {"0": waiting}})


def test_what_waits_is_added_up_and_asked_beyond_what_was_planned(signals):
    one, two = Topic(stands(3)), Topic(stands(4))
    signals.driver.update(planned_ends=[{"a": {"0": 7}}, {"b": {"0": 9}}])
    found = gate(signals, one, two)[0].read_backlog()
    assert (found.messages, found.more) == (7, False)
    assert found.ends == [{"a": {"0": 3}}, {"a": {"0": 4}}]
    assert one.asked == [{"a": {"0": 7}}] and two.asked == [{"b": {"0": 9}}]


def test_a_stream_is_behind_when_one_input_has_more_than_a_micro_batch_takes(signals):
    assert gate(signals, Topic(stands(101)))[0].read_backlog().more
    assert gate(signals, Topic(stands(1)), Topic(stands(1, True)))[0].read_backlog().more
    assert not gate(signals, Topic(stands(100)))[0].read_backlog().more


def test_a_broker_that_is_away_is_waited_for_ever_longer_and_the_driver_hears_it(signals):
    away = StreamerError("no broker answers")
    heard = []
    clock = Clock()

    def sleep(seconds):
        heard.append(trouble_of(signals))
        clock.sleep(seconds)

    topic = Topic(*[away] * 6, stands(1))
    made = gate(signals, topic, clock=clock)[0]
    made._sleep = sleep
    assert made.read_backlog().messages == 1
    assert set(heard) == {("no broker answers", False)}
    assert clock.ns / 1e9 == pytest.approx(0.5 + 1 + 2 + 4 + 5 + 5)
    assert max(clock.slept) <= POLL_INTERVAL_S, "a stop is heard soon"
    assert trouble_of(signals) == ("", False)


def test_what_is_lost_ends_the_stream_and_the_driver_hears_why(signals):
    made, _ = gate(signals, Topic(DataLostError("a:0 stands at 5 and ends at 3")))
    with pytest.raises(DataLostError):
        made.read_backlog()
    assert trouble_of(signals) == ("a:0 stands at 5 and ends at 3", True)


def test_a_stop_ends_every_wait_with_no_micro_batch(signals):
    made, clock = gate(signals, Topic(StreamerError("away")))
    sleeps = []

    def sleep(seconds):
        sleeps.append(seconds)
        signals.stop()

    made._sleep = sleep
    with pytest.raises(StoppedError):
        made.read_backlog()
    assert len(sleeps) == 1
    with pytest.raises(StoppedError):
        made.wait()


def test_a_window_that_is_due_ends_a_nap(signals):
    made, clock = gate(signals, Topic(stands(0)))
    signals.driver.update(due=100_000_000)
    made.wait()
    assert clock.ns == 100_000_000


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_nap_is_as_long_whatever_the_wall_clock_is_set_to(signals, hours):
    made, clock = gate(signals, Topic(stands(0)))

    def sleep(seconds):
        clock.shift += hours * 3600 * 10**9
        clock.sleep(seconds)

    made._sleep = sleep
    made.wait(1.0)
    assert clock.ns / 1e9 == pytest.approx(1.0)


def test_what_the_driver_says_is_whole_or_not_there(signals, tmp_path):
    assert signals.driver.read().planned_ends == [] and trouble_of(signals) == ("", False)
    signals.driver.update(planned_ends=[{"a": {"0": 1}}])
    document = json.loads((tmp_path / "signals" / "driver.json").read_text())
    assert document["hints"]["planned_ends"] == [{"a": {"0": 1}}]
    signals.clear()
    assert signals.driver.read().planned_ends == []
