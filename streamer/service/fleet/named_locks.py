"""A lock for every name that somebody works with, and none for the others."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class NamedLocks:
    """Locks by name."""

    def __init__(self) -> None:
        """Begin with none."""
        self._lock = threading.Lock()
        self._locks_by_name: dict[str, tuple[threading.RLock, int]] = {}

    @contextmanager
    def hold(self, name: str) -> Iterator[None]:
        """Hold the lock of a name."""
        with self._lock:
            lock, users = self._locks_by_name.get(name, (threading.RLock(), 0))
            self._locks_by_name[name] = (lock, users + 1)
        try:
            with lock:
                yield
        finally:
            with self._lock:
                lock, users = self._locks_by_name.pop(name)
                if users > 1:
                    self._locks_by_name[name] = (lock, users - 1)
