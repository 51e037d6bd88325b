"""What is asked of the windows' benchmark."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Of all kinds.

    Attributes:
        events: of the traffic lights; other workloads have as many, or fewer.
        pace: events per second of event time, for the comparison with system_window.
        master: Spark's.
        held: events in the window whose release is measured.
        alone: leave the peers out.
    """

    events: int
    pace: float
    master: str
    held: int
    alone: bool = False
