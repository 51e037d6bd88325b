"""The newest lines of a stream's log, for those who ask over HTTP."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from streamer.timestamps import format_rfc3339

KEPT: Final = 1000
"""Lines of a stream that are kept."""

LARGEST: Final = 16 << 20
"""Characters that they may have, all together: a line may have any number."""


_BEGINNING: Final = 10_000


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
        self._sizes: deque[int] = deque(maxlen=KEPT)
        self._size = 0

    def add(self, time: int, level: str, text: str, fields: Mapping[str, Any]) -> None:
        """Add a line, at a time in Unix ns."""
        with self._lock:
            self._number += 1
            size = len(text) + sum(len(name) + len(str(one)) for name, one in fields.items())
            if size > LARGEST:
                text, fields, size = f"{text[:_BEGINNING]}… (too long to be kept)", {}, _BEGINNING
            while self._lines and (len(self._lines) == KEPT or self._size + size > LARGEST):
                self._lines.popleft()
                self._size -= self._sizes.popleft()
            self._lines.append(Line(self._number, time, level, text, fields))
            self._sizes.append(size)
            self._size += size

    def after(self, number: int, most: int = KEPT) -> list[Line]:
        """Return the newest lines of those with a higher number, at most so many."""
        with self._lock:
            found = [line for line in self._lines if line.number > number]
        return found[-most:] if most else []
