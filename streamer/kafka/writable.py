"""What is looked at before an output sends anything: brokers, the topic, the right to write it."""

from __future__ import annotations

from streamer.kafka.clients import Cluster
from streamer.kafka.connection import Connection
from streamer.kafka.errors import TOPIC_REFUSED, UNKNOWN_TOPIC, KafkaError
from streamer.kafka.patience import Patience


def writable(
    cluster: Cluster, connection: Connection, topic: str | None, creates: bool, patience: Patience
) -> str:
    """Look whether a topic can be written.

    Args:
        cluster: is asked.
        connection: how it is reached.
        topic: its name; None when that is told for each message.
        creates: whether brokers may create it with the first record.
        patience: how long it may take.

    Returns:
        What was found, in a few words.

    Raises:
        KafkaError: what is wrong, and what to do.
    """
    cluster.identity(min(patience.first, connection.patience))
    if topic is None:
        return "brokers answer"
    found = cluster.describe([topic], patience.left)[topic]
    if found == UNKNOWN_TOPIC:
        if creates:
            return f"brokers answer; the topic {topic} is not there yet"
        raise KafkaError(
            f"there is no topic {topic!r}, and it is not to be created: create it, or set "
            "allow_auto_topic_creation",
            final=True,
        )
    if found == TOPIC_REFUSED or (not isinstance(found, int) and found.writable is False):
        raise KafkaError(
            f"the topic {topic!r} is refused{connection.who}; grant WRITE on the topic", final=True
        )
    if isinstance(found, int):
        raise KafkaError(
            f"{topic!r} is no name of a topic (Kafka's error {found}); expected letters, "
            "digits, dots, _ and -",
            final=True,
        )
    number = len(found.partitions)
    return f"the topic {topic} has {number} partition{'' if number == 1 else 's'}"
