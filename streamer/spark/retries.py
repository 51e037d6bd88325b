"""How often a micro-batch is tried again, and after which pauses."""

from __future__ import annotations

from dataclasses import dataclass

RETRIES = 5
LONGEST_PAUSE = 30.0
"""Seconds."""


@dataclass(slots=True)
class Retries:
    """Counts the failures of the micro-batch in hand.

    Attributes:
        failures: of that micro-batch.
        batch: the micro-batch that was delivered before it.
    """

    failures: int = 0
    batch: int = -2

    def of(self, batch: int) -> int:
        """Return how often the micro-batch after one that was delivered has failed."""
        return self.failures if batch == self.batch else 0

    def failed(self, batch: int, excused: bool) -> None:
        """Count a failure.

        Args:
            batch: the micro-batch that was delivered before.
            excused: whether it says nothing about the micro-batch.
        """
        if batch != self.batch:
            self.failures, self.batch = 0, batch
        self.failures += not excused

    @property
    def exhausted(self) -> bool:
        """Whether that was often enough."""
        return self.failures > RETRIES

    @property
    def pause(self) -> float:
        """Seconds until the next try: longer each time."""
        return min(2.0 ** max(self.failures - 1, 0), LONGEST_PAUSE)
