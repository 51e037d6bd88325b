"""Estimates the size of messages from a few of the newest."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from streamer.connectors.kafka.cluster.connection import Connection
from streamer.connectors.kafka.cluster.partition_ref import PartitionRef

_SAMPLED_PARTITIONS: Final = 4
_SAMPLED_MESSAGES: Final = 50
_SAMPLE_TIMEOUT_S: Final = 3.0


def mean_message_size(
    connection: Connection, begins: Mapping[PartitionRef, int], ends: Mapping[PartitionRef, int]
) -> int | None:
    """Read the last messages of the fullest partitions, and return their mean size in bytes.

    It needs no right but to read. None when there are no messages, or none come in time.
    """
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    counts = {place: end - begins.get(place, end) for place, end in ends.items()}
    fullest = [place for place in sorted(counts, key=lambda one: -counts[one]) if counts[place] > 0]
    if not fullest:
        return None
    partitions = [
        TopicPartition(*place, max(ends[place] - _SAMPLED_MESSAGES, begins[place]))
        for place in fullest[:_SAMPLED_PARTITIONS]
    ]
    settings = connection.librdkafka_settings()
    # Readers of librdkafka's must name a group; nothing is committed to it.
    settings |= {"group.id": "streamer-sample", "enable.auto.commit": False}
    settings |= {"fetch.wait.max.ms": 50, "enable.partition.eof": True}
    try:
        consumer = Consumer(settings)
    except KafkaException:
        return None
    try:
        consumer.assign(partitions)
        return _read_mean_size(consumer, {(one.topic, one.partition) for one in partitions})
    except KafkaException:
        return None
    finally:
        consumer.close()


def _read_mean_size(consumer: Any, unread: set[PartitionRef]) -> int | None:
    from confluent_kafka import KafkaError

    sizes: list[int] = []
    until = time.monotonic() + _SAMPLE_TIMEOUT_S
    while unread and (left := until - time.monotonic()) > 0:
        for message in consumer.consume(len(unread) * _SAMPLED_MESSAGES, min(left, 0.2)):
            if message.error() is None:
                sizes.append(_message_size(message))
            elif message.error().code() == KafkaError._PARTITION_EOF:
                # Told again whenever the end is reached again, while others write.
                unread.discard((message.topic(), message.partition()))
        if len(sizes) >= _SAMPLED_PARTITIONS * _SAMPLED_MESSAGES:
            break
    return max(sum(sizes) // len(sizes), 1) if sizes else None


def _message_size(message: Any) -> int:
    headers = message.headers() or ()
    return (
        len(message.value() or b"")
        + len(message.key() or b"")
        + sum(len(name) + len(value or b"") for name, value in headers)
    )
