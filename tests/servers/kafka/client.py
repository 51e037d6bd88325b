"""What tests ask of a broker, in a line each: by librdkafka, not by the code under test."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

_PATIENCE = 60.0
_NOT_YET = (3, 5, 6, 75)
"""Kafka's numbers for: unknown topic or partition, no leader, not the leader, a newer leader."""
_NO_COORDINATOR = (14, 15, 16)
"""Kafka's numbers for: a group's broker loads, is not there, or is another one."""


@dataclass(frozen=True)
class Record:
    """A record of a topic; `partition`, `offset` and `timestamp` (ms) are the broker's if None."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None
    offset: int | None = None
    timestamp: int | None = None


@dataclass
class Kafka:
    """A broker as a test sees it.

    Attributes:
        bootstrap: its address.
        settings: librdkafka's settings for clients.
    """

    bootstrap: str
    settings: Mapping[str, Any]

    def answers(self, within: float = 2.0) -> bool:
        """Tell whether the broker answers within so many seconds, a member of its cluster."""
        from confluent_kafka import KafkaException

        try:
            return bool(self.admin.list_topics(timeout=within).brokers)
        except KafkaException:
            return False

    def create(
        self, topic: str, partitions: int = 1, *, replication: int = 1, **config: Any
    ) -> str:
        """Create a topic and wait until it is there.

        Args:
            topic: its name, which is returned.
            partitions: how many.
            replication: how many brokers keep each.
            config: its settings, with underscores for dots (`retention_ms=1000`).
        """
        from confluent_kafka.admin import NewTopic

        settings = {name.replace("_", "."): str(value) for name, value in config.items()}
        new = NewTopic(
            topic, num_partitions=partitions, replication_factor=replication, config=settings
        )
        self.admin.create_topics([new])[topic].result(_PATIENCE)
        self._until(lambda: len(self._ends(topic)) == partitions, f"topic {topic} is not there")
        return topic

    def grow(self, topic: str, partitions: int) -> None:
        """Give a topic more partitions."""
        from confluent_kafka.admin import NewPartitions

        self.admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(_PATIENCE)
        self._until(lambda: len(self._ends(topic)) == partitions, f"{topic} did not grow")

    def delete(self, topic: str) -> None:
        """Delete a topic and wait until it is gone."""
        self.admin.delete_topics([topic])[topic].result(_PATIENCE)
        self._until(lambda: topic not in self.topics(), f"topic {topic} is still there")

    def topics(self) -> set[str]:
        """Return the names of all topics."""
        return set(self.admin.list_topics(timeout=_PATIENCE).topics)

    def produce(
        self,
        topic: str,
        *records: Record | bytes | str,
        transaction: str | None = None,
        **settings: Any,
    ) -> None:
        """Write records and wait until the broker has them all, in order.

        Args:
            topic: where to; the broker may create it.
            records: a record, or just its value.
            transaction: the id of a transaction that they are written and committed in.
            settings: librdkafka's, with underscores for dots (`compression_type="lz4"`).
        """
        producer = self.producer(transaction, **settings)
        failed: list[Any] = []
        if transaction is not None:
            producer.begin_transaction()
        for one in records:
            self._send(producer, topic, one, failed)
        assert producer.flush(_PATIENCE) == 0, f"{topic}: the broker does not take records"
        assert not failed, f"{topic}: {failed[0]}"
        if transaction is not None:
            producer.commit_transaction()

    def producer(self, transaction: str | None = None, **settings: Any) -> Any:
        """Return a producer of librdkafka, in order; ready for transactions if one is named."""
        from confluent_kafka import Producer

        given = {name.replace("_", "."): value for name, value in settings.items()}
        config = {**self._config(), "max.in.flight": 1, "linger.ms": 0, **given}
        if transaction is None:
            return Producer(config)
        producer = Producer({**config, "transactional.id": transaction})
        producer.init_transactions(_PATIENCE)
        return producer

    def consume(self, topic: str, isolation: str = "read_committed") -> list[Record]:
        """Return all records of a topic, up to its end as it is now: by partition, then offset."""
        from confluent_kafka import Consumer, KafkaError, TopicPartition

        config = {"enable.partition.eof": True, "auto.offset.reset": "earliest"}
        config |= {
            "isolation.level": isolation,
            "fetch.wait.max.ms": 10,
            "group.id": "streamer-tests-reads",
        }
        consumer = Consumer({**self._config(), **config, "enable.auto.commit": False})
        open_ones = set(self.end_offsets(topic))
        consumer.assign([TopicPartition(topic, one, 0) for one in open_ones])
        found, until = list[Record](), time.monotonic() + _PATIENCE
        while open_ones:
            assert time.monotonic() < until, f"{topic}: no end of partitions {sorted(open_ones)}"
            taken = consumer.poll(1.0)
            if taken is None:
                continue
            if taken.error() is None:
                found.append(_record(taken))
            elif taken.error().code() == KafkaError._PARTITION_EOF:
                open_ones.discard(taken.partition())
            else:
                raise AssertionError(f"{topic}: {taken.error()}")
        consumer.close()
        return sorted(found, key=lambda one: (one.partition, one.offset))

    def end_offsets(self, topic: str) -> dict[int, int]:
        """Return where each partition's log ends."""
        self._until(lambda: bool(self._ends(topic)), f"topic {topic} has no leaders")
        return self._ends(topic)

    def group_offsets(self, group: str) -> dict[tuple[str, int], int]:
        """Return what a consumer group has committed, by topic and partition."""
        from confluent_kafka import TopicPartition

        topics = self.admin.list_topics(timeout=_PATIENCE).topics
        asked = [
            TopicPartition(name, partition)
            for name, topic in topics.items()
            if not name.startswith("__")
            for partition in topic.partitions
        ]
        with self._as_group(group) as consumer:
            told = consumer.committed(asked, _PATIENCE)
        return {(one.topic, one.partition): one.offset for one in told if one.offset >= 0}

    def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Commit offsets for a group that has no members."""
        from confluent_kafka import KafkaException, TopicPartition

        places = [TopicPartition(topic, partition, at) for partition, at in offsets.items()]
        said: list[str] = []

        def done() -> bool:
            try:
                consumer.commit(offsets=places, asynchronous=False)
            except KafkaException as e:
                # The first group of a broker waits until the broker has made what keeps it.
                if e.args[0].code() not in _NO_COORDINATOR:
                    raise
                said.append(str(e))
                return False
            return True

        with self._as_group(group) as consumer:
            self._until(done, f"{group}: {said[-1:]}")

    @contextmanager
    def _as_group(self, group: str) -> Iterator[Any]:
        """Give a consumer that speaks for a group: asked of an admin client, librdkafka crashes."""
        from confluent_kafka import Consumer

        config = {**self._config(), "group.id": group, "enable.auto.commit": False}
        consumer = Consumer(config)
        try:
            yield consumer
        finally:
            consumer.close()

    def delete_records(self, topic: str, before: Mapping[int, int]) -> None:
        """Delete the records before an offset, as retention does."""
        from confluent_kafka import TopicPartition

        places = [TopicPartition(topic, partition, at) for partition, at in before.items()]
        for told in self.admin.delete_records(places).values():
            told.result(_PATIENCE)

    def _config(self) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.bootstrap,
            # What it has to say of a broker that is killed is no concern of the test.
            "log_level": 0,
            "reconnect.backoff.max.ms": 200,
            **self.settings,
        }

    @cached_property
    def admin(self) -> Any:
        """librdkafka's client for all that is not said here."""
        from confluent_kafka.admin import AdminClient

        config, token, asked = self._config(), self.settings.get("oauth_cb"), list[str]()
        if token is not None:
            config["oauth_cb"] = lambda text: (asked.append(text), token(text))[1]
        client = AdminClient(config)
        until = time.monotonic() + _PATIENCE
        while token is not None and not asked and time.monotonic() < until:
            client.poll(0.1)  # it asks for the token here, and only here
        return client

    def _ends(self, topic: str) -> dict[int, int]:
        """Return where each partition ends; nothing while one of them is being made."""
        from confluent_kafka import KafkaException, TopicPartition
        from confluent_kafka.admin import OffsetSpec

        known = self.admin.list_topics(topic, timeout=_PATIENCE).topics[topic].partitions
        asked = {TopicPartition(topic, one): OffsetSpec.latest() for one in known}
        if not asked or any(one.leader < 0 for one in known.values()):
            return {}
        try:
            answers = self.admin.list_offsets(asked, request_timeout=_PATIENCE)
            return {place.partition: told.result().offset for place, told in answers.items()}
        except KafkaException as e:
            if e.args[0].retriable() or e.args[0].code() in _NOT_YET:
                return {}
            raise

    def _until(self, holds: Callable[[], bool], otherwise: str) -> None:
        until = time.monotonic() + _PATIENCE
        while not holds():
            assert time.monotonic() < until, otherwise
            time.sleep(0.02)

    def _send(
        self, producer: Any, topic: str, one: Record | bytes | str, failed: list[Any]
    ) -> None:
        if isinstance(one, str):
            one = one.encode()
        record = one if isinstance(one, Record) else Record(one)
        places = {"partition": record.partition, "timestamp": record.timestamp}
        given = {name: value for name, value in places.items() if value is not None}

        def told(error: Any, _: Any) -> None:
            if error is not None:
                failed.append(error)

        while True:
            try:
                producer.produce(
                    topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    on_delivery=told,
                    **given,
                )
                break
            except BufferError:
                producer.poll(0.1)


def _record(taken: Any) -> Record:
    return Record(
        taken.value(),
        taken.key(),
        tuple(taken.headers() or ()),
        taken.partition(),
        taken.offset(),
        taken.timestamp()[1],
    )
