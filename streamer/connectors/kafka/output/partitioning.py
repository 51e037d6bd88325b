"""Partitioners of records: librdkafka's, and those that librdkafka does not have.

librdkafka's `murmur2_random` chooses as Java's client and franz-go do, and its `fnv1a_random` as
Sarama does, for every key that is there. Which partition a record without a key goes to is chance
in all of them.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, Protocol

FNV1A: Final = "fnv1a_hash"
MURMUR2: Final = "murmur2_hash"
RANDOM: Final = "random"
ROUND_ROBIN: Final = "round_robin"
LEAST_BACKUP: Final = "least_backup"
MANUAL: Final = "manual"

_LIBRDKAFKA_PARTITIONERS: Final = {FNV1A: "fnv1a_random", MURMUR2: "murmur2_random"}
_RECORDS_PER_CHOICE: Final = 500
_METADATA_TIMEOUT_S: Final = 10.0

PartitionCount = Callable[[str], int]
"""Returns how many partitions a topic has; 0 when that is not known."""


class PartitionChooser(Protocol):
    """Chooses partitions of records, whatever their keys. Threads may share it."""

    def choose(self, topic: str) -> int:
        """Return a partition for the next record of a topic; -1 to leave it to librdkafka."""

    def reset(self) -> None:
        """Reset the choice: nothing is on its way any more."""


def librdkafka_partitioner(name: str) -> str:
    """Return librdkafka's setting `partitioner`; but a stopgap beside a `PartitionChooser`."""
    return _LIBRDKAFKA_PARTITIONERS.get(name, "random")


def make_chooser(name: str, count: PartitionCount) -> PartitionChooser | None:
    """Return what chooses partitions beside librdkafka; None when there is no need."""
    if name == ROUND_ROBIN:
        return RoundRobin(count)
    return LeastBackup(count) if name == LEAST_BACKUP else None


class RoundRobin:
    """Gives each record to the partition after the last one's."""

    def __init__(self, count: PartitionCount) -> None:
        """Take what counts partitions."""
        self._count = count
        self._next: Counter[str] = Counter()
        self._lock = threading.Lock()

    def choose(self, topic: str) -> int:
        """Return the next partition."""
        number = self._count(topic)
        with self._lock:
            at = self._next[topic]
            self._next[topic] += 1
        return at % number if number else -1

    def reset(self) -> None:
        """Nothing is kept of what is on its way."""


class LeastBackup:
    """Gives some records to the partition for which the fewest are on their way.

    As with franz-go a partition is kept for as many as make a batch, which is faster than to change
    it with each.
    """

    def __init__(self, count: PartitionCount) -> None:
        """Take what counts partitions."""
        self._count = count
        self._waiting: dict[str, list[int]] = {}
        self._assigned: dict[str, tuple[int, int]] = {}
        self._lock = threading.Lock()

    def choose(self, topic: str) -> int:
        """Return the partition for the next record."""
        number = self._count(topic)
        if not number:
            return -1
        with self._lock:
            waiting = self._waiting.setdefault(topic, [])
            waiting += [0] * (number - len(waiting))
            partition, left = self._assigned.get(topic, (0, 0))
            if not left:
                partition, left = waiting.index(min(waiting)), _RECORDS_PER_CHOICE
            self._assigned[topic] = (partition, left - 1)
            waiting[partition] += 1
            return partition

    def reset(self) -> None:
        """Forget what was on its way; the next records go elsewhere than the last ones."""
        with self._lock:
            for topic, (partition, _) in self._assigned.items():
                self._waiting[topic] = [0] * len(self._waiting[topic])
                self._waiting[topic][partition] = 1
            self._assigned.clear()


class PartitionCounter:
    """Counts the partitions of topics, and asks again from time to time. Threads may share it."""

    def __init__(
        self, get_producer: Callable[[], Any], age: float, now: Callable[[], float] = time.monotonic
    ) -> None:
        """Set up.

        Args:
            get_producer: returns a client of librdkafka's.
            age: seconds after which a topic is asked for again; new partitions are seen then.
            now: a clock, seconds.
        """
        self._get_producer = get_producer
        self._age = age
        self._now = now
        self._known: dict[str, tuple[int, float]] = {}

    def count(self, topic: str) -> int:
        """Return how many partitions a topic has; 0 when that is not known."""
        number, until = self._known.get(topic, (0, 0.0))
        if self._now() < until:
            return number
        from confluent_kafka import KafkaException

        try:
            topic_metadata = (
                self._get_producer().list_topics(topic, timeout=_METADATA_TIMEOUT_S).topics[topic]
            )
            number = len(topic_metadata.partitions) or number
        except KafkaException:
            pass  # what was known still holds; sending says what is wrong
        self._known[topic] = (number, self._now() + (self._age if number else 1.0))
        return number
