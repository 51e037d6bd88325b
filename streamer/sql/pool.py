"""A pool of connections with the bounds of Go's `database/sql`, which configs set."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from streamer.sql.drivers import Connection

_SECOND: Final = 10**9


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a pool keeps.

    Attributes:
        idle: connections that are kept while nobody uses them; 0 or less for none.
        open: connections at once; 0 or less for no bound.
        idle_time: ns after which a connection that nobody uses is closed; 0 or less for never.
        life_time: ns after which a connection is closed; 0 or less for never.
    """

    idle: int = 2
    open: int = 0
    idle_time: int = 0
    life_time: int = 0


@dataclass(slots=True)
class _Kept:
    connection: Connection
    made: int
    used: int


class Pool:
    """Connections, lent to one thread at a time."""

    def __init__(
        self,
        connect: Callable[[], Connection],
        bounds: Bounds,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Begin without a connection."""
        self._connect = connect
        self._bounds = bounds
        self._clock = clock
        self._idle: list[_Kept] = []
        self._lock = threading.Lock()
        self._places = threading.Semaphore(bounds.open) if bounds.open > 0 else None

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Lend a connection, an idle one if there is any; wait while as many as may be are lent."""
        if self._places is not None:
            self._places.acquire()
        try:
            kept = self._taken()
            try:
                yield kept.connection
            finally:
                self._back(kept)
        finally:
            if self._places is not None:
                self._places.release()

    def close(self) -> None:
        """Close what nobody uses."""
        with self._lock:
            idle, self._idle = self._idle, []
        for kept in idle:
            kept.connection.close()

    def _taken(self) -> _Kept:
        while True:
            with self._lock:
                kept = self._idle.pop() if self._idle else None
            if kept is None:
                now = self._clock()
                return _Kept(self._connect(), now, now)
            if self._usable(kept):
                return kept
            kept.connection.close()

    def _back(self, kept: _Kept) -> None:
        kept.used = self._clock()
        most = self._bounds.idle
        if 0 < self._bounds.open < most:
            most = self._bounds.open
        with self._lock:
            if self._usable(kept) and len(self._idle) < most:
                self._idle.append(kept)
                return
        kept.connection.close()

    def _usable(self, kept: _Kept) -> bool:
        now, bounds = self._clock(), self._bounds
        if 0 < bounds.idle_time <= now - kept.used or 0 < bounds.life_time <= now - kept.made:
            return False
        return kept.connection.alive()
