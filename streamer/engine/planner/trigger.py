"""The trigger: when the planner starts a micro-batch, and the time that it has.

A micro-batch costs half a CPU second however small it is. So data waits a little, and windows close
on time all the same.

Where the machine's clock is set back, the stream's time goes on at half the pace until the clock
has caught up: an hour takes two. At the full pace it never would, and at none windows of messages
without times of their own would not close for an hour. Where the clock is set forward, so is the
stream's time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from streamer.core.durations import SECOND
from streamer.engine.planner.planner_channels import PlannerChannel
from streamer.engine.report.batch_work import BatchWork
from streamer.window.settings.back_pressure import BackPressure, Interval
from streamer.window.settings.window import Window

FULL_BATCH_MESSAGES = 50_000
"""Messages that are worth a micro-batch at once."""

_CATCH_UP_DIVISOR: Final = 2
"""A stream that is ahead of the machine's clock goes on at this part of the pace."""


def _is_different(seconds: float, before: float) -> bool:
    return abs(seconds - before) > before / 5


class WaitSetting:
    """Publishes how long data waits at least: on changes and at each start."""

    def __init__(self, signals: PlannerChannel) -> None:
        """Begin without a wait."""
        self._signals = signals
        self._min_wait = 0.0

    def update(self, min_wait: float) -> None:
        """Publish the wait (seconds) to the planner, if it changed by more than 20 %.

        A change by less than a fifth is not worth a file: where streams come and go, each of a
        hundred would write one every second.
        """
        if _is_different(min_wait, self._min_wait):
            self._min_wait = min_wait
        self.publish()

    def publish(self) -> None:
        """Publish the wait: at a start, hints are cleared."""
        self._signals.driver.update(min_wait=self._min_wait)


@dataclass
class TriggerPolicy:
    """Decides for each look at the source whether a micro-batch starts.

    Attributes:
        interval: how long data may wait, ns.
        waiting_since: when data was first seen that no micro-batch has taken, ns.
    """

    interval: int
    waiting_since: int | None = None

    def starts_at(self, min_wait: float = 0.0) -> int | None:
        """Return when the data that waits is taken, ns; None when none waits.

        Args:
            min_wait: how long data may wait at least, s.
        """
        if self.waiting_since is None:
            return None
        return self.waiting_since + max(self.interval, round(min_wait * SECOND))

    def should_start(self, messages: int, urgent: bool, now: int, min_wait: float = 0.0) -> bool:
        """Return whether the data that waits is taken now.

        Args:
            messages: about how many messages wait.
            urgent: a micro-batch starts anyway, or the source is behind.
            now: the clock, ns.
            min_wait: how long data may wait at least, s.
        """
        if messages == 0:
            return False
        if self.waiting_since is None or now < self.waiting_since:
            self.waiting_since = now
        starts_at = self.starts_at(min_wait)
        is_due = starts_at is not None and now >= starts_at
        if urgent or messages >= FULL_BATCH_MESSAGES or is_due:
            self.waiting_since = None
            return True
        return False


def next_tick(windows: Sequence[Window], before: int, due: int | None, now: int) -> int:
    """Return the tick of a micro-batch: how many due times have passed, when one is due now.

    Args:
        windows: the settings of the windows of each buffer; without, there are no ticks.
        before: the tick of the previous micro-batch.
        due: when the next open window is due, ns; None when none is open.
        now: the clock, ns.
    """
    if not windows or due is None or now < due:
        return before
    return max(before, sum(window.due_count(now) for window in windows))


class BatchClock:
    """The clock of batch times, in the process that plans micro-batches."""

    def __init__(
        self,
        wall: Callable[[], int] = time.time_ns,
        steady: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Take the machine's clock, and one that never runs backwards, ns.

        The latter must be the same one in all processes of the machine, as Linux's is.
        """
        self._wall = wall
        self._steady = steady
        self._time: int | None = None
        self._at = 0

    def continue_from(self, time: int) -> None:
        """Go on from the time of the newest micro-batch, which may be ahead of the clock, ns."""
        if self._time is None:
            self._at = self._steady()
        if self._time is None or self._time < time:
            self._time = time

    def now(self) -> int:
        """Return the time, ns."""
        at, now = self._steady(), self._wall()
        if self._time is not None:
            now = max(now, self._time + (at - self._at) // _CATCH_UP_DIVISOR)
        self._time, self._at = now, at
        return now

    def steady(self) -> int:
        """Return the time of the clock that never runs backwards, ns."""
        return self._steady()


def standstill_between(before: tuple[int, int], now: int, steady: int) -> int:
    """Return by how much time went on by itself: the clock was set, or the machine was suspended.

    Args:
        before: a micro-batch's time, and what the steady clock said then, ns.
        now: the time of the one that follows, ns.
        steady: what the steady clock says then, ns.

    Returns:
        ns; 0 for what is below a second.
    """
    began, then = before
    standstill = (now - began) - (steady - then)
    return standstill if standstill >= SECOND else 0


def measure_pressure(before: tuple[int, int], now: int, work: BatchWork) -> BackPressure:
    """Return what a micro-batch took of the stream's own time, by the time of micro-batches.

    Its tasks count as if they had begun at once: what they waited for is no back pressure.

    Args:
        before: the micro-batch's time, and what the steady clock said then, ns.
        now: the time of the micro-batch that follows, ns.
        work: how long it was at work, and when its delivery began.
    """
    began, then = before
    tasks: Interval = (began, min(began + work.processors + work.sending, now))
    writes = max(began + work.began - then, tasks[1])
    busy = [tasks, (min(writes, now), min(writes + work.delivery, now))]
    outputs = work.sending + work.delivery
    return BackPressure(tuple(one for one in busy if one[0] < one[1]), work.processors, outputs)
