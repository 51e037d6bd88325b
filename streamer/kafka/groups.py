"""What a consumer group has committed, and committing for it: as one that is no member.

This is asked by librdkafka's consumer, not by its admin client, which ends the whole process when
the broker of a group goes away at the wrong moment (librdkafka's issue 4605).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from streamer.kafka.errors import told

Place = tuple[str, int]
"""A partition: its topic and number."""

TIMED_OUT: Final = -185
_POLL: Final = 0.05


class Group:
    """Asks for one group, and commits for it. Threads may share it."""

    def __init__(
        self, group: str, settings: Callable[[], Mapping[str, Any]], hear: Callable[[Any], None]
    ) -> None:
        """Take the group; it is connected when it is asked first.

        Args:
            group: its id.
            settings: returns librdkafka's.
            hear: is told what librdkafka says beside its answers.
        """
        self._group = group
        self._settings = settings
        self._hear = hear
        self._lock = threading.Lock()
        self._client: Any = None
        self._sent = False
        self._codes: set[int] = set()

    def close(self) -> None:
        """Let the client go; it is made again when it is asked again."""
        with self._lock:
            old = [self._client]
            self._client, self._sent = None, False
        let_go(old)

    def committed(self, places: Iterable[Place], patience: float) -> list[Any]:
        """Return topic, partition, offset and error of each.

        Raises:
            KafkaException: there is no answer in time, or it is refused.
        """
        from confluent_kafka import TopicPartition

        asked = [TopicPartition(*place) for place in places]
        with self._lock:
            client = self._consumer()
            try:
                found: list[Any] = client.committed(asked, timeout=patience)
            finally:
                self._poll(client, 0)
            return found

    def commit(self, offsets: Mapping[Place, int], patience: float) -> set[int]:
        """Commit offsets; returns the numbers of Kafka's errors, none when all is well.

        One that is not answered in time may still be done later. So the next is not sent before
        that is known: an older one can never come after it.
        """
        from confluent_kafka import KafkaException, TopicPartition

        until = time.monotonic() + patience
        with self._lock:
            client = self._consumer()
            if not self._answered(client, until):
                return {TIMED_OUT}
            asked = [TopicPartition(*place, at) for place, at in sorted(offsets.items())]
            try:
                client.commit(offsets=asked, asynchronous=True)
            except KafkaException as error:
                return {told(error)[0]}
            self._sent = True
            return self._codes if self._answered(client, until) else {TIMED_OUT}

    def _answered(self, client: Any, until: float) -> bool:
        """Wait until nothing that was sent is unanswered."""
        while self._sent and time.monotonic() < until:
            self._poll(client, _POLL)
        return not self._sent

    def _poll(self, client: Any, seconds: float) -> None:
        """Take what the client has to say; that a group is refused comes as a message."""
        said = client.poll(seconds)
        if said is not None and said.error() is not None:
            self._hear(said.error())

    def _hear_commit(self, error: Any, places: list[Any]) -> None:
        codes = {told(one.error)[0] for one in places if one.error is not None}
        self._codes = (codes | {told(error)[0] if error is not None else 0}) - {0}
        self._sent = False

    def _consumer(self) -> Any:
        if self._client is None:
            from confluent_kafka import Consumer

            self._client = Consumer(
                {
                    **self._settings(),
                    "group.id": self._group,
                    "enable.auto.commit": False,
                    "on_commit": self._hear_commit,
                    "error_cb": self._hear,
                }
            )
        self._poll(self._client, 0)
        return self._client


def let_go(clients: list[Any]) -> None:
    """Let clients go that nobody else holds, without waiting for it.

    A client waits for what it has sent, which may take a minute when its broker is away.
    """
    threading.Thread(target=clients.clear, daemon=True, name="kafka-drop").start()
