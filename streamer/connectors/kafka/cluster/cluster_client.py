"""Queries of a cluster beside its messages: topics, offsets, groups and rights.

One client of librdkafka, which threads may share. Every question has a time within which it is
answered or fails.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, Final, NamedTuple

from streamer.connectors.kafka.cluster.connection import Connection
from streamer.connectors.kafka.cluster.consumer_group import (
    GroupClient,
    PartitionRef,
    close_in_background,
)
from streamer.connectors.kafka.cluster.errors import (
    BAD_TOPIC,
    COORDINATOR_MOVES,
    GROUP_IN_USE,
    GROUP_REFUSED,
    NO_LEADERS,
    RIGHTS_MISSING,
    TIMED_OUT,
    TOPIC_REFUSED,
    UNKNOWN_PARTITION,
    UNKNOWN_TOPIC,
    KafkaError,
    is_permanent,
    no_broker_error,
    parse_error,
)

GONE_ERRORS: Final = (UNKNOWN_TOPIC, UNKNOWN_PARTITION, NO_LEADERS)
_NO_OFFSET: Final = -1
_POLL_INTERVAL_S: Final = 0.25
_COMMITTED_TIMEOUT_S: Final = 2.0
_MAX_RECENT_ERRORS: Final = 50


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
    """A client of a cluster. What is wrong is raised as `KafkaError`."""

    def __init__(self, connection: Connection, token: Callable[[], str] | None = None) -> None:
        """Take how it is reached; it is connected when it is asked first.

        Args:
            connection: how it is reached.
            token: returns the token of OAUTHBEARER when one is needed; otherwise the connection's.
        """
        self._connection = connection
        self._token = token
        self._recent: deque[tuple[float, int, str]] = deque(maxlen=_MAX_RECENT_ERRORS)
        self._lock = threading.Lock()
        self._client: Any = None
        self._process = 0
        self._group: GroupClient | None = None
        self._group_process = 0

    def close(self) -> None:
        """Let the client go; it is made again when it is asked again."""
        self._drop_client()
        with self._lock:
            group, self._group = self._group, None
        if group is not None:
            group.close()

    def cluster_id(self, timeout_s: float) -> str:
        """Return the cluster's id, which its brokers share; empty when they have none."""
        return self._list_metadata(timeout_s).cluster_id or ""

    def broker_addresses(self, timeout_s: float) -> list[str]:
        """Return the addresses of all brokers, as they tell them themselves."""
        listed = self._list_metadata(timeout_s).brokers.values()
        return sorted(f"{broker.host}:{broker.port}" for broker in listed)

    def ping(self, topic: str | None, timeout: float) -> None:
        """Send one request, to check that brokers answer and lead what is read.

        Args:
            topic: the only topic that is read; None for all.
            timeout: seconds.

        Raises:
            KafkaError: none answers in time, or a partition has no leader.
        """
        try:
            listed = self._admin_client().list_topics(topic, timeout=timeout)
        except Exception as error:
            errors = self._recent_errors(timeout)
            self._drop_client()
            raise no_broker_error(self._connection, errors, parse_error(error)[1]) from None
        for name, described in listed.topics.items():
            for number, partition in described.partitions.items() if topic is not None else ():
                if partition.leader < 0:
                    raise self._no_leader_error(name, number)

    def list_topics(self, timeout_s: float) -> dict[str, tuple[int, ...]]:
        """Return the partitions of all topics that the client may see."""
        listed = self._list_metadata(timeout_s).topics
        return {
            name: tuple(sorted(topic.partitions))
            for name, topic in listed.items()
            if topic.error is None
        }

    def describe_topics(self, topics: Iterable[str], timeout_s: float) -> dict[str, Topic | int]:
        """Return what topics are; instead of one that there is not, the number of Kafka's error."""
        from confluent_kafka import TopicCollection

        names = list(topics)
        if not names:
            return {}
        answers = self._admin_client().describe_topics(
            TopicCollection(names), include_authorized_operations=True, request_timeout=timeout_s
        )
        descriptions: dict[str, Topic | int] = {}
        for name, answer in answers.items():
            described, code = self._wait_for(
                answer, timeout_s, allowed=(UNKNOWN_TOPIC, BAD_TOPIC, TOPIC_REFUSED)
            )
            descriptions[name] = code if described is None else _parse_topic(described)
        return descriptions

    def end_offsets(
        self, places: Iterable[PartitionRef], timeout_s: float, committed: bool = False
    ) -> dict[PartitionRef, int]:
        """Return the offsets after the newest messages; partitions that are gone are left out.

        Args:
            places: the partitions.
            timeout_s: seconds.
            committed: only up to where transactions are committed.
        """
        from confluent_kafka.admin import OffsetSpec

        return self._list_offsets(dict.fromkeys(places, OffsetSpec.latest()), timeout_s, committed)

    def begin_offsets(
        self, places: Iterable[PartitionRef], timeout_s: float
    ) -> dict[PartitionRef, int]:
        """Return the offsets of the oldest messages; partitions that are gone are left out."""
        from confluent_kafka.admin import OffsetSpec

        return self._list_offsets(dict.fromkeys(places, OffsetSpec.earliest()), timeout_s)

    def offsets_at(
        self, places: Iterable[PartitionRef], ms: int, timeout_s: float
    ) -> dict[PartitionRef, int]:
        """Return the offsets of the first messages of a time or later; -1 where there is none."""
        from confluent_kafka.admin import OffsetSpec

        return self._list_offsets(dict.fromkeys(places, OffsetSpec.for_timestamp(ms)), timeout_s)

    def committed_offsets(
        self, group: str, places: Iterable[PartitionRef], timeout_s: float
    ) -> dict[PartitionRef, int]:
        """Return what a group has committed; partitions of which it has not are left out."""
        partitions = list(places)
        until = time.monotonic() + timeout_s
        while True:
            left = until - time.monotonic()
            code, text = 0, ""
            try:
                answer = self._group_client(group).committed_offsets(
                    partitions, max(min(left, _COMMITTED_TIMEOUT_S), _POLL_INTERVAL_S)
                )
            except Exception as error:
                (code, text), answer = parse_error(error), []
            code = next((parse_error(one.error)[0] for one in answer if one.error), code)
            # One that is refused is not answered; why is said by the way.
            if code == TIMED_OUT and self._was_refused(timeout_s):
                code = GROUP_REFUSED
            if code not in (*COORDINATOR_MOVES, TIMED_OUT) or left <= _POLL_INTERVAL_S:
                break
            if code != TIMED_OUT:
                time.sleep(_POLL_INTERVAL_S)
        if code == GROUP_REFUSED:
            raise KafkaError(
                f"{self._group_refused_text(group)}, or use another consumer_group", is_final=True
            )
        if code in COORDINATOR_MOVES:
            raise KafkaError(f"the group {group!r} cannot be read now: its broker is changing")
        if code < 0:
            raise no_broker_error(self._connection, self._recent_errors(timeout_s), text)
        return {(one.topic, one.partition): one.offset for one in answer if one.offset >= 0}

    def commit(
        self, group: str, offsets: Mapping[PartitionRef, int], timeout_s: float
    ) -> str | None:
        """Commit offsets for a group; returns why it does not take them, or None.

        Kafka takes them from nobody but its members when a group has any. A group whose broker is
        changing is asked again for as long as there is time.
        """
        if not offsets:
            return None
        until = time.monotonic() + timeout_s
        while True:
            codes = self._group_client(group).commit(
                offsets, max(until - time.monotonic(), _POLL_INTERVAL_S)
            )
            codes -= {UNKNOWN_TOPIC}  # a topic that is gone has nothing to be committed
            if TIMED_OUT in codes and self._was_refused(timeout_s):
                codes = {GROUP_REFUSED}
            if any(code < 0 for code in codes):
                errors = self._recent_errors(timeout_s)
                raise no_broker_error(self._connection, errors, "it does not answer in time")
            if not codes & set(COORDINATOR_MOVES) or time.monotonic() + _POLL_INTERVAL_S > until:
                return self._explain_commit_failure(group, codes)
            time.sleep(_POLL_INTERVAL_S)

    def _was_refused(self, timeout_s: float) -> bool:
        return any(code == GROUP_REFUSED for code, _ in self._recent_errors(timeout_s))

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

    def _list_metadata(self, timeout_s: float) -> Any:
        """Return the metadata of the cluster; gives up early when waiting is of no use."""
        admin, until = self._admin_client(), time.monotonic() + timeout_s
        while True:
            left = until - time.monotonic()
            try:
                return admin.list_topics(timeout=max(min(left, _POLL_INTERVAL_S), 0.01))
            except Exception as error:
                errors = self._recent_errors(timeout_s)
                if is_permanent(errors) or left <= _POLL_INTERVAL_S:
                    self._drop_client()
                    raise no_broker_error(self._connection, errors, parse_error(error)[1]) from None

    def _recent_errors(self, seconds: float) -> list[tuple[int, str]]:
        """Return numbers and texts of the errors that librdkafka reports beside its answers."""
        self._admin_client()
        since = time.monotonic() - seconds - 1
        return [(code, text) for at, code, text in list(self._recent) if at >= since]

    def _list_offsets(
        self, specs: Mapping[PartitionRef, Any], timeout_s: float, committed: bool = False
    ) -> dict[PartitionRef, int]:
        from confluent_kafka import IsolationLevel, TopicPartition

        if not specs:
            return {}
        levels = (IsolationLevel.READ_UNCOMMITTED, IsolationLevel.READ_COMMITTED)
        answers = self._admin_client().list_offsets(
            {TopicPartition(*place): spec for place, spec in specs.items()},
            isolation_level=levels[committed],
            request_timeout=timeout_s,
        )
        offsets: dict[PartitionRef, int] = {}
        for place, answer in answers.items():
            result, _ = self._wait_for(answer, timeout_s, allowed=GONE_ERRORS)
            if result is None:
                continue
            if result.offset < _NO_OFFSET:
                # This is how librdkafka says that a broker has not answered in time.
                errors = self._recent_errors(timeout_s)
                self._drop_client()
                raise no_broker_error(self._connection, errors, "it does not answer in time")
            offsets[place.topic, place.partition] = result.offset
        self._check_gone([place for place in specs if place not in offsets], timeout_s)
        return offsets

    def _check_gone(self, missing: list[PartitionRef], timeout_s: float) -> None:
        """Check whether partitions are gone: librdkafka reports the same when no broker is there.

        Raises:
            KafkaError: no broker answers, or one knows them, so that they are not gone.
        """
        if not missing:
            return
        listed = self.list_topics(timeout_s)
        for topic, number in missing:
            if number in listed.get(topic, ()):
                raise self._no_leader_error(topic, number)

    def _no_leader_error(self, topic: str, number: int) -> KafkaError:
        return KafkaError(
            f"the partition {topic}:{number} has no leader now; expected a broker of "
            f"{', '.join(self._connection.brokers)} to lead it, check that all of them run"
        )

    def _wait_for(
        self, future: Future[Any], timeout_s: float, allowed: tuple[int, ...]
    ) -> tuple[Any, int]:
        """Return an answer and 0, or None and the number of an error that may be.

        Raises:
            KafkaError: any other.
        """
        try:
            # librdkafka keeps to the time by itself; this is for when it does not.
            return future.result(timeout_s + 5), 0
        except Exception as error:
            code, text = parse_error(error)
            if code in allowed:
                return None, code
            if code < 0:
                errors = self._recent_errors(timeout_s)
                if code == TIMED_OUT:
                    self._drop_client()
                raise no_broker_error(self._connection, errors, text) from None
            final = code in (BAD_TOPIC, *RIGHTS_MISSING)
            raise KafkaError(f"Kafka refuses{self._connection.user_text}: {text}", final) from None

    def _drop_client(self) -> None:
        """Use a new client from now on.

        One whose question a broker has not answered may not hear from it again for a minute.
        """
        with self._lock:
            old = [self._client]
            self._client = None
        close_in_background(old)

    def _group_client(self, group: str) -> GroupClient:
        with self._lock:
            if self._group is None or self._group_process != os.getpid():
                self._group = GroupClient(group, self._settings, self._note_error)
                self._group_process = os.getpid()
            return self._group

    def _settings(self) -> dict[str, Any]:
        settings = self._connection.librdkafka_settings(self._token)
        return {**settings, "reconnect.backoff.max.ms": 1000}

    def _note_error(self, error: Any) -> None:
        self._recent.append((time.monotonic(), *parse_error(error)))

    def _admin_client(self) -> Any:
        with self._lock:
            # A client does not live on in a process that was forked.
            if self._client is None or self._process != os.getpid():
                from confluent_kafka.admin import AdminClient

                self._client = AdminClient({**self._settings(), "error_cb": self._note_error})
                self._process = os.getpid()
            client = self._client
        # What it has to say is handed over, so that it does not pile up.
        client.poll(0)
        return client


def _topic_id(topic_id: Any) -> str:
    """Return what tells a topic from others; nothing where the cluster has zeros for all."""
    text = str(topic_id or "")
    return text if text.strip("A") else ""


def _parse_topic(described: Any) -> Topic:
    from confluent_kafka.admin import AclOperation

    rights = described.authorized_operations
    return Topic(
        tuple(sorted(partition.id for partition in described.partitions)),
        _topic_id(described.topic_id),
        None if rights is None else AclOperation.READ in rights,
        None if rights is None else AclOperation.WRITE in rights,
    )
