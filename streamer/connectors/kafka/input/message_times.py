"""Times of the messages at some offsets."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from streamer.connectors.kafka.cluster.connection import Connection
from streamer.connectors.kafka.cluster.partition_ref import PartitionRef

_TIMEOUT_S: Final = 5.0
_FETCH_BYTES: Final = 65_536


def read_message_times(
    connection: Connection, offsets: Mapping[PartitionRef, int]
) -> dict[PartitionRef, int]:
    """Return the times of the next messages at offsets, Unix ms.

    Those that do not come in time are left out. librdkafka reads them: kafka-python opens neither
    snappy nor zstd by itself.

    Args:
        connection: how the cluster is reached.
        offsets: of partitions; there should be messages.
    """
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    settings = connection.librdkafka_settings()
    # Readers of librdkafka's must name a group; nothing is committed to it.
    settings |= {"group.id": "streamer-offsets", "enable.auto.commit": False}
    settings |= {"fetch.wait.max.ms": 50, "fetch.message.max.bytes": _FETCH_BYTES}
    times: dict[PartitionRef, int] = {}
    try:
        consumer = Consumer(settings)
    except KafkaException:
        return times
    try:
        consumer.assign([TopicPartition(*place, at) for place, at in offsets.items()])
        until = time.monotonic() + _TIMEOUT_S
        while len(times) < len(offsets) and time.monotonic() < until:
            for message in consumer.consume(len(offsets), 0.2):
                if message.error() is None:
                    place = message.topic(), message.partition()
                    times.setdefault(place, message.timestamp()[1])
    except KafkaException:
        pass  # what it has got is shown
    finally:
        consumer.close()
    return times
