"""Pauses between tries that grow, as Benthos's components have them, and the fields that set them.

A pause is drawn at random from half of its length to one and a half times that, so that many who
wait for one server do not come back at once.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from streamer.core.durations import MILLISECOND, SECOND
from streamer.sdk.spec import Field, ParsedFields, duration_field

MAX_RETRIES: Final = "max_retries"
BACKOFF: Final = "backoff"
INITIAL_INTERVAL: Final = "initial_interval"
MAX_INTERVAL: Final = "max_interval"
MAX_ELAPSED_TIME: Final = "max_elapsed_time"


def backoff_fields(
    retries: int, initial: str, max_interval: str, elapsed: str
) -> tuple[Field, ...]:
    """Return the fields `max_retries` and `backoff`, with these defaults."""
    return (
        Field(
            MAX_RETRIES,
            "int",
            "Maximum number of repetitions of a failed attempt; 0 for no limit.",
            default=retries,
            advanced=True,
        ),
        Field(
            BACKOFF,
            "object",
            "Pause between attempts.",
            advanced=True,
            children=pause_fields(initial, max_interval, elapsed, "no such limit"),
        ),
    )


def pause_fields(
    initial: str, max_interval: str, elapsed: str, without_end: str = "ever"
) -> tuple[Field, ...]:
    """Return the fields of pauses that grow, with these defaults.

    Args:
        initial: the first pause.
        max_interval: the longest pause.
        elapsed: how long to go on trying.
        without_end: how long that is with 0s, in words.
    """
    return (
        duration_field(INITIAL_INTERVAL, "The first pause.", default=initial),
        duration_field(MAX_INTERVAL, "The longest pause.", default=max_interval),
        duration_field(
            MAX_ELAPSED_TIME, f"How long to go on trying; 0s for {without_end}.", default=elapsed
        ),
    )


@dataclass(frozen=True, slots=True)
class Backoff:
    """The pauses between tries.

    Attributes:
        initial: the first pause, nanoseconds.
        max_interval: the longest pause, nanoseconds.
        elapsed: how long to go on trying, nanoseconds; 0 for ever.
        retries: how many tries there are beyond the first; 0 for any number.
        growth: by what a pause is longer than the one before.
    """

    initial: int
    max_interval: int
    elapsed: int = 0
    retries: int = 0
    growth: float = 1.5

    def pauses(self, now: Callable[[], int] = time.perf_counter_ns) -> Iterator[int]:
        """Return the pauses before each further try, nanoseconds; at the end there is none.

        Args:
            now: a clock that never runs backwards, nanoseconds (`Execution.elapsed`); asked at the
                beginning and each time.
        """
        began = now()
        pause, tries = self.initial, 0
        while self.retries <= 0 or tries < self.retries:
            drawn = round(pause * random.uniform(0.5, 1.5))
            if self.elapsed > 0 and now() - began + drawn > self.elapsed:
                return
            yield drawn
            pause = min(round(pause * self.growth), self.max_interval)
            tries += 1


REPLAY: Final = Backoff(initial=MILLISECOND, max_interval=SECOND)
"""How an input gives messages again that an output has not taken."""

RESEND: Final = Backoff(initial=500 * MILLISECOND, max_interval=3 * SECOND)
"""How an output that is to be retried for ever is retried."""

RECONNECT: Final = Backoff(initial=500 * MILLISECOND, max_interval=SECOND)
"""How a lost connection is sought again."""

REDELIVER: Final = Backoff(initial=250 * MILLISECOND, max_interval=10 * SECOND)
"""How the driver sends again what no task could deliver: each try takes a task slot for a while."""


def read_backoff(parsed: ParsedFields) -> Backoff:
    """Make what the fields of `backoff_fields` describe."""
    return read_pauses(parsed[BACKOFF], parsed[MAX_RETRIES])


def read_pauses(parsed: ParsedFields, retries: int = 0) -> Backoff:
    """Make what the fields of `pause_fields` describe, with so many tries beyond the first."""
    return Backoff(
        initial=parsed[INITIAL_INTERVAL] or 0,
        max_interval=parsed[MAX_INTERVAL] or 0,
        elapsed=parsed[MAX_ELAPSED_TIME] or 0,
        retries=retries,
    )
