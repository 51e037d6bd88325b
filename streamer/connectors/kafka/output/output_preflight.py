"""Checks before an output sends: brokers, the topic, the right to write it."""

from __future__ import annotations

from streamer.connectors.kafka.cluster.cluster_client import ClusterClient
from streamer.connectors.kafka.cluster.connection import Connection
from streamer.connectors.kafka.cluster.deadline import Deadline
from streamer.connectors.kafka.cluster.errors import TOPIC_REFUSED, UNKNOWN_TOPIC, KafkaError


def check_writable(
    cluster: ClusterClient,
    connection: Connection,
    topic: str | None,
    creates: bool,
    deadline: Deadline,
) -> str:
    """Look whether a topic can be written.

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
