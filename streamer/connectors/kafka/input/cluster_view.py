"""Clients that are opened when they are needed, once for a process and a source."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from streamer.connectors.kafka.cluster.cluster_client import ClusterClient
from streamer.connectors.kafka.cluster.connection import Connection
from streamer.connectors.kafka.cluster.partition_ref import PartitionRef
from streamer.connectors.kafka.cluster.topic_selection import EARLIEST, TopicSelection
from streamer.connectors.kafka.input.input_preflight import places_of

# How often it is looked whether there are more partitions, s: as cheap as asking for offsets.
_REFRESH_INTERVAL_S: Final = 5.0
# How long something must be missing to be gone: while brokers change, they may not know yet.
_GONE_AFTER_S: Final = 3.0


class ClusterView:
    """Knows what there is to read of a selection, and how far it goes. Threads may share it.

    It is pickled without what it knows: another process asks for itself.
    """

    def __init__(
        self,
        connection: Connection,
        selection: TopicSelection,
        committed: bool,
        identities: Mapping[str, str] | None = None,
    ) -> None:
        """Take what is watched.

        Args:
            connection: how the cluster is reached.
            selection: what is read.
            committed: whether only committed transactions are.
            identities: what tells the topics that were begun from others of the same name; those
                that come later are taken for what they are when they are seen first.
        """
        self._arguments = (connection, selection, committed, identities)
        self._timeout_s = connection.answer_timeout_s
        self._lock = threading.Lock()
        self.cluster: Final = ClusterClient(connection)
        self.monitor: Final = ClusterClient(connection)
        self._partitions: dict[str, tuple[int, ...]] = {}
        self._listed_at = 0.0
        self._begins: dict[PartitionRef, int] = {}
        self._missing_since: dict[PartitionRef, float] = {}
        self._checked_at = 0.0
        self._identities = dict(identities or {})
        self.on_identities: Callable[[dict[str, str]], None] = lambda identities: None

    def __reduce__(self) -> Any:
        return ClusterView, self._arguments

    def end_offsets(self, known: dict[PartitionRef, int]) -> dict[PartitionRef, int]:
        """Return the ends of what is read, and of what is known of; gone partitions are left out.

        Raises:
            KafkaError: no broker answers, or it refuses.
        """
        _, selection, committed, _ = self._arguments
        with self._lock:
            now = time.monotonic()
            if not self._listed_at or now - self._listed_at >= _REFRESH_INTERVAL_S:
                named = selection.required_topics or None
                listed = self.cluster.list_topics(self._timeout_s, named)
                self._partitions = {name: listed[name] for name in selection.select_topics(listed)}
                self._listed_at = now
            places = {*places_of(self._partitions, selection), *known}
            return self.cluster.end_offsets(places, self._timeout_s, committed)

    def lost_partitions(
        self, known: dict[PartitionRef, int], ends: dict[PartitionRef, int]
    ) -> list[PartitionRef]:
        """Return the partitions that are gone, or end before what is known, for a while now."""
        now = time.monotonic()
        missed = {place for place, at in known.items() if ends.get(place, -1) < at}
        with self._lock:
            self._missing_since = {place: self._missing_since.get(place, now) for place in missed}
            return sorted(
                place
                for place, since in self._missing_since.items()
                if now - since >= _GONE_AFTER_S
            )

    def is_check_due(self) -> bool:
        """Return whether it is time to look again whether something has gone at the beginnings."""
        with self._lock:
            now = time.monotonic()
            if self._checked_at and now - self._checked_at < _REFRESH_INTERVAL_S:
                return False
            self._checked_at = now
            return True

    def find_recreated(self, topics: Iterable[str]) -> dict[str, str]:
        """Return the topics that are no longer those that were begun, with what they are now.

        A topic that is deleted and made again has the same name, and other messages at its offsets.

        Raises:
            KafkaError: no broker answers, or it refuses.
        """
        descriptions = self.cluster.describe_topics(topics, self._timeout_s)
        with self._lock:
            return {
                name: topic.identity
                for name, topic in descriptions.items()
                if not isinstance(topic, int) and topic.identity
                if self._identities.setdefault(name, topic.identity) != topic.identity
            }

    def accept_recreated(self, recreated: Mapping[str, str]) -> None:
        """Take topics for what they are now, and tell `on_identities` of all that are known."""
        if not recreated:
            return
        with self._lock:
            self._identities |= recreated
        self.on_identities(dict(self._identities))

    def begin_offsets(self, places: list[PartitionRef]) -> dict[PartitionRef, int]:
        """Return where partitions begin; what was asked once is not asked again."""
        with self._lock:
            unknown = [place for place in places if place not in self._begins]
            if unknown:
                self._begins |= self.cluster.begin_offsets(unknown, self._timeout_s)
            return {place: self._begins.get(place, 0) for place in places}

    def close(self) -> None:
        """Let the client go; what is asked next asks anew."""
        with self._lock:
            self.cluster.close()
            self.monitor.close()
            self._listed_at = self._checked_at = 0.0


def count_behind(
    watch: ClusterView,
    known: dict[PartitionRef, int],
    ends: dict[PartitionRef, int],
    starting: dict[PartitionRef, int],
) -> int:
    """Return how many messages lie between what is known and the ends."""
    stands = {**{place: at for place, at in starting.items() if at != EARLIEST}, **known}
    begins = watch.begin_offsets([place for place in ends if place not in stands])
    stands |= begins
    # One that ends earlier has something to be settled, which a micro-batch does.
    return sum(
        end - stands[place] if end >= stands[place] else 1
        for place, end in ends.items()
        if end != stands[place]
    )
