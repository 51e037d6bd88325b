"""What outlives a task: caches, rate limits, connections, one of each for a stream and a process.

A worker builds a stream's components anew for every task, and a task is forgotten when it ends. A
cache in memory, a pool of connections or a limit of requests must not be: they last as long as the
worker process, in the store of their stream, and nothing else does. A component asks for one with
`context.lasting(key, make)`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable
from typing import Any, Final, TypeVar

T = TypeVar("T")


class Lasting:
    """The objects of one stream that outlive tasks. Threads may share it."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._made: dict[Hashable, Any] = {}
        self._lock = threading.RLock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what is kept under a key; it is made the first time.

        Args:
            key: tells it from all others of the stream.
            make: called at most once for a key; when it raises, nothing is kept.
        """
        with self._lock:
            if key not in self._made:
                self._made[key] = make()
            found: T = self._made[key]
            return found


_STORES: Final[dict[str, Lasting]] = {}
_LOCK: Final = threading.Lock()


def lasting_of(run: str) -> Lasting:
    """Return the store of a stream in this process.

    Args:
        run: names one run of one stream (`Plan.run`); empty for what lasts no longer than the
            object that asks, which gets a store of its own.
    """
    if not run:
        return Lasting()
    with _LOCK:
        return _STORES.setdefault(run, Lasting())


# A process that is forked must not talk over its parent's connections.
os.register_at_fork(after_in_child=_STORES.clear)
