"""Queries of a cluster beside its messages: topics, offsets, groups and rights.

They are asked by kafka-python. Every question has a time within which it is answered or fails.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from streamer.connectors.kafka.cluster.broker_client import BrokerClient
from streamer.connectors.kafka.cluster.connection import Connection
from streamer.connectors.kafka.cluster.consumer_group import GroupClient
from streamer.connectors.kafka.cluster.errors import (
    BAD_TOPIC,
    COORDINATOR_MOVES,
    GROUP_IN_USE,
    GROUP_REFUSED,
    NO_LEADER,
    RIGHTS_MISSING,
    KafkaError,
    NoLeaderError,
    RefusedError,
)
from streamer.connectors.kafka.cluster.partition_ref import PartitionRef

if TYPE_CHECKING:
    from streamer.connectors.kafka.cluster.broker_session import Requests
    from streamer.connectors.kafka.cluster.requests import Metadata, TopicMetadata

T = TypeVar("T")

_EARLIEST: Final = -2
_LATEST: Final = -1


class Topic(NamedTuple):
    """A topic as its cluster describes it.

    Attributes:
        partitions: its numbers, in order.
        identity: tells it from one of the same name that was deleted; empty when it has none.
        readable: whether the client may read it; None when the cluster does not say.
        writable: the same of writing.
    """

    partitions: tuple[int, ...]
    identity: str
    readable: bool | None
    writable: bool | None = None


class ClusterClient:
    """A client of a cluster. Errors are raised as `KafkaError`."""

    def __init__(self, connection: Connection) -> None:
        """Take how it is reached; it is connected when it is asked first.

        Args:
            connection: how it is reached.
        """
        self._connection = connection
        self._client = BrokerClient(connection)
        self._lock = threading.Lock()
        self._groups: dict[str, GroupClient] = {}

    def close(self) -> None:
        """Let the clients go; they are made again when they are asked again."""
        self._client.close()
        with self._lock:
            groups, self._groups = self._groups, {}
        for group in groups.values():
            group.close()

    def cluster_id(self, timeout_s: float) -> str:
        """Return the cluster's id, which its brokers share; empty when they have none."""
        return self._fetch_metadata((), timeout_s).cluster

    def ping(self, topic: str | None, timeout: float) -> None:
        """Send one request, to check that brokers answer and lead what is read.

        Args:
            topic: the only topic that is read; None for several.
            timeout: seconds.

        Raises:
            KafkaError: none answers in time, or a partition has no leader.
        """
        metadata = self._fetch_metadata(() if topic is None else (topic,), timeout)
        for name, described in metadata.topics.items():
            for number, leader in described.leaders.items():
                if leader < 0:
                    raise self._no_leader_error(name, number)

    def list_topics(
        self, timeout_s: float, topics: Collection[str] | None = None
    ) -> dict[str, tuple[int, ...]]:
        """Return the partitions of topics; those that are not there are left out.

        Args:
            timeout_s: seconds.
            topics: their names; None for all that the client may see.
        """
        listed = self._fetch_metadata(topics, timeout_s).topics
        return {
            name: tuple(sorted(topic.leaders))
            for name, topic in listed.items()
            if topic.code in (0, NO_LEADER)
        }

    def describe_topics(self, topics: Iterable[str], timeout_s: float) -> dict[str, Topic | int]:
        """Return what topics are; instead of one that there is not, the number of Kafka's error."""
        names = list(topics)
        described = self._fetch_metadata(names, timeout_s).topics if names else {}
        return {
            name: _parse_topic(topic) if topic.code in (0, NO_LEADER) else topic.code
            for name, topic in described.items()
        }

    def end_offsets(
        self, places: Iterable[PartitionRef], timeout_s: float, committed: bool = False
    ) -> dict[PartitionRef, int]:
        """Return the offsets after the newest messages; partitions that are gone are left out.

        Args:
            places: the partitions.
            timeout_s: seconds.
            committed: only up to where transactions are committed.
        """
        return self._list_offsets(dict.fromkeys(places, _LATEST), timeout_s, committed)

    def begin_offsets(
        self, places: Iterable[PartitionRef], timeout_s: float
    ) -> dict[PartitionRef, int]:
        """Return the offsets of the oldest messages; partitions that are gone are left out."""
        return self._list_offsets(dict.fromkeys(places, _EARLIEST), timeout_s)

    def offsets_at(
        self, places: Iterable[PartitionRef], ms: int, timeout_s: float
    ) -> dict[PartitionRef, int]:
        """Return the offsets of the first messages of a time or later; -1 where there is none."""
        return self._list_offsets(dict.fromkeys(places, ms), timeout_s)

    def committed_offsets(
        self, group: str, places: Collection[PartitionRef] | None, timeout_s: float
    ) -> dict[PartitionRef, int]:
        """Return what a group has committed; partitions of which it has not are left out.

        Args:
            group: its id.
            places: the partitions; None for all of the group.
            timeout_s: seconds.
        """
        try:
            return self._group_client(group).committed_offsets(places, timeout_s)
        except RefusedError as error:
            if error.code == GROUP_REFUSED:
                raise KafkaError(
                    f"{self._group_refused_text(group)}, or use another consumer_group",
                    is_final=True,
                ) from None
            if error.code in COORDINATOR_MOVES:
                raise KafkaError(
                    f"the group {group!r} cannot be read now: its broker is changing"
                ) from None
            raise self._refused_error(error) from None

    def commit(
        self, group: str, offsets: Mapping[PartitionRef, int], timeout_s: float
    ) -> str | None:
        """Commit offsets for a group; returns why it does not take them, or None.

        Kafka takes them from nobody but its members when a group has any. A group whose broker is
        changing is asked again for as long as there is time.
        """
        if not offsets:
            return None
        codes = self._group_client(group).commit(offsets, timeout_s)
        return self._explain_commit_failure(group, codes)

    def create_topic(self, name: str, partitions: int, replication: int, timeout_s: float) -> None:
        """Create a topic; one that is there is well.

        Args:
            name: its name.
            partitions: how many; -1 for what the brokers say.
            replication: how often it is kept; -1 for what the brokers say.
            timeout_s: seconds.
        """

        def query(requests: Requests) -> Coroutine[Any, Any, None]:
            from streamer.connectors.kafka.cluster.requests import create_topic

            return create_topic(requests, name, partitions, replication)

        self._query(query, timeout_s)

    def _explain_commit_failure(self, group: str, codes: set[int]) -> str | None:
        if not codes:
            return None
        if codes & set(GROUP_IN_USE):
            return (
                f"the group {group!r} has members of its own, so that Kafka takes no offsets from "
                "others; end them, or use another consumer_group"
            )
        if GROUP_REFUSED in codes:
            return self._group_refused_text(group)
        if codes & set(COORDINATOR_MOVES):
            return f"the group {group!r} does not take offsets now: its broker is changing"
        return f"the group {group!r} does not take offsets: Kafka's error {min(codes)}"

    def _group_refused_text(self, group: str) -> str:
        user = self._connection.user_text
        return f"the group {group!r} is refused{user}; grant it READ on the group"

    def _fetch_metadata(self, topics: Collection[str] | None, timeout_s: float) -> Metadata:
        def query(requests: Requests) -> Coroutine[Any, Any, Metadata]:
            from streamer.connectors.kafka.cluster.requests import fetch_metadata

            return fetch_metadata(requests, topics)

        return self._query(query, timeout_s)

    def _list_offsets(
        self, times: Mapping[PartitionRef, int], timeout_s: float, committed: bool = False
    ) -> dict[PartitionRef, int]:
        def query(requests: Requests) -> Coroutine[Any, Any, dict[PartitionRef, int]]:
            from streamer.connectors.kafka.cluster.requests import list_offsets

            return list_offsets(requests, times, committed)

        return self._query(query, timeout_s) if times else {}

    def _query(self, question: Callable[[Requests], Coroutine[Any, Any, T]], timeout_s: float) -> T:
        try:
            return self._client.query(question, timeout_s)
        except NoLeaderError as error:
            raise self._no_leader_error(*error.place) from None
        except RefusedError as error:
            raise self._refused_error(error) from None

    def _refused_error(self, error: RefusedError) -> KafkaError:
        final = error.code in (BAD_TOPIC, *RIGHTS_MISSING)
        return KafkaError(f"Kafka refuses{self._connection.user_text}: {error}", final)

    def _no_leader_error(self, topic: str, number: int) -> KafkaError:
        return KafkaError(
            f"the partition {topic}:{number} has no leader now; expected a broker of "
            f"{', '.join(self._connection.brokers)} to lead it, check that all of them run"
        )

    def _group_client(self, group: str) -> GroupClient:
        with self._lock:
            if group not in self._groups:
                client = BrokerClient(self._connection)
                self._groups[group] = GroupClient(group, client)
            return self._groups[group]


def _parse_topic(topic: TopicMetadata) -> Topic:
    return Topic(tuple(sorted(topic.leaders)), topic.identity, topic.readable, topic.writable)
