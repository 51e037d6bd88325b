"""Checks before an output sends: brokers, the topic, the rights to it and to transactions."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any, Final

from streamer.connectors.kafka.cluster.cluster_client import ClusterClient
from streamer.connectors.kafka.cluster.connection import Connection
from streamer.connectors.kafka.cluster.deadline import Deadline
from streamer.connectors.kafka.cluster.errors import (
    TOPIC_REFUSED,
    TRANSACTION_REFUSED,
    UNKNOWN_TOPIC,
    KafkaError,
    transaction_error,
)
from streamer.connectors.kafka.output.producer import Settings, make_producer
from streamer.core.errors import StreamerError

_MIN_TIMEOUT_S: Final = 0.5


def check_writable(
    cluster: ClusterClient,
    connection: Connection,
    topic: str | None,
    creates: bool,
    deadline: Deadline,
) -> str:
    """Check that a topic can be written.

    Args:
        cluster: is asked.
        connection: how it is reached.
        topic: its name; None when that is told for each message.
        creates: whether brokers may create it with the first record.
        deadline: how long it may take.

    Returns:
        What was found, in a few words.

    Raises:
        KafkaError: what is wrong, and what to do.
    """
    cluster.cluster_id(min(deadline.first_timeout_s, connection.answer_timeout_s))
    if topic is None:
        return "brokers answer"
    description = cluster.describe_topics([topic], deadline.remaining_s)[topic]
    if description == UNKNOWN_TOPIC:
        if creates:
            return f"brokers answer; the topic {topic} is not there yet"
        raise KafkaError(
            f"there is no topic {topic!r}, and it is not to be created: create it, or set "
            "allow_auto_topic_creation",
            is_final=True,
        )
    if description == TOPIC_REFUSED or (
        not isinstance(description, int) and description.writable is False
    ):
        raise KafkaError(
            f"the topic {topic!r} is refused{connection.user_text}; grant WRITE on the topic",
            is_final=True,
        )
    if isinstance(description, int):
        raise KafkaError(
            f"{topic!r} is no name of a topic (Kafka's error {description}); expected letters, "
            "digits, dots, _ and -",
            is_final=True,
        )
    number = len(description.partitions)
    return f"the topic {topic} has {number} partition{'' if number == 1 else 's'}"


def preflight_transaction(
    producing: Settings,
    connection: Settings,
    stream: str,
    topic: str,
    user_text: str,
    timeout_s: float,
) -> None:
    """Go through a transaction under an id of its own, which begins as those of the stream.

    It sends nothing and is taken back: Kafka tells of a client's rights to a topic, and of those to
    groups and transactional ids only when they are used.

    Args:
        producing: returns librdkafka's settings of a producer with transactions.
        connection: the same of a connection alone.
        stream: names the checkpoint; empty where none is known.
        topic: what the stream writes, which may not be there yet.
        user_text: names the user in what is said; may be empty.
        timeout_s: seconds.

    Raises:
        KafkaError: it is refused, which is final; or there was no answer in time.
    """
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    prefix = f"streamer-{stream}" if stream else "streamer-"
    name = f"{prefix.removesuffix('-')}-preflight"
    until = time.monotonic() + timeout_s
    errors: list[Any] = []

    def remaining_s() -> float:
        return max(until - time.monotonic(), _MIN_TIMEOUT_S)

    try:
        producer = make_producer(
            {**producing(), "transactional.id": name, "error_cb": errors.append}
        )
        group = Consumer({**connection(), "group.id": name, "error_cb": errors.append})
    except StreamerError as error:
        raise KafkaError(str(error), is_final=True) from None
    try:
        producer.init_transactions(remaining_s())
        producer.begin_transaction()
        place = [TopicPartition(topic, 0, 0)]
        producer.send_offsets_to_transaction(place, group.consumer_group_metadata(), remaining_s())
        producer.abort_transaction(remaining_s())
    except KafkaException as error:
        cause = error.args[0]
        with suppress(KafkaException):
            producer.abort_transaction(_MIN_TIMEOUT_S)
        refused = next(
            (one for one in (cause, *errors) if one.code() in TRANSACTION_REFUSED), cause
        )
        if refused.code() == UNKNOWN_TOPIC:
            return
        raise transaction_error(refused, prefix, topic, user_text) from None
    finally:
        group.close()
