"""Kafka inputs inside of inputs that read others on the driver, by a real broker."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from streamer.connectors.kafka.cluster.cluster_client import ClusterClient
from streamer.connectors.kafka.cluster.connection import Connection
from streamer.connectors.kafka.input.kafka_source import KafkaSource
from streamer.core.errors import StreamerError
from tests.components.inputs.receiving import Receiving, receiving
from tests.servers.kafka import Kafka

pytestmark = pytest.mark.slow


def reading(kafka: Kafka, topic: str) -> str:
    return (
        f"kafka: {{addresses: ['{kafka.bootstrap}'], topics: [{topic}], "
        f"consumer_group: {topic}, start_from_oldest: true, commit_period: 100ms}}"
    )


def texts(it: Receiving) -> list[str]:
    return [text for _, text, *_ in it.lodged.log]


def wait_committed(kafka: Kafka, topic: str, messages: int) -> None:
    """Wait until the group has committed what is before so many messages."""
    client, until = ClusterClient(Connection((kafka.bootstrap,))), time.monotonic() + 60
    try:
        while sum(client.committed_offsets(topic, None, 30).values()) != messages:
            assert time.monotonic() < until
            time.sleep(0.05)
    finally:
        client.close()


def test_a_topic_follows_a_file_and_goes_on_where_it_was(kafka: Kafka, tmp_path: Path) -> None:
    topic = kafka.create("followed", partitions=2)
    kafka.produce(topic, *map(str, range(100)))
    (tmp_path / "first.txt").write_text("a\nb\n")
    file = f"file: {{paths: ['{tmp_path}/first.txt']}}"
    text = f"input: {{sequence: {{inputs: [{{{file}}}, {{{reading(kafka, topic)}}}]}}}}"
    with receiving(tmp_path, text) as it:
        raws = it.wait(102)
    assert raws[:2] == [b"a", b"b"]
    assert sorted(map(int, raws[2:])) == list(range(100))
    # The group gets what is on the disk, at the latest when the input is stopped.
    wait_committed(kafka, topic, 100)
    kafka.produce(topic, *map(str, range(100, 150)))
    with receiving(tmp_path, text) as again:
        assert sorted(map(int, again.wait(152)[2:])) == list(range(150))


def test_messages_of_topics_are_put_into_batches(kafka: Kafka, tmp_path: Path) -> None:
    topic = kafka.create("batched-by-another")
    kafka.produce(topic, *"abcdef")
    text = f"input: {{batched: {{child: {{{reading(kafka, topic)}}}, policy: {{count: 3}}}}}}"
    with receiving(tmp_path, text) as it:
        assert it.wait(6) == [b"a", b"b", b"c", b"d", b"e", b"f"]
    wait_committed(kafka, topic, 6)


def test_brokers_that_are_away_are_waited_for(
    kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = kafka.create("read-after-an-outage")
    text = f"input: {{sequence: {{inputs: [{{{reading(kafka, topic)}}}]}}}}"
    backlog = KafkaSource.backlog

    def away(source: KafkaSource, known: object) -> object:
        raise StreamerError("input kafka: no broker answers")

    with receiving(tmp_path, text) as it:
        monkeypatch.setattr(KafkaSource, "backlog", away)
        it.wait(0, lambda: "input kafka: no broker answers" in texts(it))
        monkeypatch.setattr(KafkaSource, "backlog", backlog)
        kafka.produce(topic, "x")
        assert it.wait(1) == [b"x"]
        assert "Brokers answer again" in texts(it)
