"""Checks before a stream reads from Kafka: brokers, TLS, SASL, topics, rights.

It takes ten seconds at most, and says what is wrong in one line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from streamer.connectors.kafka.cluster.cluster_client import ClusterClient, Topic
from streamer.connectors.kafka.cluster.connection import Connection
from streamer.connectors.kafka.cluster.deadline import Deadline
from streamer.connectors.kafka.cluster.errors import TOPIC_REFUSED, KafkaError
from streamer.connectors.kafka.cluster.partition_ref import PartitionRef
from streamer.connectors.kafka.cluster.topic_selection import TopicSelection
from streamer.connectors.kafka.input.data_loss import check_topics
from streamer.core.errors import StreamerError

_MAX_NAMED: Final = 5


class ClusterState(NamedTuple):
    """The topics of a cluster that an input selects.

    Attributes:
        cluster: the cluster's id.
        topics: what is read, by name.
        committed: where the group stands.
    """

    cluster: str
    topics: dict[str, Topic]
    committed: dict[PartitionRef, int]


def preflight_input(
    cluster: ClusterClient,
    connection: Connection,
    selection: TopicSelection,
    group: str,
    deadline: Deadline,
) -> ClusterState:
    """Check that an input can read.

    Args:
        cluster: is asked.
        connection: how it is reached, for what is said.
        selection: what is to be read.
        group: the consumer group; empty for none.
        deadline: how long it may take.

    Raises:
        KafkaError: it cannot; in one line.
    """
    names: Sequence[str] = selection.required_topics
    if not names:
        names = selection.select_topics(cluster.list_topics(deadline.first_timeout_s))
    described = cluster.describe_topics(names, deadline.first_timeout_s)
    topics: dict[str, Topic] = {}
    for name, topic in described.items():
        if isinstance(topic, int):
            raise _missing_topic_error(name, topic, connection)
        topics[name] = topic
    _check_rights(topics, connection)
    _check_partitions(topics, selection)
    places = list(places_of({name: topic.partitions for name, topic in topics.items()}, selection))
    committed = (
        cluster.committed_offsets(group, places, deadline.remaining_s) if group and places else {}
    )
    return ClusterState(cluster.cluster_id(deadline.remaining_s), topics, committed)


def places_of(
    topics: dict[str, tuple[int, ...]], selection: TopicSelection
) -> Iterator[PartitionRef]:
    """Return the partitions of topics that are read."""
    for topic, numbers in topics.items():
        partitions = selection.partitions.get(topic)
        for number in numbers:
            if partitions is None or number in partitions:
                yield topic, number


def _missing_topic_error(name: str, code: int, connection: Connection) -> KafkaError:
    where = ", ".join(connection.brokers)
    if code == TOPIC_REFUSED:
        return KafkaError(
            f"the topic {name!r} is refused{connection.user_text} at {where}; grant it READ and "
            "DESCRIBE on the topic",
            is_final=True,
        )
    missing = KafkaError(
        f"there is no topic {name!r} at {where}; create it, or correct the field topics",
        is_final=True,
    )
    missing.absent = True
    return missing


def _check_rights(topics: dict[str, Topic], connection: Connection) -> None:
    refused = [name for name, topic in topics.items() if topic.readable is False]
    if refused:
        more = f" and {len(refused) - _MAX_NAMED} more" if len(refused) > _MAX_NAMED else ""
        listed = ", ".join(map(repr, refused[:_MAX_NAMED]))
        raise KafkaError(
            f"reading {listed}{more} is refused{connection.user_text}; grant it READ on the topic",
            is_final=True,
        )


def _check_partitions(topics: dict[str, Topic], selection: TopicSelection) -> None:
    for name, partitions in selection.partitions.items():
        missing = sorted(set(partitions) - set(topics[name].partitions))
        if missing:
            there = topics[name].partitions
            raise KafkaError(
                f"the topic {name!r} has no partition {missing[0]}; it has {there[0]} to "
                f"{there[-1]}, correct the field topics",
                is_final=True,
            )


def check_same_cluster(
    name: str, connection: Connection, known: Any, cluster: ClusterState, every: bool | None
) -> None:
    """Check that the checkpoint is of this cluster and of these topics.

    Args:
        name: of the component.
        connection: how the cluster is reached.
        known: what the checkpoint remembers.
        cluster: what there is.
        every: whether topics are chosen by patterns; None to leave topics alone, as one does that
            goes on when messages are gone.

    Raises:
        StreamerError: it is not.
    """
    if known["cluster"] and cluster.cluster and known["cluster"] != cluster.cluster:
        raise StreamerError(
            f"input {name}: the checkpoint was made with the Kafka cluster {known['cluster']!r}, "
            f"and {','.join(connection.brokers)} is {cluster.cluster!r}, where its offsets mean "
            "other messages; use the addresses of the former, or another checkpoint"
        )
    if every is not None:
        now = {topic: one.identity for topic, one in cluster.topics.items()}
        check_topics(name, known["topics"], now, every)
