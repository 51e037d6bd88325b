"""Creates topics that are not there, as `custom_topic_creation` says."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Final

from streamer.connectors.kafka.cluster.cluster_client import ClusterClient
from streamer.connectors.kafka.cluster.errors import KafkaError
from streamer.core.errors import StreamerError

_CREATE_TIMEOUT_S: Final = 15.0


class TopicCreator:
    """Creates each topic once; threads may share it."""

    def __init__(self, cluster: ClusterClient, partitions: int, replication: int) -> None:
        """Set up.

        Args:
            cluster: the client that asks.
            partitions: how many partitions a topic gets; -1 for what the broker says.
            replication: how often it is kept; -1 for what the broker says.
        """
        self._cluster = cluster
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
        # Its session ends at once: hardly any worker meets a second topic.
        try:
            self._cluster.create_topic(
                topic, self._partitions, self._replication, _CREATE_TIMEOUT_S
            )
        except KafkaError as error:
            raise StreamerError(
                f"the topic {topic!r} cannot be created: {error}; create it by hand, or correct "
                "custom_topic_creation"
            ) from None
        finally:
            self._cluster.close()
