"""Committed offsets of a consumer group: read, and commit without being a member.

This is asked by librdkafka's consumer, not by its admin client, which ends the whole process when
the broker of a group goes away at the wrong moment (librdkafka's issue 4605).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from streamer.connectors.kafka.cluster.errors import TIMED_OUT, parse_error

PartitionRef = tuple[str, int]
"""A partition: its topic and number."""

_POLL_INTERVAL_S: Final = 0.05


class GroupClient:
    """Reads and commits the offsets of one group. Threads may share it."""

    def __init__(
        self, group: str, settings: Callable[[], Mapping[str, Any]], on_error: Callable[[Any], None]
    ) -> None:
        """Take the group; it is connected when it is asked first.

        Args:
            group: its id.
            settings: returns librdkafka's.
            on_error: is told what librdkafka says beside its answers.
        """
        self._group = group
        self._settings = settings
        self._on_error = on_error
        self._lock = threading.Lock()
        self._client: Any = None
        self._sent = False
        self._codes: set[int] = set()

    def close(self) -> None:
        """Let the client go; it is made again when it is asked again."""
        with self._lock:
            old = [self._client]
            self._client, self._sent = None, False
        close_in_background(old)

    def committed_offsets(self, places: Iterable[PartitionRef], timeout_s: float) -> list[Any]:
        """Return topic, partition, offset and error of each.

        Raises:
            KafkaException: there is no answer in time, or it is refused.
        """
        from confluent_kafka import TopicPartition

        partitions = [TopicPartition(*place) for place in places]
        with self._lock:
            client = self._consumer()
            try:
                offsets: list[Any] = client.committed(partitions, timeout=timeout_s)
            finally:
                self._poll(client, 0)
            return offsets

    def commit(self, offsets: Mapping[PartitionRef, int], timeout_s: float) -> set[int]:
        """Commit offsets; returns the numbers of Kafka's errors, none when all is well.

        One that is not answered in time may still be done later. So the next is not sent before
        that is known: an older one can never come after it.
        """
        from confluent_kafka import KafkaException, TopicPartition

        until = time.monotonic() + timeout_s
        with self._lock:
            client = self._consumer()
            if not self._wait_answered(client, until):
                return {TIMED_OUT}
            partitions = [TopicPartition(*place, at) for place, at in sorted(offsets.items())]
            try:
                client.commit(offsets=partitions, asynchronous=True)
            except KafkaException as error:
                return {parse_error(error)[0]}
            self._sent = True
            return self._codes if self._wait_answered(client, until) else {TIMED_OUT}

    def _wait_answered(self, client: Any, until: float) -> bool:
        """Wait until nothing that was sent is unanswered."""
        while self._sent and time.monotonic() < until:
            self._poll(client, _POLL_INTERVAL_S)
        return not self._sent

    def _poll(self, client: Any, seconds: float) -> None:
        """Take what the client has to say; that a group is refused comes as a message."""
        message = client.poll(seconds)
        if message is not None and message.error() is not None:
            self._on_error(message.error())

    def _on_commit(self, error: Any, places: list[Any]) -> None:
        codes = {parse_error(one.error)[0] for one in places if one.error is not None}
        self._codes = (codes | {parse_error(error)[0] if error is not None else 0}) - {0}
        self._sent = False

    def _consumer(self) -> Any:
        if self._client is None:
            from confluent_kafka import Consumer

            self._client = Consumer(
                {
                    **self._settings(),
                    "group.id": self._group,
                    "enable.auto.commit": False,
                    "on_commit": self._on_commit,
                    "error_cb": self._on_error,
                }
            )
        self._poll(self._client, 0)
        return self._client


def close_in_background(clients: list[Any]) -> None:
    """Let clients go that nobody else holds, without waiting for it.

    A client waits for what it has sent, which may take a minute when its broker is away.
    """
    threading.Thread(target=clients.clear, daemon=True, name="kafka-drop").start()
