"""Clients that are opened when they are needed, once for a process and a source."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from streamer.kafka.clients import Cluster
from streamer.kafka.connection import Connection
from streamer.kafka.groups import Place
from streamer.kafka.preflight import places_of
from streamer.kafka.topics import EARLIEST, Selection

# How often it is looked whether there are more partitions, s: as cheap as asking for offsets.
_REFRESH: Final = 5.0
# How long something must be missing to be gone: while brokers change, they may not know yet.
_GONE: Final = 3.0


class Watch:
    """Knows what there is to read of a selection, and how far it goes. Threads may share it.

    It is pickled without what it knows: another process asks for itself.
    """

    def __init__(
        self,
        connection: Connection,
        selection: Selection,
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
        self._given = (connection, selection, committed, identities)
        self._patience = connection.patience
        self._lock = threading.Lock()
        self.cluster: Final = Cluster(connection)
        self.monitor: Final = Cluster(connection)
        self._partitions: dict[str, tuple[int, ...]] = {}
        self._looked = 0.0
        self._begins: dict[Place, int] = {}
        self._missed: dict[Place, float] = {}
        self._checked = 0.0
        self._identities = dict(identities or {})
        self.taken_over: Callable[[dict[str, str]], None] = lambda identities: None
        self.newest: dict[Place, int] = {}

    def __reduce__(self) -> Any:
        return Watch, self._given

    def ends(self, known: dict[Place, int]) -> dict[Place, int]:
        """Return the ends of what is read, and of what is known of; gone partitions are left out.

        Raises:
            KafkaError: no broker answers, or it refuses.
        """
        _, selection, committed, _ = self._given
        with self._lock:
            now = time.monotonic()
            if not self._looked or now - self._looked >= _REFRESH:
                listed = self.cluster.topics(self._patience)
                self._partitions = {name: listed[name] for name in selection.chosen(listed)}
                self._looked = now
            places = {*places_of(self._partitions, selection), *known}
            self.newest = self.cluster.ends(places, self._patience, committed)
            return self.newest

    def lost(self, known: dict[Place, int], ends: dict[Place, int]) -> list[Place]:
        """Return the partitions that are gone, or end before what is known, for a while now."""
        now = time.monotonic()
        missed = {place for place, at in known.items() if ends.get(place, -1) < at}
        with self._lock:
            self._missed = {place: self._missed.get(place, now) for place in missed}
            return sorted(place for place, since in self._missed.items() if now - since >= _GONE)

    def due(self) -> bool:
        """Tell whether it is time to look again whether something has gone at the beginnings."""
        with self._lock:
            now = time.monotonic()
            if self._checked and now - self._checked < _REFRESH:
                return False
            self._checked = now
            return True

    def remade(self, topics: Iterable[str]) -> dict[str, str]:
        """Return the topics that are no longer those that were begun, with what they are now.

        A topic that is deleted and made again has the same name, and other messages at its offsets.

        Raises:
            KafkaError: no broker answers, or it refuses.
        """
        found = self.cluster.describe(topics, self._patience)
        with self._lock:
            return {
                name: topic.identity
                for name, topic in found.items()
                if not isinstance(topic, int) and topic.identity
                if self._identities.setdefault(name, topic.identity) != topic.identity
            }

    def take_over(self, remade: Mapping[str, str]) -> None:
        """Take topics for what they are now, and tell `taken_over` of all that are known."""
        if not remade:
            return
        with self._lock:
            self._identities |= remade
        self.taken_over(dict(self._identities))

    def begin(self, places: list[Place]) -> dict[Place, int]:
        """Return where partitions begin; what was asked once is not asked again."""
        with self._lock:
            unknown = [place for place in places if place not in self._begins]
            if unknown:
                self._begins |= self.cluster.begins(unknown, self._patience)
            return {place: self._begins.get(place, 0) for place in places}

    def forget(self) -> None:
        """Let the client go; what is asked next asks anew."""
        with self._lock:
            self.cluster.close()
            self.monitor.close()
            self._looked = self._checked = 0.0


def behind(
    watch: Watch, known: dict[Place, int], ends: dict[Place, int], starting: dict[Place, int]
) -> int:
    """Return how many messages lie between what is known and the ends."""
    stands = {**{place: at for place, at in starting.items() if at != EARLIEST}, **known}
    begins = watch.begin([place for place in ends if place not in stands])
    stands |= begins
    # One that ends earlier has something to be settled, which a micro-batch does.
    return sum(
        end - stands[place] if end >= stands[place] else 1
        for place, end in ends.items()
        if end != stands[place]
    )
