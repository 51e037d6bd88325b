"""Counts how often a micro-batch is tried again, and the pauses between."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

MAX_RETRIES = 5
MAX_PERMANENT_ERROR_RETRIES = 2
"""Where trying again is of little use: what could not be read may have been a hiccup of a disk."""

MAX_PAUSE_S = 30.0
"""Seconds."""

MAX_OVERLOAD_S = 900.0
"""So long the failures of a micro-batch that only the machine's load has made are not counted: it
passes, as at the start of many streams; a worker that never starts is to be seen all the same."""


@dataclass(slots=True)
class RetryCounter:
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
    limit: int = MAX_RETRIES
    overloads: int = 0
    overloaded_since: float = 0.0
    clock: Callable[[], float] = time.monotonic

    def failures_after(self, batch: int) -> int:
        """Return how often the micro-batch after one that was delivered has failed."""
        return self.failures if batch == self.batch else 0

    def record_failure(
        self, batch: int, is_excused: bool, is_permanent: bool = False, is_overloaded: bool = False
    ) -> None:
        """Count a failure.

        Args:
            batch: the micro-batch that was delivered before.
            is_excused: whether it says nothing about the micro-batch.
            is_permanent: whether the next try is likely to fail as well.
            is_overloaded: whether the machine has more to do than it can, which is excused for
                `MAX_OVERLOAD_S`.
        """
        if batch != self.batch:
            self.failures, self.batch, self.overloads = 0, batch, 0
        if is_overloaded:
            now = self.clock()
            self.overloaded_since = self.overloaded_since if self.overloads else now
            self.overloads += 1
            is_excused = is_excused or now - self.overloaded_since < MAX_OVERLOAD_S
        self.failures += not is_excused
        self.limit = MAX_PERMANENT_ERROR_RETRIES if is_permanent else MAX_RETRIES

    @property
    def is_exhausted(self) -> bool:
        """Whether that was often enough."""
        return self.failures > self.limit

    @property
    def pause(self) -> float:
        """Seconds until the next try: longer each time."""
        number = max(self.failures, self.overloads, 1)
        return min(2.0 ** min(number - 1, 10), MAX_PAUSE_S)
