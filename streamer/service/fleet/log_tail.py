"""The newest lines of a stream's log, for those who ask over HTTP."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from streamer.core.timestamps import format_rfc3339

MAX_LINES: Final = 1000
"""Lines of a stream that are kept."""

MAX_CHARACTERS: Final = 16 << 20
"""Characters that they may have, all together: a line may have any number."""


_TRUNCATED_CHARACTERS: Final = 10_000


class LoggedLine(NamedTuple):
    """A line: its number, from 1, and when, how grave and what it was."""

    number: int
    time: int
    level: str
    text: str
    fields: Mapping[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return the line for JSON."""
        return {
            "number": self.number,
            "time": format_rfc3339(self.time),
            "level": self.level,
            "msg": self.text,
            "fields": dict(self.fields),
        }


class LogTail:
    """The newest lines. Threads may share it."""

    def __init__(self) -> None:
        """Begin with none."""
        self._lock = threading.Lock()
        self._lines: deque[LoggedLine] = deque(maxlen=MAX_LINES)
        self._number = 0
        self._sizes: deque[int] = deque(maxlen=MAX_LINES)
        self._size = 0

    def add(self, time: int, level: str, text: str, fields: Mapping[str, Any]) -> None:
        """Add a line, at a time in Unix ns."""
        with self._lock:
            self._number += 1
            size = len(text) + sum(len(name) + len(str(one)) for name, one in fields.items())
            if size > MAX_CHARACTERS:
                text, fields, size = (
                    f"{text[:_TRUNCATED_CHARACTERS]}… (too long to be kept)",
                    {},
                    _TRUNCATED_CHARACTERS,
                )
            while self._lines and (
                len(self._lines) == MAX_LINES or self._size + size > MAX_CHARACTERS
            ):
                self._lines.popleft()
                self._size -= self._sizes.popleft()
            self._lines.append(LoggedLine(self._number, time, level, text, fields))
            self._sizes.append(size)
            self._size += size

    def lines_after(self, number: int, limit: int = MAX_LINES) -> list[LoggedLine]:
        """Return the newest lines of those with a higher number, at most so many."""
        with self._lock:
            lines = [line for line in self._lines if line.number > number]
        return lines[-limit:] if limit else []
