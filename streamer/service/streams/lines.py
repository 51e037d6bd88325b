"""The newest lines of a stream's log, for those who ask over HTTP."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from streamer.timestamps import format_rfc3339

KEPT: Final = 1000
"""Lines of a stream that are kept."""


class Line(NamedTuple):
    """A line: its number, from 1, and when, how grave and what it was."""

    number: int
    time: int
    level: str
    text: str
    fields: Mapping[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "number": self.number,
            "time": format_rfc3339(self.time),
            "level": self.level,
            "msg": self.text,
            "fields": dict(self.fields),
        }


class Lines:
    """The newest lines. Threads may share it."""

    def __init__(self) -> None:
        """Begin with none."""
        self._lock = threading.Lock()
        self._lines: deque[Line] = deque(maxlen=KEPT)
        self._number = 0

    def add(self, time: int, level: str, text: str, fields: Mapping[str, Any]) -> None:
        """Add a line, at a time in Unix ns."""
        with self._lock:
            self._number += 1
            self._lines.append(Line(self._number, time, level, text, fields))

    def after(self, number: int, most: int = KEPT) -> list[Line]:
        """Return the newest lines of those with a higher number, at most so many."""
        with self._lock:
            found = [line for line in self._lines if line.number > number]
        return found[-most:] if most else []
