"""Rates and charts of a stream whose micro-batches a scripted clock makes."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from streamer.config import parse_config
from streamer.engine.report.batch_times import BatchTimes, TaskTimes
from streamer.engine.report.stream_metrics import Snapshot
from streamer.engine.report.window_history import LAG_METRIC_KEY
from streamer.plan import make_plan
from streamer.service.monitoring.stream_figures import MAX_MARKERS, MarkerKind, StreamFigures
from streamer.service.run.figure_recorder import MAX_PARTITIONS, DeliveredBatch, FigureRecorder

RATE = 50.0
START = 1_700_000_003.0
CONFIG = """
input: { generate: { interval: 20ms, mapping: root = 1 } }
pipeline: { processors: [ { mapping: root = this }, { mapping: root = this } ] }
output: { drop: {} }
"""
MAPPING, OUTPUT = "root.pipeline.processors.0", "root.output"


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


class Generator:
    """A stream that gets exactly so many messages a second, in micro-batches of any length."""

    def __init__(self, seconds: float, config: str = CONFIG, seed: int = 1) -> None:
        self.clock = Clock()
        self.figures = StreamFigures(self.clock)
        self.recorder = FigureRecorder(self.figures, make_plan(parse_config(config, env={})))
        self.recorder.begin(self)
        self.seconds, self.random = seconds, random.Random(seed)
        self.until = 0.0
        self.number = -1
        self.more: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
        self.times = BatchTimes()

    def pass_time(self, seconds: float) -> Iterator[None]:
        """Let time go by, in tenths of a second, with micro-batches one behind the other."""
        end = self.clock.now + seconds
        planned = self.clock.now
        due = planned + self._length()
        while self.clock.now < end:
            self.clock.now += 0.1
            if self.clock.now >= due:
                self.deliver(planned)
                planned = self.clock.now
                due = planned + self._length()
            self.recorder.tick(is_in_hand=True)
            yield

    def _length(self) -> float:
        return self.seconds * self.random.uniform(0.5, 1.5)

    def deliver(self, planned: float) -> None:
        self.number += 1
        messages = int((planned - START) * RATE)
        output = (("label", ""), ("path", OUTPUT))
        counts = {
            ("input_received", ()): messages,
            ("output_sent", output): messages,
            **self.more,
        }
        now = self.clock.now
        began = min(planned + 0.2, now)
        shot = Snapshot(messages, 3, 40, batch=self.number, size=1_000)
        self.recorder.record(
            DeliveredBatch(planned, began, now, now, shot, counts, self.times, 2, 5)
        )

    def read(self, minutes: float = 5) -> dict[str, list[float | None]]:
        now = self.clock.now
        return self.figures.history.read(now - minutes * 60, now, lambda _: True).values


def known(values: list[float | None]) -> list[float]:
    return [one for one in values if one is not None]


@pytest.mark.parametrize("seconds", [0.3, 1.0, 2.5, 7.0, 30.0])
def test_a_steady_stream_reads_its_rate_in_every_look_and_in_every_slot(seconds: float) -> None:
    stream = Generator(seconds)
    looks = []
    for _ in stream.pass_time(max(400, 12 * seconds)):
        if stream.number >= 2:
            looks.append((stream.figures.rates.rate("in"), stream.figures.rates.rate("out")))
    assert len(looks) > 1_000
    assert all(48 <= one <= 52 for look in looks for one in look if one is not None)
    assert None not in looks[0]
    for minutes in (5, 60):
        values = stream.read(minutes)
        for name in ("in", "out"):
            assert len(known(values[name])) >= 15
            assert all(48 <= one <= 52 for one in known(values[name])), values[name]
        assert set(known(values["open_windows"])) == {3}


def test_a_rest_reads_zero_and_what_follows_it_is_not_spread_over_it() -> None:
    stream = Generator(1.0)
    list(stream.pass_time(60))
    while stream.clock.now < START + 120:
        stream.clock.now += 0.5
        stream.recorder.tick(is_in_hand=False)
    assert stream.figures.rates.rate("in") == 0
    assert known(stream.read()["in"])[-3:] == [0, 0, 0]
    # What is open stays known while nothing comes.
    assert known(stream.read()["open_windows"])[-1] == 3
    stream.deliver(stream.clock.now)
    # All that the minute has brought has come just now: 3,000 messages in ten seconds.
    assert max(known(stream.read()["in"])) > 250


def test_what_a_micro_batch_that_takes_very_long_takes_in_is_not_known_before_its_end() -> None:
    stream = Generator(1.0)
    list(stream.pass_time(30))
    began, before = stream.clock.now, stream.figures.rates.rate("in")
    for _ in range(3_000):
        stream.clock.now += 0.1
        stream.recorder.tick(is_in_hand=True)
        expected = before if stream.clock.now - began < 50 else None
        if not 50 <= stream.clock.now - began < 70:
            assert stream.figures.rates.rate("in") == expected
    assert stream.read()["in"][-1] is None
    # It had taken what there was when it began; the next one has the rest.
    stream.deliver(began + 0.5)
    list(stream.pass_time(10))
    assert stream.figures.rates.rate("in") == pytest.approx(50, abs=2)
    assert all(48 <= one <= 52 for one in known(stream.read(10)["in"]))


def test_what_flows_while_a_stream_is_down_is_a_gap() -> None:
    stream = Generator(1.0)
    list(stream.pass_time(30))
    stream.clock.now += 60
    stream.recorder.begin(object())
    assert stream.figures.rates.rate("in") is None
    list(stream.pass_time(30))
    values = stream.read()["in"]
    last = max(n for n, one in enumerate(values) if one is not None)
    assert None in values[values.index(known(values)[0]) : last]


def test_the_output_that_takes_most_of_the_time_holds_the_others() -> None:
    stream = Generator(1.0)
    second = 1_000_000_000
    task = TaskTimes("root.input", second, {MAPPING: second // 10, OUTPUT: second * 8 // 10})
    stream.times = BatchTimes([task])
    stream.times.add_seconds(OUTPUT, 0.05, 0.05)
    list(stream.pass_time(90))
    loads = stream.figures.read_loads()
    assert loads[OUTPUT].holds and not loads[MAPPING].holds
    assert loads[OUTPUT].busy == pytest.approx(0.9, abs=0.1)
    assert loads[MAPPING].busy == pytest.approx(0.1, abs=0.03)
    assert loads["root.input"].back_pressured > 0.5
    for load in loads.values():
        assert load.busy + load.back_pressured + load.idle == pytest.approx(1)


def test_a_blocked_output_holds_the_others_while_its_micro_batch_is_in_hand() -> None:
    stream = Generator(1.0)
    stream.times = BatchTimes([TaskTimes("root.input", 10_000_000, {})])
    list(stream.pass_time(30))
    assert not any(load.holds for load in stream.figures.read_loads().values())
    error = ("output_error", (("label", ""), ("path", OUTPUT)))
    counts = {
        ("input_received", ()): stream.figures.received,
        ("output_sent", error[1]): stream.figures.received,
    }
    for number in range(1_200):
        stream.clock.now += 0.1
        blocked = {**counts, error: number // 10}
        stream.recorder.tick(True, f"{OUTPUT}.broker.outputs.0", blocked)
    loads = stream.figures.read_loads()
    assert loads[OUTPUT].holds and loads[OUTPUT].waiting > 0.95
    assert loads["root.input"].back_pressured > 0.9
    assert stream.figures.rates.rate("in") == 0
    # Its errors are told meanwhile: one a second.
    assert stream.figures.rates.rate("error") == pytest.approx(1, abs=0.1)
    assert known(stream.read()["errors"])[-3] == pytest.approx(1, abs=0.25)
    # It is delivered at last: what it has is told, and nothing twice.
    stream.deliver(stream.clock.now - 119)
    assert 0 < (stream.figures.rates.rate("in") or 0) < 60


def test_how_far_kafka_is_ahead_is_known_while_nothing_is_delivered() -> None:
    stream = Generator(1.0)
    lags = {("kafka_lag", (("partition", str(number)), ("topic", "t"))): 5.0 for number in (0, 1)}
    for _ in range(30):
        stream.clock.now += 0.5
        stream.recorder.tick(is_in_hand=True, gauges=lags)
    # One is measured anew, and the first micro-batch still runs.
    lags[("kafka_lag", (("partition", "1"), ("topic", "t")))] = 8.0
    stream.clock.now += 5
    stream.recorder.tick(is_in_hand=True, gauges=lags)
    values = stream.read()
    assert known(values["kafka_lag"])[:2] == [10, 10] and known(values["kafka_lag"])[-1] == 13
    assert known(values["kafka_lag:t/1"])[-1] == 8
    # No broker answers: what was true before is not repeated.
    for _ in range(40):
        stream.clock.now += 0.5
        stream.recorder.tick(is_in_hand=False)
    assert stream.read()["kafka_lag"][-2:] == [None, None]


def test_durations_gauges_and_the_largest_lags_are_kept() -> None:
    stream = Generator(2.0)
    stream.more = {LAG_METRIC_KEY: 1.5}
    for number in range(40):
        labels = (("partition", str(number)), ("topic", "orders"))
        stream.more["kafka_lag", labels] = number
    stream.times = BatchTimes([TaskTimes("root.input", 500_000_000, {})])
    list(stream.pass_time(60))
    values = stream.read()
    assert known(values["kafka_lag"])[-1] == sum(range(40))
    partitions = [name for name in values if name.startswith("kafka_lag:")]
    assert len(partitions) == MAX_PARTITIONS and "kafka_lag:orders/39" in partitions
    assert set(known(values["event_time_lag"])) == {1.5}
    assert known(values["stage_1_seconds"])[-1] == 0.5
    assert known(values["stage_2_seconds"])[-1] == 0
    assert 0.5 < known(values["batch_seconds"])[-1] < 3.2
    assert 0.5 < known(values["latency_p50"])[-1] <= known(values["latency_p99"])[-1] < 3.2
    assert known(values["state_bytes"])[-1] == 1_000
    assert known(values["backlog"])[-1] == 5


def test_windows_count_what_their_buffer_takes_and_outputs_inside_of_others_once() -> None:
    stream = Generator(
        1.0,
        "input: { generate: { mapping: root = 1 } }\n"
        "buffer: { system_window: { size: 10s } }\n"
        "output: { broker: { outputs: [ { drop: {} }, { drop: {} } ] } }\n",
    )
    buffer = (("label", ""), ("path", "root.buffer"))
    inner = (("label", ""), ("path", "root.output.broker.outputs.0"))
    outer = (("label", ""), ("path", OUTPUT))
    counts = {
        ("buffer_received", buffer): 500,
        ("output_sent", inner): 300,
        ("output_sent", outer): 200,
        ("processor_error", outer): 7,
    }
    stream.clock.now += 10
    now = stream.clock.now
    # As after a restart: what the checkpoint has counted before is another figure.
    shot = Snapshot(54_879, dropped={"late": 60}, batch=4)
    stream.recorder.record(DeliveredBatch(now, now, now, now, shot, counts))
    assert stream.figures.received == 500
    assert stream.figures.rates.rate("in") == 50
    assert stream.figures.rates.rate("out") == 20
    assert stream.figures.rates.rate("error") == 0.7
    assert known(stream.read()["late"])[-1] == 0


def test_markers_are_bounded_and_errors_that_follow_each_other_are_one() -> None:
    stream = Generator(1.0)
    figures = stream.figures
    for number in range(1_000):
        figures.mark(MarkerKind.ERROR, f"no {number}\nagain")
    assert [(one.text, one.times) for one in figures.markers()] == [("no 0 again", 1_000)]
    # One that comes again each half a minute is one; another one is not.
    for text in ("no 0 again", "no 0 again", "other"):
        stream.clock.now += 30
        figures.mark(MarkerKind.ERROR, text)
    assert [(one.text, one.times) for one in figures.markers()][1:] == [("other", 1)]
    for _ in range(1_000):
        figures.mark(MarkerKind.DEPLOY, "x" * 10_000)
    assert len(figures.markers()) == MAX_MARKERS
    assert max(len(one.text) for one in figures.markers()) <= 300
