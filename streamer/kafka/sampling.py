"""How large messages are, told from a few of the newest."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from streamer.kafka.connection import Connection
from streamer.kafka.groups import Place

_PARTITIONS: Final = 4
_MESSAGES: Final = 50
_PATIENCE: Final = 3.0


def mean_size(
    connection: Connection, begins: Mapping[Place, int], ends: Mapping[Place, int]
) -> int | None:
    """Read the last messages of the fullest partitions, and return their mean size in bytes.

    It needs no right but to read. None when there are no messages, or none come in time.
    """
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    held = {place: end - begins.get(place, end) for place, end in ends.items()}
    fullest = [place for place in sorted(held, key=lambda one: -held[one]) if held[place] > 0]
    if not fullest:
        return None
    asked = [
        TopicPartition(*place, max(ends[place] - _MESSAGES, begins[place]))
        for place in fullest[:_PARTITIONS]
    ]
    settings = connection.librdkafka()
    # Readers of librdkafka's must name a group; nothing is committed to it.
    settings |= {"group.id": "streamer-sample", "enable.auto.commit": False}
    settings |= {"fetch.wait.max.ms": 50, "enable.partition.eof": True}
    try:
        consumer = Consumer(settings)
    except KafkaException:
        return None
    try:
        consumer.assign(asked)
        return _mean(consumer, {(one.topic, one.partition) for one in asked})
    except KafkaException:
        return None
    finally:
        consumer.close()


def _mean(consumer: Any, unread: set[Place]) -> int | None:
    from confluent_kafka import KafkaError

    sizes: list[int] = []
    until = time.monotonic() + _PATIENCE
    while unread and (left := until - time.monotonic()) > 0:
        for message in consumer.consume(len(unread) * _MESSAGES, min(left, 0.2)):
            if message.error() is None:
                sizes.append(_size(message))
            elif message.error().code() == KafkaError._PARTITION_EOF:
                # Told again whenever the end is reached again, while others write.
                unread.discard((message.topic(), message.partition()))
        if len(sizes) >= _PARTITIONS * _MESSAGES:
            break
    return max(sum(sizes) // len(sizes), 1) if sizes else None


def _size(message: Any) -> int:
    headers = message.headers() or ()
    return (
        len(message.value() or b"")
        + len(message.key() or b"")
        + sum(len(name) + len(value or b"") for name, value in headers)
    )
