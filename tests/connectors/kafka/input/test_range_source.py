"""The planning of micro-batches of topics, without a broker."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from streamer.connectors.kafka.cluster.connection import Connection
from streamer.connectors.kafka.cluster.topic_selection import EARLIEST, TopicSelection
from streamer.connectors.kafka.input.data_loss import UnknownLossError
from streamer.connectors.kafka.input.kafka_source import KafkaSource
from streamer.connectors.kafka.input.message_metadata import NeededMetadata
from streamer.connectors.kafka.input.opened_input import Backlog
from streamer.connectors.kafka.input.range_source import KafkaRangeSource
from streamer.sdk.input.replayable import LatestOffset, Limit


class Cluster:
    """What a cluster says: ends, beginnings, and what is lost."""

    def __init__(self, ends: dict[str, int], begins: dict[str, int] | None = None) -> None:
        self.ends, self.begins, self.lost = ends, begins or {}, list[str]()
        self.polls = 0

    def backlog(self, known: Any) -> Backlog:
        self.polls += 1
        return Backlog(0, False, {"t": dict(self.ends)})

    def first_offsets(self, places: list[Any]) -> dict[Any, int]:
        return {place: self.begins.get(str(place[1]), 0) for place in places}

    def lost_partitions(self, known: Any, ends: Any) -> list[Any]:
        return [("t", int(number)) for number in self.lost]


@pytest.fixture
def source_of(monkeypatch: pytest.MonkeyPatch) -> Any:
    def made(cluster: Cluster, starting: Any = None, **more: Any) -> KafkaRangeSource:
        own = {name: more.pop(name) for name in ("bound", "fail_on_data_loss") if name in more}
        connection = Connection(("nowhere:1",))
        kafka = KafkaSource(
            "kafka", connection, TopicSelection(("t",)), starting=starting or {}, **own
        )
        monkeypatch.setattr(KafkaSource, "backlog", lambda _, known: cluster.backlog(known))
        monkeypatch.setattr(
            KafkaSource, "first_offsets", lambda _, some: cluster.first_offsets(some)
        )
        monkeypatch.setattr(
            kafka.cluster_view, "lost_partitions", cluster.lost_partitions, raising=False
        )
        return KafkaRangeSource(kafka, **{"needed": NeededMetadata(frozenset()), **more})

    return made


def at(**offsets: int) -> dict[str, Any]:
    return {"kafka:at": {"t": {number[1:]: offset for number, offset in offsets.items()}}}


def poll(source: KafkaRangeSource, start: Any, now: int = 1, **limit: int) -> LatestOffset:
    return source.latest_offset(start, now, Limit(**limit))


def test_a_start_resolves_where_each_partition_begins_and_keeps_it(source_of):
    cluster = Cluster({"0": 10, "1": 7}, {"0": 4})
    source = source_of(cluster, {("t", 0): EARLIEST, ("t", 1): 5})
    start = source.initial_offset()
    assert start == at(p0=-2, p1=5)
    found = poll(source, start)
    assert found == ({**at(p0=10, p1=7), "kafka:begun": {"t": {"0": 4}}}, 8, False, False)
    cluster.begins["0"] = 9
    pieces = source.split(start, found.offset, 1)
    assert [(one.partition, one.begin, one.end) for one in pieces] == [(0, 4, 10), (1, 5, 7)]


def test_a_checkpoint_of_spark_s_own_reader_begins_where_its_generation_does(source_of):
    source = source_of(Cluster({"0": 10}), {("t", 0): 2}, start_offsets={"t": {"0": 6}})
    found = poll(source, {})
    assert found.waiting == 4
    assert [one.begin for one in source.split({}, found.offset, 1)] == [6]


def test_no_more_than_the_limits_is_taken_and_nothing_where_nothing_waits(source_of):
    cluster = Cluster({"0": 100, "1": 300})
    source = source_of(cluster, mean_size=10)
    assert poll(source, at(p0=0, p1=0), messages=40) == (at(p0=10, p1=30), 400, False, True)
    assert poll(source, at(p0=0, p1=0), size=80).offset == at(p0=2, p1=6)
    assert poll(source_of(cluster, bound=4), at(p0=0, p1=0)).offset == at(p0=1, p1=3)
    assert poll(source, at(p0=100, p1=300)) == (at(p0=100, p1=300), 0, False, False)


def test_ends_are_asked_once_for_a_time_of_the_stream(source_of):
    cluster = Cluster({"0": 1})
    source = source_of(cluster)
    for now in (5, 5, 6):
        poll(source, at(p0=0), now)
    assert cluster.polls == 2 and source.newest_ends == {"t": {"0": 1}}


def test_a_partition_that_is_not_there_for_a_moment_waits_where_it_is(source_of):
    cluster = Cluster({"0": 5})
    source = source_of(cluster)
    assert poll(source, at(p0=3, p1=8)).offset == at(p0=5, p1=8)
    cluster.ends = {"0": 5, "1": 2}
    assert poll(source, at(p0=3, p1=8), 2).offset == at(p0=5, p1=8)
    lenient = source_of(cluster, fail_on_data_loss=False)
    with pytest.raises(UnknownLossError):
        poll(lenient, at(p0=3, p1=8))
    cluster.lost = ["1"]
    source = lenient
    found = poll(source, at(p0=5, p1=8), 3)
    assert found.offset == at(p0=5, p1=2) and found.waiting == 1
    assert source.split(at(p0=5, p1=8), found.offset, 1) == []
    cluster.ends = {"0": 5}
    assert poll(source, at(p0=5, p1=8), 4).offset == at(p0=5)


def test_the_lag_of_messages_is_decided_with_the_micro_batch(source_of):
    source = source_of(Cluster({"0": 9}), needed=NeededMetadata(frozenset({"kafka_lag"})))
    found = poll(source, at(p0=0), messages=4)
    assert found.offset["kafka:newest"] == {"t": {"0": 9}}
    assert [one.newest for one in source.split(at(p0=0), found.offset, 1)] == [9]


def test_it_is_pickled_without_what_it_knows(source_of):
    source = source_of(Cluster({"0": 1}), is_split=True, max_messages=7)
    poll(source, at(p0=0))
    again = pickle.loads(pickle.dumps(source))
    assert again == source and again.newest_ends == {}
    assert again.partition_of(source.split(at(p0=0), at(p0=1), 1)[0]) == "t/0"
