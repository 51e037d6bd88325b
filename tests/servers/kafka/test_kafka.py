"""The broker that tests of Kafka's components use: what it keeps, and when it is killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.servers import listens
from tests.servers.kafka import Broker, Kafka, Record

pytestmark = pytest.mark.slow


def test_records_keep_their_parts_partitions_and_order(kafka: Kafka) -> None:
    topic = kafka.create("servers-parts", partitions=2)
    whole = Record(b"x", b"k", (("h", b"1"), ("h", b""), ("none", None)), 1, timestamp=86_400_000)
    kafka.produce(topic, whole, Record(None, b"k", partition=1), Record(b"0", partition=0))
    first, second, third = kafka.consume(topic)
    assert (first.partition, first.offset, first.value) == (0, 0, b"0")
    assert second == Record(b"x", b"k", whole.headers, 1, 0, 86_400_000)
    assert (third.value, third.key, third.offset) == (None, b"k", 1)
    assert kafka.end_offsets(topic) == {0: 1, 1: 2}


def test_records_of_a_broken_off_transaction_are_seen_by_who_asks_for_them(kafka: Kafka) -> None:
    topic = kafka.create("servers-transactions")
    producer = kafka.producer("servers-broken-off")
    producer.begin_transaction()
    producer.produce(topic, b"never")
    producer.flush()
    producer.abort_transaction()
    kafka.produce(topic, "committed", transaction="servers-committed")
    assert [one.value for one in kafka.consume(topic)] == [b"committed"]
    every = kafka.consume(topic, isolation="read_uncommitted")
    assert [one.value for one in every] == [b"never", b"committed"]


def test_kafkas_own_tool_tells_the_lag_of_a_group(kafka_broker: Broker, kafka: Kafka) -> None:
    topic = kafka.create("servers-lag", partitions=2)
    kafka.produce(topic, *(Record(b"x", partition=1) for _ in range(5)))
    kafka.commit("servers-lag", topic, {1: 2})
    assert kafka.group_offsets("servers-lag") == {(topic, 1): 2}
    assert kafka_broker.lag("servers-lag") == {(topic, 1): (2, 5, 3)}


def test_a_topic_is_deleted_grown_and_cut(kafka: Kafka) -> None:
    topic = kafka.create("servers-changed")
    kafka.produce(topic, "a", "b", "c")
    kafka.delete_records(topic, {0: 2})
    assert [one.value for one in kafka.consume(topic)] == [b"c"]
    kafka.grow(topic, 3)
    assert set(kafka.end_offsets(topic)) == {0, 1, 2}
    kafka.delete(topic)
    assert topic not in kafka.topics()


def test_a_broker_that_is_killed_comes_back_where_it_was_with_what_it_had(tmp_path: Path) -> None:
    with Broker(tmp_path, {"auto.create.topics.enable": "false"}) as broker:
        kafka = broker.client()
        kafka.create("kept", partitions=1)
        kafka.produce("kept", "before")
        address = broker.address()
        broker.kill()
        assert not listens(int(address.rpartition(":")[2]))
        broker.start()
        assert broker.address() == address
        kafka.produce("kept", "after")
        assert [one.value for one in kafka.consume("kept")] == [b"before", b"after"]
        with pytest.raises(AssertionError, match="UNKNOWN_TOPIC"):
            kafka.produce("not-created", "x", topic_metadata_propagation_max_ms=100)
        broker.pause()
        assert not broker.client().answers()
        broker.resume()
        kafka.produce("kept", "resumed")
        assert [one.value for one in kafka.consume("kept")][2:] == [b"resumed"]
    assert not listens(int(address.rpartition(":")[2]))
