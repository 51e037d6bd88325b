"""Three topics and a compacted one that are joined while the driver is killed: each result once."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.servers.kafka import Broker, Kafka, Record

from .program import program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

# Ten are for a run by hand: STREAMER_KILLS=10 pytest tests/faults/test_kafka_join_chain.py
KILLS = int(os.environ.get("STREAMER_KILLS", "1"))

PATIENCE = 300
PARTITIONS = 2
ORDERS = 1_500
CUSTOMERS = 50
WITHIN = {"payments": 5_000, "shipments": 9_000}
START = 1_700_000_000_000
END = b"end"

CONFIG = """
input:
  broker:
    inputs:
      - label: customers
        redpanda: {{seed_brokers: ["{broker}"], topics: [{customers}], consumer_group: {customers}}}
      - label: orders
        redpanda: {{seed_brokers: ["{broker}"], topics: [{orders}], consumer_group: {orders}}}
      - label: payments
        redpanda: {{seed_brokers: ["{broker}"], topics: [{payments}], consumer_group: {payments}}}
      - label: shipments
        redpanda: {{seed_brokers: ["{broker}"], topics: [{shipments}], consumer_group: {shipments}}}
buffers:
  - label: paid
    window_join:
      left: orders
      right: payments
      timestamp_mapping: root = @kafka_timestamp_ms / 1000
      key_mapping: root = @kafka_key.string()
      within: 5s
      type: left
      allowed_lateness: 100h
    pipeline:
      processors:
        - mapping: |
            root.key = @kafka_key.string()
            root.customer = this.left.customer
            root.n = [this.left.n, this.right.n]
  - label: shipped
    window_join:
      left: paid
      right: shipments
      right_timestamp_mapping: root = @kafka_timestamp_ms / 1000
      key_mapping: root = this.key
      right_key_mapping: root = @kafka_key.string()
      within: 9s
      type: left
      allowed_lateness: 100h
    pipeline:
      processors:
        - mapping: |
            root = this.left
            root.n = this.left.n.append(this.right.n)
  - label: whole
    table_join:
      stream: shipped
      table: customers
      key_mapping: root = this.customer
      table_key_mapping: root = @kafka_key.string()
      table_timestamp_mapping: root = @kafka_timestamp_ms / 1000
      type: left
    pipeline:
      processors:
        - mapping: |
            root = this.left
            root.city = this.right.city
output:
  redpanda:
    seed_brokers: ["{broker}"]
    topic: {results}
    key: '${{! json("key") }}'
    transactional: true
spark: {{master: "local[2]", shards: 2}}
"""

Times = dict[int, int]
"""By number, the time of a record, ms."""


def make_times(rng: random.Random, share: float, spread: int) -> Times:
    numbers = [n for n in range(ORDERS) if rng.random() < share]
    return {n: START + n * 1_000 + rng.randint(-spread, spread) for n in numbers}


def make_records(times: Times, first: float, last: float) -> list[Record]:
    """Return a part of the records, not quite in the order of their times."""
    order = sorted(times, key=lambda n: n + n * 7919 % 50)
    some = order[int(first * len(order)) : int(last * len(order))]
    return [
        Record(
            json.dumps({"n": n, "customer": f"c{n % CUSTOMERS}"}).encode(),
            b"order %d" % (n // 2),
            partition=n // 2 % PARTITIONS,
            timestamp=times[n],
        )
        for n in some
    ]


def make_customers() -> list[Record]:
    """Return rows that replace each other, and tombstones, of which the last of a key counts."""
    rows = []
    for version in range(3):
        for number in range(CUSTOMERS):
            value = json.dumps({"city": f"{number} {version}"}).encode()
            is_gone = version == 2 and number % 10 == 0
            rows.append(
                Record(
                    None if is_gone else value,
                    b"c%d" % number,
                    partition=number % PARTITIONS,
                    timestamp=START + version,
                )
            )
    return rows


def find_partners(times: Times, n: int, time: int, within: int) -> list[tuple[int | None, int]]:
    """Return the records of an order's key that are close to a time, each with the later time."""
    same = (n // 2 * 2, n // 2 * 2 + 1)
    near = [(m, max(time, times[m])) for m in same if m in times and abs(times[m] - time) <= within]
    return near or [(None, time)]


def join_all(orders: Times, payments: Times, shipments: Times) -> Counter[str]:
    """Return what comes out, by the definition: numbers, the city, and the time."""
    made: Counter[str] = Counter()
    for n, time in orders.items():
        number = n % CUSTOMERS
        city = None if number % 10 == 0 else f"{number} 2"
        for payment, paid in find_partners(payments, n, time, WITHIN["payments"]):
            for shipment, later in find_partners(shipments, n, paid, WITHIN["shipments"]):
                made[json.dumps([[n, payment, shipment], city, later])] += 1
    return made


def read_results(kafka: Kafka, topic: str) -> Counter[str]:
    records = [(json.loads(one.value or b""), one) for one in kafka.consume(topic)]
    return Counter(
        json.dumps([told["n"], told["city"], one.timestamp])
        for told, one in records
        if told["key"] != END.decode()
    )


def test_streams_and_a_compacted_topic_are_joined_exactly_though_the_driver_is_killed(
    kafka: Kafka, kafka_broker: Broker, tmp_path: Path
) -> None:
    rng = random.Random(43)
    streams = {
        "orders": make_times(rng, 0.9, 4_000),
        "payments": make_times(rng, 0.7, 6_000),
        "shipments": make_times(rng, 0.8, 9_000),
    }
    expected = join_all(**streams)
    topics = {name: f"chain-{name}" for name in (*streams, "customers", "results")}
    for name, topic in topics.items():
        policy = "compact" if name == "customers" else "delete"
        kafka.create(topic, PARTITIONS, cleanup_policy=policy)
    kafka.produce(topics["customers"], *make_customers())
    config = tmp_path / "join.yaml"
    config.write_text(CONFIG.format(broker=kafka_broker.address(), **topics))

    def comes(number: int) -> Callable[[], bool]:
        return lambda: read_results(kafka, topics["results"]).total() > number

    def produce(first: float, last: float) -> None:
        # Partners of what came before a kill come after it: it is in the state by then.
        for lag, name in enumerate(streams):
            behind = lag * 0.2 / (KILLS + 1)
            since = max(first - behind, 0)
            until = last - behind if last < 1 else 1
            kafka.produce(topics[name], *make_records(streams[name], since, until))

    seen = 0
    for kill in range(KILLS):
        produce(kill / (KILLS + 1), (kill + 1) / (KILLS + 1))
        with program(config, tmp_path / "checkpoint") as running:
            running.wait_for(comes(seen), PATIENCE, "for results")
            running.kill()
        seen = read_results(kafka, topics["results"]).total()
    assert 0 < seen < expected.total()
    produce(KILLS / (KILLS + 1), 1)
    # No partner can come any more for what is older than this by all that may be late.
    for number, name in enumerate(streams):
        far = START + 10**9 * (number + 1)
        ends = (Record(b'{"n":0}', END, partition=p, timestamp=far) for p in range(PARTITIONS))
        kafka.produce(topics[name], *ends)
    with program(config, tmp_path / "checkpoint") as running:
        running.wait_for(comes(expected.total() - 1), PATIENCE, "for the rest")
        assert running.stop() == 0
    assert read_results(kafka, topics["results"]) == expected
