"""Creates topics that are not there, as `custom_topic_creation` says."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from streamer.connectors.kafka.cluster.errors import TOPIC_EXISTS, error_text
from streamer.core.errors import StreamerError

_CREATE_TIMEOUT_S: Final = 15.0


class TopicCreator:
    """Creates each topic once; threads may share it."""

    def __init__(
        self, settings: Callable[[], Mapping[str, Any]], partitions: int, replication: int
    ) -> None:
        """Set up.

        Args:
            settings: returns librdkafka's settings of a connection.
            partitions: how many partitions a topic gets; -1 for what the broker says.
            replication: how often it is kept; -1 for what the broker says.
        """
        self._settings = settings
        self._partitions = partitions
        self._replication = replication
        self._known: set[str] = set()
        self._lock = threading.Lock()

    def create(self, topics: Iterable[str]) -> None:
        """Create those topics that are not there.

        Raises:
            StreamerError: one cannot be created.
        """
        with self._lock:
            for topic in topics:
                if topic not in self._known:
                    self._create(topic)
                    self._known.add(topic)

    def _create(self, topic: str) -> None:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient, NewTopic

        new = NewTopic(topic, num_partitions=self._partitions, replication_factor=self._replication)
        try:
            # Kept until there is an answer: a client that goes takes its questions with it.
            client = AdminClient(dict(self._settings()))
            client.create_topics([new])[topic].result(_CREATE_TIMEOUT_S)
        except KafkaException as error:
            cause = error.args[0]
            if cause.code() != TOPIC_EXISTS:
                raise StreamerError(
                    f"the topic {topic!r} cannot be created: {error_text(cause)}; create it by "
                    "hand, or correct custom_topic_creation"
                ) from None
