"""Adding to a cache in memory: as one step, or without a lock between looking and storing."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from contextlib import nullcontext
from typing import Final

from streamer.core.execution import Execution
from streamer.sdk.cache import KeyAlreadyExistsError
from streamer.sdk.spec import Field

OPTIMISTIC: Final = "optimistic"
OPTIMISTIC_FIELD: Final = Field(
    OPTIMISTIC,
    "bool",
    "Let `add` look and store without a lock between: faster, and two at once may both succeed.",
    default=False,
    advanced=True,
)


class InMemoryCache(ABC):
    """A cache in memory whose values are not safe for threads: single steps are always locked."""

    def __init__(self, *, optimistic: bool) -> None:
        """Make the locks; `optimistic` as the field."""
        self._lock = threading.Lock()
        self._add_lock = nullcontext() if optimistic else threading.Lock()

    def add(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Store a value under a key that has none."""
        with self._add_lock:
            with self._lock:
                exists = self._has_key(key, ex)
            if exists:
                raise KeyAlreadyExistsError
            self.set(key, value, None, ex)

    @abstractmethod
    def set(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Store a value."""

    @abstractmethod
    def _has_key(self, key: str, ex: Execution) -> bool:
        """Return whether a key has a value; called with the lock held."""
