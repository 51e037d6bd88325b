"""Log lines that repeat: one of each kind, with the number of its like, in a task and over time.

Data decides how often a component fails. A line for each message would hide all others, and fill
the disk. Two lines are of one kind when they differ in numbers and in quoted values only.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from streamer.core.log_format import LogLine

REPEATED: Final = "repeated"
"""Field of a line: how many more of its kind there were in the task."""

LEFT_OUT: Final = "left_out"
"""Field of a line: how many of its kind were left out since the one before."""

INTERVAL_S: Final = 60.0
"""Seconds in which a stream writes one line of a kind."""

_LEVELS: Final = frozenset({"ERROR", "WARN"})
_VARYING: Final = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'|\d+")
_MAX_TEXTS: Final = 200
_MAX_KINDS: Final = 1_000
_MAX_KIND_CHARACTERS: Final = 300

LineKind = tuple[str, str, str]
"""Level, config path of the component, and the text without what varies."""


def line_kind(level: str, text: str, fields: Mapping[str, Any]) -> LineKind:
    """Return the kind of a line."""
    head = text[: _MAX_KIND_CHARACTERS * 2]
    return level, str(fields.get("path", "")), _VARYING.sub("#", head)[:_MAX_KIND_CHARACTERS]


def may_repeat(level: str, fields: Mapping[str, Any]) -> bool:
    """Return whether lines of a kind are counted.

    Those are not that the config asks for itself, nor those about one message that ends a worker:
    these have its size.
    """
    return level in _LEVELS and "custom_source" not in fields and "size" not in fields


class RepeatCounter:
    """Counts the lines of each kind in one task."""

    def __init__(self) -> None:
        """Begin with none."""
        self._kinds: dict[tuple[str, str, str], LineKind] = {}
        self.counts: dict[LineKind, int] = {}

    def count(self, level: str, text: str, fields: Mapping[str, Any]) -> bool:
        """Count a line; return whether it is the first of its kind."""
        # The same text comes a thousand times: its kind is looked for once.
        key = level, text, fields.get("path", "")
        kind = self._kinds.get(key)
        if kind is None:
            kind = line_kind(level, text, fields)
            if len(self._kinds) < _MAX_TEXTS:
                self._kinds[key] = kind
        number = self.counts.get(kind, 0)
        self.counts[kind] = number + 1
        return not number

    def repeats(self, level: str, text: str, fields: Mapping[str, Any]) -> int:
        """Return how many lines followed the first of a kind."""
        return self.counts.get(line_kind(level, text, fields), 1) - 1


class RepeatedLines:
    """Writes the lines of a stream's tasks: of each kind one in a minute, with the others' number.

    The number of those that were left out comes with the next line of the kind, or with the last
    one again, once a minute is over.
    """

    def __init__(self, log: LogLine, clock: Callable[[], float] = time.monotonic) -> None:
        """Take what writes a line; `clock` gives seconds."""
        self._log = log
        self._clock = clock
        self._kinds: dict[LineKind, _Kind] = {}

    def write(self, level: str, text: str, fields: Mapping[str, Any]) -> None:
        """Write a line, unless one of its kind was written within the minute."""
        if not may_repeat(level, fields):
            self._log(level, text, fields)
            return
        now, name = self._clock(), line_kind(level, text, fields)
        kind = self._kinds.get(name)
        if kind is None:
            if len(self._kinds) >= _MAX_KINDS:
                self._kinds.clear()
            self._kinds[name] = _Kind(now)
            self._log(level, text, fields)
        elif now - kind.written_at >= INTERVAL_S:
            self._log(level, text, kind.add_left_out(fields))
            kind.written_at, kind.left_out, kind.line = now, 0, None
        else:
            kind.left_out += 1 + int(fields.get(REPEATED, 0))
            kind.line = level, text, fields

    def flush(self) -> None:
        """Write what was left out of kinds of which there was no line for a minute."""
        now = self._clock()
        for kind in self._kinds.values():
            if kind.line is None or now - kind.written_at < INTERVAL_S:
                continue
            level, text, fields = kind.line
            kind.left_out -= 1 + int(fields.get(REPEATED, 0))
            self._log(level, text, kind.add_left_out(fields))
            kind.written_at, kind.left_out, kind.line = now, 0, None


class _Kind:
    """Lines of one kind: when one was written, and what came since."""

    __slots__ = ("left_out", "line", "written_at")

    def __init__(self, now: float) -> None:
        self.written_at = now
        self.left_out = 0
        self.line: tuple[str, str, Mapping[str, Any]] | None = None

    def add_left_out(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**fields, LEFT_OUT: self.left_out} if self.left_out > 0 else fields
