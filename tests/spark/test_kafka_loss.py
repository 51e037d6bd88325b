"""Topics that are cut or made anew before they were read: the error, and going on all the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamer.core.errors import StreamerError
from tests.servers.kafka import Kafka, Record
from tests.spark.conftest import Ran, Runner

pytestmark = [pytest.mark.spark, pytest.mark.slow]

BOUND = 20


class Stream:
    """A stream of one topic into a file, which is started again and again."""

    def __init__(self, run: Runner, kafka: Kafka, directory: Path, topic: str) -> None:
        self._run, self._kafka, self.topic = run, kafka, topic
        self._out = directory / "out.txt"
        kafka.create(topic)

    def runs(self, last: int, watch: Any = lambda stream: None, **fields: Any) -> Ran:
        """Run until a number is written; `fields` are the input's."""
        given = {"seed_brokers": [self._kafka.bootstrap], "topics": [self.topic], **fields}
        # The broker hands out no more than a message or two at once, as if they were large.
        given |= {"fetch_max_bytes": "1kB", "fetch_max_partition_bytes": "1kB"}
        config = {
            "input": {"redpanda": given},
            "pipeline": {"processors": [{"mapping": "root = content().trim()"}]},
            "output": {"file": {"path": str(self._out)}},
        }
        return self._run(json.dumps(config), until=lambda _: last in self.lines, watch=watch)

    def has(self, first: int, last: int) -> None:
        """Let the topic have these numbers more."""
        values = (Record(str(n).encode() + b" " * 600, partition=0) for n in range(first, last))
        self._kafka.produce(self.topic, *values, batch_num_messages=1)

    def is_made_anew(self, *numbers: int) -> None:
        self._kafka.delete(self.topic)
        self._kafka.create(self.topic)
        self.has(*numbers)

    @property
    def lines(self) -> list[int]:
        return [int(line) for line in self._out.read_text().split()] if self._out.exists() else []


@pytest.fixture
def stream(run_stream: Runner, kafka: Kafka, tmp_path: Path) -> Iterator[Any]:
    yield lambda topic: Stream(run_stream, kafka, tmp_path, topic)


def lost(ran: Ran) -> int:
    return sum(count for (name, _), count in ran.counts.items() if name == "redpanda_lost")


def test_a_topic_that_retention_has_cut_while_the_stream_was_down(
    stream: Any, kafka: Kafka
) -> None:
    cut = stream("cut-while-down")
    cut.has(0, 10)
    cut.runs(9)
    cut.has(10, 20)
    kafka.delete_records(cut.topic, {0: 15})
    with pytest.raises(StreamerError) as caught:
        cut.runs(19)
    assert (
        "cut-while-down:0 stands at 10 and begins at 15; use another checkpoint, or set "
        "fail_on_data_loss: false" in str(caught.value)
    )
    assert cut.lines == [*range(10)]
    ran = cut.runs(19, fail_on_data_loss=False)
    assert cut.lines == [*range(10), *range(15, 20)]
    assert lost(ran) == 5
    assert len(ran.said("cut-while-down:0 stood at 10 and begins at 15")) == 1


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_topic_that_retention_cuts_under_a_stream_that_is_behind(
    stream: Any, kafka: Kafka, goes_on: bool
) -> None:
    cut = stream(f"cut-while-read-{goes_on}")
    cut.has(0, 200)
    done: list[int] = []

    def cuts(_: Any) -> None:
        if len(cut.lines) >= BOUND and not done:
            kafka.delete_records(cut.topic, {0: 150})
            done.append(len(cut.lines))

    if not goes_on:
        with pytest.raises(StreamerError) as caught:
            cut.runs(199, watch=cuts, max_messages_per_trigger=BOUND)
        assert f"{cut.topic}:0 stands at " in str(caught.value)
        assert "begins at 150" in str(caught.value)
        assert "fail_on_data_loss: false" in str(caught.value)
        assert cut.lines == [*range(len(cut.lines))] and len(cut.lines) < 150
        return
    ran = cut.runs(199, watch=cuts, max_messages_per_trigger=BOUND, fail_on_data_loss=False)
    before = [n for n in cut.lines if n < 150]
    assert before == [*range(len(before))] and cut.lines[len(before) :] == [*range(150, 200)]
    # What is cut between a look and the reading behind it is not known.
    assert 150 - BOUND <= len(before) + lost(ran) <= 150 + BOUND
    assert len(ran.said("begins at 150")) == 1


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_topic_that_is_deleted_and_made_anew_under_a_stream(
    stream: Any, kafka: Kafka, goes_on: bool
) -> None:
    anew = stream(f"anew-{goes_on}")
    anew.has(0, 10)
    done: list[int] = []

    def makes_anew(_: Any) -> None:
        if len(anew.lines) >= 10 and not done:
            done.append(1)
            # Longer than it was, so that offsets alone tell nothing.
            anew.is_made_anew(1000, 1020)

    if not goes_on:
        with pytest.raises(StreamerError) as caught:
            anew.runs(1019, watch=makes_anew)
        assert (
            f"the topic '{anew.topic}' was deleted and recreated, so that the checkpoint's offsets "
            f"mean other messages: {anew.topic}:0 stands at 10 and begins anew at 0; use another "
            "checkpoint, or set fail_on_data_loss: false" in str(caught.value)
        )
        assert anew.lines == [*range(10)]
        return
    ran = anew.runs(1019, watch=makes_anew, fail_on_data_loss=False)
    # Found before all of it was written, it is shorter: then it goes on where it ended by then.
    at = lost(ran)
    assert at <= 10 and anew.lines == [*range(10), *range(1000 + at, 1020)]
    assert f"goes on at {at}, and {at} messages from 0 on" in ran.said("are not read")[0]


def test_a_topic_that_was_made_anew_and_is_shorter_goes_on_at_its_end(
    stream: Any, kafka: Kafka
) -> None:
    anew = stream("anew-shorter")
    anew.has(0, 10)
    anew.runs(9)
    anew.is_made_anew(1000, 1003)
    with pytest.raises(StreamerError, match="'anew-shorter' was deleted and recreated"):
        anew.runs(1002)
    done: list[int] = []

    def grows(stream: Any) -> None:
        if not done and any(name == "redpanda_lost" for name, _ in stream.meters.counts):
            done.append(1)
            anew.has(1003, 1010)

    ran = anew.runs(1009, watch=grows, fail_on_data_loss=False)
    assert anew.lines == [*range(10), *range(1003, 1010)]
    assert lost(ran) == 3
    assert ran.said("stood at 10, goes on at 3, and 3 messages from 0 on are not read")
