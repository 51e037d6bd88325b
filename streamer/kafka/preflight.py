"""What is looked at before a stream reads from Kafka: brokers, TLS, SASL, topics, rights.

It takes ten seconds at most, and says what is wrong in one line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from streamer.kafka.clients import Cluster, Topic
from streamer.kafka.connection import Connection
from streamer.kafka.errors import TOPIC_REFUSED, KafkaError
from streamer.kafka.groups import Place
from streamer.kafka.patience import Patience
from streamer.kafka.topics import Selection

_NAMED: Final = 5


class Found(NamedTuple):
    """What a cluster has for an input.

    Attributes:
        cluster: the cluster's id.
        topics: what is read, by name.
        committed: where the group stands.
    """

    cluster: str
    topics: dict[str, Topic]
    committed: dict[Place, int]


def preflight(
    cluster: Cluster,
    connection: Connection,
    selection: Selection,
    group: str,
    patience: Patience,
) -> Found:
    """Look whether an input can read.

    Args:
        cluster: is asked.
        connection: how it is reached, for what is said.
        selection: what is to be read.
        group: the consumer group; empty for none.
        patience: how long it may take.

    Raises:
        KafkaError: it cannot; in one line.
    """
    listed = cluster.topics(patience.first)
    names = selection.named or selection.chosen(listed)
    described = cluster.describe(names, patience.left)
    topics: dict[str, Topic] = {}
    for name, topic in described.items():
        if isinstance(topic, int):
            raise _absent(name, topic, connection)
        topics[name] = topic
    _check_rights(topics, connection)
    _check_partitions(topics, selection)
    places = list(places_of({name: topic.partitions for name, topic in topics.items()}, selection))
    committed = cluster.committed(group, places, patience.left) if group and places else {}
    return Found(cluster.identity(patience.left), topics, committed)


def places_of(topics: dict[str, tuple[int, ...]], selection: Selection) -> Iterator[Place]:
    """Return the partitions of topics that are read."""
    for topic, numbers in topics.items():
        wanted = selection.partitions.get(topic)
        for number in numbers:
            if wanted is None or number in wanted:
                yield topic, number


def _absent(name: str, code: int, connection: Connection) -> KafkaError:
    where = ", ".join(connection.brokers)
    if code == TOPIC_REFUSED:
        return KafkaError(
            f"the topic {name!r} is refused{_who(connection)} at {where}; grant it READ and "
            "DESCRIBE on the topic",
            final=True,
        )
    missing = KafkaError(
        f"there is no topic {name!r} at {where}; create it, or correct the field topics", final=True
    )
    missing.absent = True
    return missing


def _check_rights(topics: dict[str, Topic], connection: Connection) -> None:
    refused = [name for name, topic in topics.items() if topic.readable is False]
    if refused:
        more = f" and {len(refused) - _NAMED} more" if len(refused) > _NAMED else ""
        listed = ", ".join(map(repr, refused[:_NAMED]))
        raise KafkaError(
            f"reading {listed}{more} is refused{_who(connection)}; grant it READ on the topic",
            final=True,
        )


def _check_partitions(topics: dict[str, Topic], selection: Selection) -> None:
    for name, wanted in selection.partitions.items():
        missing = sorted(set(wanted) - set(topics[name].partitions))
        if missing:
            there = topics[name].partitions
            raise KafkaError(
                f"the topic {name!r} has no partition {missing[0]}; it has {there[0]} to "
                f"{there[-1]}, correct the field topics",
                final=True,
            )


def _who(connection: Connection) -> str:
    sasl = connection.sasl
    return f" to the user {sasl.user!r}" if sasl and sasl.user else ""
