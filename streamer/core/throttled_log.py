"""Log lines whose number others decide: one of each kind in a minute.

It says how many were left out.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from typing import Final

from streamer.core.log_format import LogLine

_INTERVAL_S: Final = 60.0
_MAX_KINDS: Final = 1000


class LineThrottle:
    """Counts the lines of each kind, and says which are to be written. Threads may share it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with none; `clock` gives seconds."""
        self._clock = clock
        self._kinds: dict[Hashable, tuple[float, int]] = {}
        self._lock = threading.Lock()

    def count(self, kind: Hashable) -> int | None:
        """Return how many of a kind were left out since the last line; None to leave it out."""
        now = self._clock()
        with self._lock:
            written, left_out = self._kinds.get(kind, (-_INTERVAL_S, 0))
            if now - written < _INTERVAL_S:
                self._kinds[kind] = written, left_out + 1
                return None
            if len(self._kinds) >= _MAX_KINDS:
                self._kinds.clear()
            self._kinds[kind] = now, 0
            return left_out


class ThrottledLog:
    """Writes lines about what strangers do, who could fill the disk with them."""

    def __init__(self, log: LogLine) -> None:
        """Take what writes a line: of level, text and fields."""
        self._log = log
        self._counter = LineThrottle()

    def __call__(self, level: str, kind: str, detail: object = "") -> None:
        """Write a line, unless one of its kind was written within the minute.

        Args:
            level: its level.
            kind: what it says.
            detail: what it says of this case.
        """
        left_out = self._counter.count(kind)
        if left_out is not None:
            text = f"{kind}: {detail}" if detail else kind
            self._log(level, text, {"left_out": left_out} if left_out else {})
