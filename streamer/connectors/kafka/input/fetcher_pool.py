"""Fetchers of a process: they outlive tasks, so that no task has to connect."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from streamer.connectors.kafka.cluster.connection import Connection
from streamer.connectors.kafka.input.partition_fetcher import FetchSettings, PartitionFetcher

_MAX_IDLE: Final = 8
"""Fetchers that are kept while no task uses them; each has a thread and a connection per broker."""

_Key = tuple[Connection, FetchSettings]


class FetcherPool:
    """Keeps fetchers between tasks; threads may share it."""

    def __init__(self, make: Callable[[Connection, FetchSettings], PartitionFetcher]) -> None:
        """Take what makes one."""
        self._make = make
        self._lock = threading.Lock()
        self._idle: OrderedDict[int, tuple[_Key, PartitionFetcher]] = OrderedDict()

    @contextmanager
    def borrow(self, connection: Connection, settings: FetchSettings) -> Iterator[PartitionFetcher]:
        """Give a fetcher that nobody else uses meanwhile."""
        key = connection, settings
        fetcher = self._take(key) or self._make(connection, settings)
        try:
            yield fetcher
        finally:
            self._keep(key, fetcher)

    def clear(self) -> None:
        """Forget all: a process that was forked must not talk over its parent's connections."""
        self._lock = threading.Lock()
        self._idle.clear()

    def _take(self, key: _Key) -> PartitionFetcher | None:
        with self._lock:
            for number in reversed(self._idle):
                if self._idle[number][0] == key:
                    return self._idle.pop(number)[1]
        return None

    def _keep(self, key: _Key, fetcher: PartitionFetcher) -> None:
        with self._lock:
            self._idle[id(fetcher)] = key, fetcher
            old = [self._idle.popitem(last=False)[1][1] for _ in range(len(self._idle) - _MAX_IDLE)]
        for one in old:
            one.close()


def open_fetcher(connection: Connection, settings: FetchSettings) -> PartitionFetcher:
    """Return a fetcher with connections of its own."""
    # kafka-python takes a quarter of a second to import.
    from streamer.connectors.kafka.cluster.broker_session import BrokerSession

    return PartitionFetcher(BrokerSession(connection), settings)


FETCHERS: Final = FetcherPool(open_fetcher)
"""Those of this process: they depend on nothing but how a cluster is reached."""

os.register_at_fork(after_in_child=FETCHERS.clear)
