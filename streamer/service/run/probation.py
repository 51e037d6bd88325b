"""Whether a revision that was just deployed has failed, so that the former one comes back.

A revision fails when, within the time of its probation,

- a micro-batch of it has failed `MAX_FAILURES` times one after the other, or the stream has given
up;
- or outputs have rejected messages of as many of its micro-batches, and have taken none;
- or that time is over, something waits to be delivered or has failed, and it has not delivered one
  micro-batch since it was deployed: an output that takes nothing, for example.

Messages on which processors fail are no such failure: they are marked and go on, as always. Nor are
some that are rejected beside others that are taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MAX_FAILURES: Final = 2
"""Failures of one micro-batch, one after the other, after which a revision has failed."""

PROBATION_S: Final = 120.0
"""Seconds for which a revision is looked at, when nothing else is said."""


@dataclass(frozen=True, slots=True)
class RevisionHealth:
    """Health of a revision that runs.

    Attributes:
        failures: how often the micro-batch in hand has failed.
        delivered: micro-batches delivered since it was deployed.
        problem: what it waits for, or why a micro-batch failed; empty when all is well.
        rejected: micro-batches of which messages were rejected, while outputs took none.
        reason: why they were.
    """

    failures: int
    delivered: int
    problem: str
    rejected: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Probation:
    """The first minutes of a revision.

    Attributes:
        until: when they are over, by a clock that never runs backwards, s.
    """

    until: float

    def has_ended(self, now: float) -> bool:
        """Whether the probation has ended."""
        return now >= self.until

    def failure_reason(self, health: RevisionHealth, now: float) -> str:
        """Return why the revision has failed; empty when it has not."""
        if health.failures >= MAX_FAILURES:
            return f"a micro-batch has failed {health.failures} times: {health.problem}"
        if health.rejected >= MAX_FAILURES:
            return f"all messages are rejected: {health.reason}"
        if self.has_ended(now) and not health.delivered and health.problem:
            return f"nothing was delivered: {health.problem}"
        return ""
