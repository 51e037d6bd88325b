"""What groups and metrics are told while a stream runs, on a checkpoint that is written by hand."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from streamer.connectors.kafka.input.data_loss import DataLostError, SkippedMessages
from streamer.connectors.kafka.input.opened_input import Backlog, Offsets
from streamer.engine.driver.kafka_offset_committer import KafkaOffsetCommitter
from streamer.engine.planner.kafka_inputs import StreamKafkaInput


class Reading:
    """A Kafka input that keeps what it is told, and is missing what it is told to."""

    group, lag_metric, lost_metric = "g", "kafka_lag", "kafka_lost"
    commit_period = lag_period = 0
    starting: Mapping[tuple[str, int], int] = MappingProxyType({})

    def __init__(self) -> None:
        self.told: list[Offsets] = []
        self.refusal: str | None = None
        self.newest = 7
        self.asked: list[tuple[Offsets, Offsets]] = []
        self.gone: list[SkippedMessages] = []
        self.kept = True

    def commit(self, ends: Offsets) -> str | None:
        self.told.append(ends)
        return self.refusal

    def find_skipped(self, since: Offsets, ends: Offsets) -> list[SkippedMessages]:
        self.asked.append((since, ends))
        return self.gone

    def backlog(self, known: Offsets) -> Backlog:
        if not self.kept:
            raise DataLostError("t:0 stands at 20 and is gone")
        return Backlog(0, False, {"t": {"0": known.get("t", {"0": 0})["0"] + self.newest}})

    def close(self) -> None:
        pass


def child_of(reading: Any) -> StreamKafkaInput:
    return StreamKafkaInput(reading)


class Kept:
    def __init__(self, spark: Path) -> None:
        self.spark, self.reading = spark, Reading()
        self.log: list[str] = []
        self.gauges: dict[tuple[str, str], int] = {}
        for name in ("offsets", "commits"):
            (spark / name).mkdir()
        log: Any = lambda _, text, __: self.log.append(text)  # noqa: E731
        self.counted: list[str] = []
        self.time = 1000.0
        self.keeper = KafkaOffsetCommitter(
            [child_of(self.reading)],
            spark,
            self.gauge,
            log,
            count=self.counted.append,
            wall=lambda: self.time,
        )

    def gauge(self, name: str, labels: Any, value: Any) -> None:
        self.gauges[name, labels.get("partition", "")] = value

    def plans(self, number: int, end: int) -> None:
        lines = ["v1", json.dumps({"batchTimestampMs": 0}), "{}", json.dumps({"t": {"0": end}})]
        (self.spark / "offsets" / str(number)).write_text("\n".join(lines))
        self.keeper.batch_started(number, [{"t": {"0": end}}])

    def commits(self, number: int) -> None:
        (self.spark / "commits" / str(number)).touch()


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    made = Kept(tmp_path)
    yield made
    made.keeper.close()


def test_before_the_first_micro_batch_the_lag_counts_from_where_the_stream_begins(
    kept: Kept,
) -> None:
    kept.reading.starting = {("t", 0): 5, ("t", 1): -2}
    soon(lambda: kept.gauges.get(("kafka_lag", "0")) == 7)
    assert ("kafka_lag", "1") not in kept.gauges


def soon(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_group_hears_of_nothing_that_is_not_committed(kept: Kept) -> None:
    kept.plans(0, 10)
    kept.plans(1, 20)
    kept.commits(0)
    soon(lambda: kept.reading.told == [{"t": {"0": 10}}])
    kept.plans(2, 30)
    kept.commits(1)
    soon(lambda: kept.reading.told[-1] == {"t": {"0": 20}})
    kept.keeper.close()
    # The last one was given up in the middle.
    assert [at["t"]["0"] for at in kept.reading.told] == [10, 20]
    assert kept.gauges["kafka_lag", "0"] == 7


def test_what_is_gone_is_asked_once_for_a_micro_batch_said_once_and_added_up(kept: Kept) -> None:
    at: list[Offsets] = [{}, *({"t": {"0": end}} for end in (10, 20, 30))]
    kept.plans(0, 10)
    kept.reading.gone = [SkippedMessages("t", "0", 4, 24, "t:0 stood at 10 and begins at 24")]
    kept.plans(1, 20)
    kept.plans(1, 20)  # it has failed, and is run again
    kept.plans(2, 30)
    assert kept.reading.asked == [(at[0], at[1]), (at[1], at[2]), (at[2], at[3])]
    assert kept.gauges["kafka_lost", "0"] == 8
    said = "Messages are gone that were not read: t:0 stood at 10 and begins at 24"
    assert kept.log == [said]
    kept.reading.gone = [SkippedMessages("t", "0", 1, 31, "t:0 stood at 30 and begins at 31")]
    kept.plans(3, 40)
    assert (kept.gauges["kafka_lost", "0"], len(kept.log)) == (9, 2)


def test_a_micro_batch_that_is_run_again_by_a_new_start_begins_where_it_began(kept: Kept) -> None:
    kept.plans(4, 10)
    kept.plans(5, 20)
    keeper = KafkaOffsetCommitter([child_of(kept.reading)], kept.spark, kept.gauge, lambda *_: None)
    keeper.note_end(5, [{"t": {"0": 20}}])
    keeper.batch_started(5, [{"t": {"0": 20}}])
    keeper.close()
    assert kept.reading.asked[-1] == ({"t": {"0": 10}}, {"t": {"0": 20}})


class Stalling:
    """A keeper of a micro-batch whose reading stands still, by a clock of the test's own."""

    def __init__(self, spark: Path) -> None:
        self.reading, self.read, self.at = Reading(), 7, 0.0
        self.reading.kept = False
        self.keeper = KafkaOffsetCommitter(
            [child_of(self.reading)],
            spark,
            lambda *_: None,
            lambda *_: None,
            lambda: self.read,
            lambda: self.at,
        )
        self.keeper.close()  # its thread: what it does is done by hand
        self.keeper.batch_started(3, [{"t": {"0": 20}}])

    def after(self, seconds: float) -> str:
        self.at += seconds
        self.keeper._check_data_loss()
        return self.keeper.data_loss


def test_a_topic_that_is_gone_while_a_micro_batch_waits_for_it_is_found(tmp_path: Path) -> None:
    stalling = Stalling(tmp_path)
    assert stalling.after(0.1) == ""
    assert stalling.after(7) == ""
    stalling.read += 1  # it is still being read
    assert stalling.after(7) == ""
    assert stalling.after(7) == ""
    assert stalling.after(1) == "t:0 stands at 20 and is gone (while micro-batch 3 was reading it)"


def test_what_has_left_kafka_is_not_looked_for(tmp_path: Path) -> None:
    stalling = Stalling(tmp_path)
    stalling.after(0.1)
    stalling.keeper.batch_delivered()
    assert stalling.after(60) == ""


OLDEST = "input_oldest_unread_timestamp_seconds", ""


def test_the_oldest_message_that_waits_has_a_time_until_it_is_delivered(kept: Kept) -> None:
    kept.reading.newest = 0
    kept.plans(0, 10)
    kept.commits(0)
    soon(lambda: OLDEST in kept.gauges)
    assert kept.gauges[OLDEST] is None
    kept.time, kept.reading.newest = 1010.0, 5
    soon(lambda: kept.gauges[OLDEST] == 1010.0)
    # Others come, and the micro-batch that has it is in hand: it waits still.
    kept.time, kept.reading.newest = 1020.0, 3
    kept.plans(1, 15)
    soon(lambda: kept.gauges["kafka_lag", "0"] == 3)
    assert kept.gauges[OLDEST] == 1010.0
    kept.commits(1)
    soon(lambda: kept.gauges[OLDEST] == 1020.0)
    kept.reading.newest = 0
    kept.plans(2, 18)
    kept.commits(2)
    soon(lambda: kept.gauges[OLDEST] is None)


def test_each_commit_that_a_group_does_not_take_is_counted_and_said_once(kept: Kept) -> None:
    kept.reading.refusal = "the group g has members of its own"
    kept.plans(0, 10)
    kept.commits(0)
    soon(lambda: len(kept.counted) >= 3)
    assert set(kept.counted) == {"input_group_commit_failures_total"}
    assert kept.log == [kept.reading.refusal]
    kept.reading.refusal = None
