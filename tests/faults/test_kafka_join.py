"""Two topics that are joined while the driver is killed: each pair once, with the later time."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.servers.kafka import Broker, Kafka, Record

from .program import program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

# Ten are for a run by hand: STREAMER_KILLS=10 pytest tests/faults/test_kafka_join.py
KILLS = int(os.environ.get("STREAMER_KILLS", "1"))

PATIENCE = 300
PARTITIONS = 2
ORDERS = 3_000
WITHIN = 10_000
START = 1_700_000_000_000

# The topics are read side by side, and the clock is that of both: so all may be late, and none is.
CONFIG = """
input:
  broker:
    inputs:
      - label: orders
        redpanda: {{seed_brokers: ["{broker}"], topics: [{orders}], consumer_group: {orders}}}
      - label: shipments
        kafka: {{addresses: ["{broker}"], topics: [{shipments}], consumer_group: {shipments}}}
buffer:
  window_join:
    left: orders
    right: shipments
    timestamp_mapping: root = @kafka_timestamp_ms / 1000
    key_mapping: root = @kafka_key.string()
    within: 10s
    type: left
    allowed_lateness: 100h
pipeline:
  processors:
    - mapping: |
        root.key = @kafka_key.string()
        root.left = this.left.n
        root.right = this.right.n
output:
  redpanda:
    seed_brokers: ["{broker}"]
    topic: {pairs}
    key: '${{! json("key") }}'
    transactional: true
spark: {{master: "local[2]", shards: 2}}
"""


class Side:
    """Records of one topic, in the order in which they come."""

    def __init__(self, rng: random.Random, share: float, spread: int) -> None:
        numbers = [n for n in range(ORDERS) if rng.random() < share]
        self.times = {n: START + n * 1_000 + rng.randint(-spread, spread) for n in numbers}
        # Not quite in the order of their times, nor in that of the other side.
        self._order = sorted(numbers, key=lambda n: n + rng.uniform(0, 50))

    def records(self, first: float, last: float) -> Iterator[Record]:
        for n in self._order[int(first * len(self._order)) : int(last * len(self._order))]:
            yield _record(n, self.times[n])


def _record(n: int, ms: int) -> Record:
    key = b"order %d" % (n // 2)
    return Record(b'{"n":%d}' % n, key, partition=n // 2 % PARTITIONS, timestamp=ms)


def joined(left: Side, right: Side) -> Iterator[tuple[str, int, int | None, int]]:
    """What comes out, by the definition: key, numbers of the left and the right, and the time."""
    for n, ms in left.times.items():
        pairs: list[tuple[int | None, int]] = [
            (m, max(ms, right.times[m]))
            for m in (n // 2 * 2, n // 2 * 2 + 1)
            if m in right.times and abs(right.times[m] - ms) <= WITHIN
        ]
        for m, later in pairs or [(None, ms)]:
            yield f"order {n // 2}", n, m, later


def found(kafka: Kafka, topic: str) -> list[tuple[str, int, int | None, int | None]]:
    records = [(json.loads(one.value or b""), one) for one in kafka.consume(topic)]
    return [
        (told["key"], told["left"], told["right"], one.timestamp)
        for told, one in records
        if told["key"] != "end"
    ]


def test_two_topics_are_joined_exactly_though_the_driver_is_killed(
    kafka: Kafka, kafka_broker: Broker, tmp_path: Path
) -> None:
    rng = random.Random(42)
    left, right = Side(rng, 0.9, 6_000), Side(rng, 0.8, 12_000)
    expected = sorted(joined(left, right), key=str)
    alone = sum(m is None for _, _, m, _ in expected)
    assert ORDERS / 100 < alone < ORDERS / 2 < len(expected)
    topics = {name: f"join-{name}" for name in ("orders", "shipments", "pairs")}
    for topic in topics.values():
        kafka.create(topic, PARTITIONS)
    config = tmp_path / "join.yaml"
    config.write_text(CONFIG.format(broker=kafka_broker.address(), **topics))

    def comes(number: int) -> Callable[[], bool]:
        return lambda: len(found(kafka, topics["pairs"])) > number

    def produce(first: float, last: float) -> None:
        kafka.produce(topics["orders"], *left.records(first, last))
        # A match of what came before a kill comes after it: it is in the state by then.
        behind = 0.5 / (KILLS + 1)
        after = last - behind if last < 1 else 1
        kafka.produce(topics["shipments"], *right.records(max(first - behind, 0), after))

    seen = 0
    for kill in range(KILLS):
        produce(kill / (KILLS + 1), (kill + 1) / (KILLS + 1))
        with program(config, tmp_path / "checkpoint") as running:
            running.wait_for(comes(seen), PATIENCE, "for pairs")
            running.kill()
        seen = len(found(kafka, topics["pairs"]))
    produce(KILLS / (KILLS + 1), 1)
    # No partner can come any more for what is older than this by all that may be late.
    for topic in (topics["orders"], topics["shipments"]):
        ends = (Record(b'{"n":0}', b"end", partition=p, timestamp=START + 10**9) for p in (0, 1))
        kafka.produce(topic, *ends)
    with program(config, tmp_path / "checkpoint") as running:
        running.wait_for(comes(len(expected) - 1), PATIENCE, "for the rest")
        assert running.stop() == 0
    assert sorted(found(kafka, topics["pairs"]), key=str) == expected
    assert {lag for _, _, lag in kafka_broker.lag(topics["orders"]).values()} == {0}
    assert {lag for _, _, lag in kafka_broker.lag(topics["shipments"]).values()} == {0}
