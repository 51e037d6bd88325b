"""How often a micro-batch is tried again, and after which pauses."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

RETRIES = 5
FEW = 2
"""Where trying again is of little use: what could not be read may have been a hiccup of a disk."""

LONGEST_PAUSE = 30.0
"""Seconds."""

OVERLOAD_S = 900.0
"""So long the failures of a micro-batch that only the machine's load has made are not counted: it
passes, as at the start of many streams; a worker that never starts is to be seen all the same."""


@dataclass(slots=True)
class Retries:
    """Counts the failures of the micro-batch in hand.

    Attributes:
        failures: of that micro-batch.
        batch: the micro-batch that was delivered before it.
        limit: so often it is tried again.
        overloads: failures of that micro-batch that the machine's load has made.
        overloaded_since: when the first of those was, monotonic s.
        clock: monotonic, s.
    """

    failures: int = 0
    batch: int = -2
    limit: int = RETRIES
    overloads: int = 0
    overloaded_since: float = 0.0
    clock: Callable[[], float] = time.monotonic

    def of(self, batch: int) -> int:
        """Return how often the micro-batch after one that was delivered has failed."""
        return self.failures if batch == self.batch else 0

    def failed(
        self, batch: int, excused: bool, lasts: bool = False, overloaded: bool = False
    ) -> None:
        """Count a failure.

        Args:
            batch: the micro-batch that was delivered before.
            excused: whether it says nothing about the micro-batch.
            lasts: whether the next try is likely to fail as well.
            overloaded: whether the machine has more to do than it can, which is excused for
                `OVERLOAD_S`.
        """
        if batch != self.batch:
            self.failures, self.batch, self.overloads = 0, batch, 0
        if overloaded:
            now = self.clock()
            self.overloaded_since = self.overloaded_since if self.overloads else now
            self.overloads += 1
            excused = excused or now - self.overloaded_since < OVERLOAD_S
        self.failures += not excused
        self.limit = FEW if lasts else RETRIES

    @property
    def exhausted(self) -> bool:
        """Whether that was often enough."""
        return self.failures > self.limit

    @property
    def pause(self) -> float:
        """Seconds until the next try: longer each time."""
        number = max(self.failures, self.overloads, 1)
        return min(2.0 ** min(number - 1, 10), LONGEST_PAUSE)
