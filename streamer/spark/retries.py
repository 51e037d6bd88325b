"""How often a micro-batch is tried again, and after which pauses."""

from __future__ import annotations

from dataclasses import dataclass

RETRIES = 5
FEW = 2
"""Where trying again is of little use: what could not be read may have been a hiccup of a disk."""

LONGEST_PAUSE = 30.0
"""Seconds."""


@dataclass(slots=True)
class Retries:
    """Counts the failures of the micro-batch in hand.

    Attributes:
        failures: of that micro-batch.
        batch: the micro-batch that was delivered before it.
        limit: so often it is tried again.
    """

    failures: int = 0
    batch: int = -2
    limit: int = RETRIES

    def of(self, batch: int) -> int:
        """Return how often the micro-batch after one that was delivered has failed."""
        return self.failures if batch == self.batch else 0

    def failed(self, batch: int, excused: bool, lasts: bool = False) -> None:
        """Count a failure.

        Args:
            batch: the micro-batch that was delivered before.
            excused: whether it says nothing about the micro-batch.
            lasts: whether the next try is likely to fail as well.
        """
        if batch != self.batch:
            self.failures, self.batch = 0, batch
        self.failures += not excused
        self.limit = FEW if lasts else RETRIES

    @property
    def exhausted(self) -> bool:
        """Whether that was often enough."""
        return self.failures > self.limit

    @property
    def pause(self) -> float:
        """Seconds until the next try: longer each time."""
        return min(2.0 ** max(self.failures - 1, 0), LONGEST_PAUSE)
