"""A clock that a test sets, and a run of components that records log and counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from streamer.core.execution import Execution

START_NS: Final = 1_700_000_000_000_000_000
"""The time at which a scripted clock begins, unless a test says it: 2023-11-14T22:13:20Z."""


class ScriptedClock:
    """A clock that stands until it is moved.

    >>> clock = ScriptedClock(5)
    >>> clock.advance(2)
    >>> clock.now()
    7
    """

    def __init__(self, now: int = START_NS) -> None:
        """Begin at a time, Unix ns."""
        self._now = now

    def now(self) -> int:
        """Return the time, Unix ns."""
        return self._now

    def advance(self, duration: int) -> None:
        """Move the clock on by so many ns."""
        self._now += max(duration, 0)

    def advance_to(self, time: int) -> None:
        """Move the clock on to a time, Unix ns; it never runs backwards."""
        self._now = max(self._now, time)


class LoggedLine(NamedTuple):
    """A line that a component has logged."""

    level: str
    text: str
    fields: Mapping[str, Any]


class RecordedExecution(Execution):
    """A run of components on a scripted clock: a pause moves the clock, and takes no time.

    Attributes:
        clock: the clock.
        lines: the lines that were logged.
        counts: the counters, by name and labels.
    """

    def __init__(self, clock: ScriptedClock | None = None) -> None:
        """Begin a run."""
        self.clock = clock or ScriptedClock()
        self.lines: list[LoggedLine] = []
        self.counts: Counter[tuple[str, tuple[tuple[str, str], ...]]] = Counter()

        def log(level: str, text: str, fields: Mapping[str, Any]) -> None:
            self.lines.append(LoggedLine(level, text, dict(fields)))

        def count(name: str, by: int = 1, **labels: str) -> None:
            self.counts[name, tuple(sorted(labels.items()))] += by

        super().__init__(
            self.clock.now, log, count, elapsed=self.clock.now, sleep=self.clock.advance
        )

    def count_of(self, name: str) -> int:
        """Return a counter's value, whatever its labels are."""
        return sum(value for (of, _), value in self.counts.items() if of == name)
