"""Samples of messages on the driver: requested from tasks, and kept for a while."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import orjson

MAX_KEPT_PER_COMPONENT: Final = 30
"""Samples of a component that are kept, of those that failed and of the others each."""

MAX_PER_TASK: Final = 2
"""Samples of a component in a task."""

MAX_OPEN_S: Final = 60.0
"""Seconds after which nobody is taken to watch any more, if nobody asks again."""


class MessageSamples:
    """The samples of one stream. Threads may share it."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Begin closed; `now` is a clock that never runs backwards, seconds."""
        self._now = now
        self._until = 0.0
        self._number = 0
        self._lock = threading.Lock()
        self._samples: dict[tuple[str, bool], deque[dict[str, Any]]] = {}

    def open(self, seconds: float) -> bool:
        """Take samples for so long from now on; return whether none were taken before."""
        with self._lock:
            before = self._until
            self._until = max(before, self._now() + min(seconds, MAX_OPEN_S))
            if before > self._now():
                return False
            self._samples.clear()
            return True

    @property
    def per_task(self) -> int:
        """Number of samples of each component that a task takes now."""
        return MAX_PER_TASK if self._now() < self._until else 0

    def record(self, body: bytes, at: int) -> None:
        """Take the samples of a task; see `Task.sample_body`. `at` is the time, ns."""
        components = orjson.loads(body)
        with self._lock:
            for label, path, samples in components:
                for sample in samples:
                    self._number += 1
                    one = {"number": self._number, "at": at, "label": label, "path": path, **sample}
                    kept = self._samples.setdefault(
                        (path, sample["failed"]), deque(maxlen=MAX_KEPT_PER_COMPONENT)
                    )
                    kept.append(one)

    def samples(self, path: str | None = None, after: int = 0) -> list[dict[str, Any]]:
        """Return samples, oldest first.

        Args:
            path: of the component; None for all.
            after: the number of a sample: only those after it.
        """
        with self._lock:
            selected = [
                sample
                for (of, _), kept in self._samples.items()
                if path in (None, of)
                for sample in kept
                if sample["number"] > after
            ]
        return sorted(selected, key=lambda sample: sample["number"])
