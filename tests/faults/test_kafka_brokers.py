"""Three brokers: leaders are killed while they are read, a topic grows, a group is taken over."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.faults.program import program
from tests.servers.kafka.three_brokers import three_brokers

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

PATIENCE = 300
TOPIC, GROUP = "replicated", "taken"
PARTITIONS, MORE = 4, 6

CONFIG = """
input:
  redpanda:
    seed_brokers: ["{brokers}"]
    topics: [{topic}]
    consumer_group: {group}
    metadata_max_age: 1s
output:
  file:
    path: "{out}"
    codec: lines
spark: {{master: "local[2]"}}
"""


class Feeder(threading.Thread):
    """Writes numbers, each of which all brokers that are there have taken; counts them."""

    def __init__(self, client: Any) -> None:
        super().__init__(daemon=True)
        self.sent, self.partitions = 0, PARTITIONS
        self._over = threading.Event()
        self._producer = client.producer(
            enable_idempotence=True, acks="all", linger_ms=5, topic_metadata_refresh_interval_ms=500
        )
        self.failed: list[Any] = []

    def run(self) -> None:
        while not self._over.wait(0.02):
            for _ in range(20):
                self._send()
            self._producer.poll(0)
        if self._producer.flush(PATIENCE):
            self.failed.append("not all was taken")

    def _send(self) -> None:
        from confluent_kafka import KafkaException

        while True:
            try:
                self._producer.produce(
                    TOPIC,
                    b"%d" % self.sent,
                    partition=self.sent % self.partitions,
                    on_delivery=lambda error, _: self.failed.append(error) if error else None,
                )
                break
            except (KafkaException, BufferError):
                # It does not know a new partition yet, or has too much that waits.
                self._producer.poll(0.1)
        self.sent += 1

    def stop(self) -> None:
        self._over.set()
        self.join()
        assert not self.failed, self.failed[:3]


def numbers(out: Path) -> Counter[int]:
    return Counter(map(int, out.read_bytes().split())) if out.exists() else Counter()


def test_every_event_comes_out_once_though_leaders_are_killed(tmp_path: Path) -> None:
    out, config = tmp_path / "out.txt", tmp_path / "config.yaml"
    with three_brokers(tmp_path / "brokers") as brokers:
        client = brokers.client()
        client.create(TOPIC, PARTITIONS, replication=3)
        text = CONFIG.format(brokers=brokers.addresses, topic=TOPIC, group=GROUP, out=out)
        config.write_text(text)
        feeder = Feeder(client)
        with program(config, tmp_path / "checkpoint") as running:
            feeder.start()

            def catch_up(why: str) -> None:
                until = feeder.sent + 20
                running.wait_for(lambda: numbers(out).total() >= until, PATIENCE, why)
                assert feeder.is_alive() and not feeder.failed, feeder.failed[:3]

            catch_up("for the first")
            first = brokers.leader(client, TOPIC, 0)
            brokers.nodes[first].kill()
            catch_up("after a leader was killed")
            client.grow(TOPIC, MORE)
            feeder.partitions = MORE
            catch_up("after the topic has grown")
            brokers.nodes[first].start()
            second = brokers.leader(client, TOPIC, 0)
            assert second != first
            # The one that came back has all again, before another goes.
            running.wait_for(lambda: _in_sync(client) == 3, PATIENCE, "for the replicas")
            brokers.nodes[second].kill()
            catch_up("after the next leader was killed")
            taker = _take_over(client)
            catch_up("while another program has the group")
            running.wait_for(
                lambda: any("has members of its own" in line for line in running.messages()),
                PATIENCE,
                "for the reason",
            )
            taker.close()
            feeder.stop()
            running.wait_for(lambda: numbers(out).total() >= feeder.sent, PATIENCE, "for the rest")
            running.wait_for(lambda: _lag(client) == 0, PATIENCE, "for the group's offsets")
            assert running.stop() == 0
    assert numbers(out) == Counter(range(feeder.sent))


def _in_sync(client: Any) -> int:
    partitions = client.admin.list_topics(TOPIC, timeout=30).topics[TOPIC].partitions
    return min(len(one.isrs) for one in partitions.values())


def _take_over(client: Any) -> Any:
    """Let a consumer be a member of the group, which so takes no commits of others."""
    from confluent_kafka import Consumer

    consumer = Consumer(
        {"bootstrap.servers": client.bootstrap, "group.id": GROUP, "enable.auto.commit": False}
    )
    consumer.subscribe([TOPIC])
    for _ in range(300):
        consumer.poll(0.2)
        if consumer.assignment():
            return consumer
    raise AssertionError("the group gives another program no partitions")


def _lag(client: Any) -> int:
    from confluent_kafka import Consumer, TopicPartition

    places = [TopicPartition(TOPIC, number) for number in range(MORE)]
    consumer = Consumer({"bootstrap.servers": client.bootstrap, "group.id": GROUP})
    try:
        return sum(
            consumer.get_watermark_offsets(one, timeout=30)[1] - max(one.offset, 0)
            for one in consumer.committed(places, timeout=30)
        )
    finally:
        consumer.close()
