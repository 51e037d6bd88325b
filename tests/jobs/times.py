"""Events out of order, and times as text."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

BASE_S = 1_767_225_600
"""2026-01-01T00:00:00Z."""


def format_time(seconds: float) -> str:
    """Return a Unix time as RFC 3339, with milliseconds where it has some."""
    at = datetime.fromtimestamp(seconds, UTC)
    return at.isoformat(timespec="milliseconds" if at.microsecond else "seconds").replace(
        "+00:00", "Z"
    )


def shuffle_within(
    rng: random.Random, events: Iterable[tuple[float, Any]], disorder_s: float
) -> list[Any]:
    """Return events in an order of arrival in which none is late by more than `disorder_s`.

    Args:
        rng: the source of chance.
        events: each with its event time, seconds.
        disorder_s: the longest way of an event, seconds.
    """
    delayed = [(at + rng.random() * disorder_s, n, one) for n, (at, one) in enumerate(events)]
    return [one for _, _, one in sorted(delayed)]


def parse_time(text: str) -> float:
    """Return the Unix time of what `format_time` gives, seconds."""
    return datetime.fromisoformat(text).timestamp()
