"""Which partition records go to: where librdkafka does not choose, and that it does as others."""

from __future__ import annotations

from collections import Counter

import pytest

from streamer.connectors.kafka.output.partitioning import (
    LeastBackup,
    RoundRobin,
    librdkafka_partitioner,
)
from tests.connectors.kafka.hashes import fnv1a, murmur2
from tests.servers.kafka.client import Kafka

KEYS = [b"", b"a", b"hello", b"\xff\x00", *(str(i * 7919).encode() for i in range(300))]


def test_round_robin_takes_one_after_the_other_for_each_topic():
    chooser = RoundRobin(lambda topic: 3)
    assert [chooser.choose("a") for _ in range(5)] == [0, 1, 2, 0, 1]
    assert chooser.choose("b") == 0


def test_what_is_not_known_is_left_to_librdkafka():
    assert RoundRobin(lambda topic: 0).choose("a") == -1
    assert LeastBackup(lambda topic: 0).choose("a") == -1


def test_least_backup_fills_partitions_evenly_and_goes_on_with_another():
    chooser = LeastBackup(lambda topic: 3)
    first = [chooser.choose("a") for _ in range(3000)]
    assert Counter(first) == {0: 1000, 1: 1000, 2: 1000}
    assert len(set(first[:500])) == 1
    chooser.reset()
    last = first[-1]
    assert chooser.choose("a") != last


# From the tests of Kafka's Utils.murmur2, and from the draft of FNV (isthe.com).
@pytest.mark.parametrize(
    ("text", "value"),
    [("21", -973932308), ("foobar", -790332482), ("a-little-bit-long-string", -985981536)],
)
def test_the_murmur2_of_these_tests_is_kafkas(text: str, value: int) -> None:
    assert murmur2(text.encode()) == value & 0xFFFFFFFF


@pytest.mark.parametrize(
    ("text", "value"), [("", 0x811C9DC5), ("a", 0xE40C292C), ("foobar", 0xBF9CF968)]
)
def test_the_fnv_of_these_tests_is_fnv1a(text: str, value: int) -> None:
    assert fnv1a(text.encode()) == value


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fnv1a_hash", "murmur2_hash"])
def test_a_key_goes_where_sarama_and_javas_client_send_it(name: str, kafka: Kafka) -> None:
    topic = kafka.create(f"partitions-{name}", 7)
    producer = kafka.producer(partitioner=librdkafka_partitioner(name))
    for key in KEYS:
        producer.produce(topic, b"", key)
    assert producer.flush(60) == 0
    found = {record.key or b"": record.partition for record in kafka.consume(topic)}
    if name == "fnv1a_hash":
        # As Go divides: the sign is taken off what is left over.
        signed = {key: fnv1a(key) - (1 << 32 if fnv1a(key) >> 31 else 0) for key in KEYS}
        expected = {key: abs(value) % 7 for key, value in signed.items()}
    else:
        expected = {key: (murmur2(key) & 0x7FFFFFFF) % 7 for key in KEYS}
    assert found == expected
