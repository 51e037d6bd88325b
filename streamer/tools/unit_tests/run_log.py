"""Log of a test's run: why messages failed or went away, for a test that got too few."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from streamer.core.log_format import LogLine
from streamer.tools.unit_tests.failure import Line, label_lines

_SHOWN_LEVELS: Final = ("ERROR", "WARN")
_MORE_LEVELS: Final = ("INFO", "DEBUG", "TRACE", "ALL")
_MAX_LINES: Final = 5


class Throughput(NamedTuple):
    """Messages that went into a processor and came out of it.

    Attributes:
        path: where it stands (`root.pipeline.processors.0`).
        received: how many went in.
        sent: how many came out.
    """

    path: str
    received: int
    sent: int


class RunLog:
    """Keeps warnings and errors of a run, and passes all lines on."""

    def __init__(self, log: LogLine) -> None:
        """Take what gets the lines besides."""
        self._log = log
        self._counts: Counter[tuple[str, str, str]] = Counter()

    @staticmethod
    def plan_level(level: str) -> str:
        """Return the level down to which a stream must log, where a test wants to see `level`."""
        return level if level in _MORE_LEVELS else "WARN"

    def add(self, level: str, text: str, fields: Mapping[str, Any]) -> None:
        """Take a line; see `LogLine`."""
        if level in _SHOWN_LEVELS:
            self._counts[level, str(fields.get("path", "")), text] += 1
        self._log(level, text, fields)

    def describe(self, processors: Iterable[Throughput]) -> list[Line]:
        """Return lines that say why there may be too few messages.

        Args:
            processors: those of the run; the ones from which nothing came are named.
        """
        lines = []
        for one in processors:
            if one.received and not one.sent:
                text = f"{one.path.removeprefix('root.')} got {one.received:,} and gave none"
                lines.append(Line(f"  {text}"))
        for (level, path, text), count in [*self._counts.items()][:_MAX_LINES]:
            times = f" ({count:,} times)" if count > 1 else ""
            place = f"{path.removeprefix('root.')}: " if path else ""
            lines += label_lines(f"  {level} ", f"{place}{text}{times}", "received")
        if len(self._counts) > _MAX_LINES:
            lines.append(Line(f"  … and {len(self._counts) - _MAX_LINES:,} more lines of the log"))
        return lines
