"""Restarts of a stream that fails: whether, when, and how many streams start at a time."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Final

from streamer.core.errors import StreamAbortedError, is_transient
from streamer.service.fleet.lifecycle import LifecycleState

_MAX_WAIT_PAUSE_S: Final = 30.0
"""Between two tries of a stream that waits for a server or the machine: each takes seconds."""


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """Policy of restarts of a stream that fails.

    Attributes:
        max_restarts: restarts without getting further, after which it stays as it is.
        first_pause_s: the pause before the first one, s; each is twice as long as the one before.
        max_pause_s: the longest pause, s.
    """

    max_restarts: int = 5
    first_pause_s: float = 1.0
    max_pause_s: float = 60.0

    def pause_after(self, failures: int) -> float:
        """Return the pause after so many failures in a row, s."""
        return float(min(self.first_pause_s * 2.0 ** (failures - 1), self.max_pause_s))


@dataclass(frozen=True, slots=True)
class FailureOutcome:
    """Consequence of a failure.

    Attributes:
        state: what the stream comes to.
        reason: why.
        pause_s: the pause before the next try, s; None when there is none.
    """

    state: LifecycleState
    reason: str
    pause_s: float | None = None


@dataclass(slots=True)
class RestartSchedule:
    """Failures of a stream since somebody started it, and what follows from each.

    Attributes:
        policy: how often it is started again.
        failures: failures in a row without getting further, but those that pass by themselves.
        failed_batch: the newest micro-batch as of the last failure; -1 for none.
        waits: failures in a row that pass by themselves.
        waiting_since: when the first of those was, seconds since 1970.
        failing_since: when the first of all failures in a row was, seconds since 1970; None without
            any.
    """

    policy: RestartPolicy
    failures: int = 0
    failed_batch: int = -1
    waits: int = 0
    waiting_since: float = 0.0
    failing_since: float | None = None

    def forget_failures(self) -> None:
        """Begin to count again: another revision runs."""
        self.failures, self.failed_batch, self.failing_since = 0, -1, None

    def record_failure(self, error: BaseException, text: str, batch: int | None) -> FailureOutcome:
        """Count a failure, and decide what becomes of the stream.

        Args:
            error: why it failed.
            text: the same in words.
            batch: the newest micro-batch; None when it did not come as far as to run.
        """
        batch = self.failed_batch if batch is None else batch
        if batch > self.failed_batch:
            self.failures, self.failed_batch, self.waits = 0, batch, 0
            self.failing_since = None
        if self.failing_since is None:
            self.failing_since = time.time()
        if isinstance(error, StreamAbortedError):
            self.failures += 1
            return FailureOutcome(LifecycleState.FAILED, text)
        if is_transient(error, returned=self.waits > 0 and batch < 0):
            return self._wait_and_retry(text)
        self.failures += 1
        self.waits = 0
        if self.failures > self.policy.max_restarts:
            return FailureOutcome(LifecycleState.FAILED, text)
        return FailureOutcome(
            LifecycleState.RESTARTING, text, self.policy.pause_after(self.failures)
        )

    def _wait_and_retry(self, text: str) -> FailureOutcome:
        """Try again for ever, with growing pauses: it is not the config that is at fault."""
        if not self.waits:
            self.waiting_since = time.time()
        self.waits += 1
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.waiting_since))
        pause = min(self.policy.pause_after(self.waits), _MAX_WAIT_PAUSE_S)
        return FailureOutcome(LifecycleState.WAITING, f"{text}; waiting since {since}", pause)


class StartLimiter:
    """Lets few streams at a time through their start, to their first micro-batch.

    That takes new processes and much of the cores; where all begin at once, none gets anywhere.
    """

    def __init__(self, places: int, timeout: float = 60.0) -> None:
        """Take how many pass at a time, and after how many seconds one goes on all the same."""
        self._places = threading.Semaphore(places)
        self._timeout = timeout

    def acquire(self) -> bool:
        """Wait for a place; return whether there was one in time."""
        return self._places.acquire(timeout=self._timeout)

    def release(self) -> None:
        """Free the place."""
        self._places.release()
