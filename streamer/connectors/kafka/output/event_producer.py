"""A producer for events that nobody waits for: lines of the log, and the status of a stream."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from streamer.connectors.kafka.cluster.cluster_client import ClusterClient
from streamer.connectors.kafka.cluster.connection_fields import read_connection
from streamer.connectors.kafka.cluster.deadline import Deadline
from streamer.connectors.kafka.cluster.errors import error_text
from streamer.connectors.kafka.output.output_preflight import check_writable
from streamer.connectors.kafka.output.partitioning import MURMUR2, librdkafka_partitioner
from streamer.connectors.kafka.output.producer import make_producer
from streamer.connectors.kafka.output.producer_fields import (
    ALLOW_CREATION,
    PARTITIONER,
    producer_settings,
)
from streamer.connectors.kafka.redpanda_section import LOGS_TOPIC, STATUS_TOPIC
from streamer.sdk.spec import ParsedFields

_MAX_QUEUED: Final = 10_000
_DELIVERY_TIMEOUT_MS: Final = 60_000


def probe_event_topics(section: ParsedFields) -> str:
    """Check that the brokers of the section `redpanda` answer and its topics may be written.

    Raises:
        StreamerError: they do not, or may not.
    """
    connection, deadline = read_connection(section), Deadline()
    cluster = ClusterClient(connection)
    try:
        creates = bool(section[ALLOW_CREATION])
        topics = [section[name] for name in (LOGS_TOPIC, STATUS_TOPIC) if section[name]]
        summaries = [
            check_writable(cluster, connection, topic, creates, deadline)
            for topic in topics or [None]
        ]
    finally:
        cluster.close()
    return "; ".join(summaries)


class EventProducer:
    """Sends events without waiting; an event that cannot be sent is dropped and counted.

    It can be used from several threads.

    Attributes:
        dropped: how many events were dropped.
        last_error: why the last one was.
    """

    def __init__(
        self,
        section: ParsedFields,
        make: Callable[[Mapping[str, Any]], Any] = make_producer,
    ) -> None:
        """Make the producer of the section `redpanda`; it connects by itself.

        Args:
            section: the section.
            make: makes a producer of librdkafka's of its settings.

        Raises:
            StreamerError: the settings are refused, or a certificate cannot be read.
        """
        self.dropped = 0
        self.last_error = ""
        self._lock = threading.Lock()
        self._producer = make(
            {
                **read_connection(section).librdkafka_settings(),
                **producer_settings(section),
                "partitioner": librdkafka_partitioner(section[PARTITIONER] or MURMUR2),
                "allow.auto.create.topics": section[ALLOW_CREATION],
                # What brokers do not take for long is of no use to anybody any more.
                "queue.buffering.max.messages": _MAX_QUEUED,
                "message.timeout.ms": _DELIVERY_TIMEOUT_MS,
                "error_cb": self._on_error,
            }
        )

    def send(self, topic: str, value: bytes, key: str) -> None:
        """Put an event into the queue; drop it where that is full."""
        try:
            self._producer.produce(topic, value, key or None, on_delivery=self._on_delivery)
            self._producer.poll(0)
        except Exception as error:
            # A log line must not stop what it is about, whatever is wrong with the client.
            self._drop(str(error))

    def close(self, timeout: float) -> None:
        """Wait for what is in the queue, but not for longer than so many seconds."""
        try:
            left = self._producer.flush(timeout)
        except Exception as error:
            left, self.last_error = 1, str(error)
        with self._lock:
            self.dropped += left

    def _on_delivery(self, error: Any, _: Any) -> None:
        if error is not None:
            self._drop(error_text(error))

    def _on_error(self, error: Any) -> None:
        self.last_error = error_text(error)

    def _drop(self, why: str) -> None:
        with self._lock:
            self.dropped += 1
            self.last_error = why
