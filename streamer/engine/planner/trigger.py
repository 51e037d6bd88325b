"""The ticks of a stream's windows, and the time of its micro-batches.

Where the machine's clock is set back, the stream's time goes on at half the pace until the clock
has caught up: an hour takes two. At the full pace it never would, and at none windows of messages
without times of their own would not close for an hour. Where the clock is set forward, so is the
stream's time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from streamer.core.durations import MILLISECOND, SECOND
from streamer.engine.planner.planner_channels import PlannerChannel
from streamer.engine.report.batch_work import BatchWork
from streamer.window.settings.back_pressure import BackPressure, Interval
from streamer.window.settings.window import Window

_CATCH_UP_DIVISOR: Final = 2
"""A stream that is ahead of the machine's clock goes on at this part of the pace."""


_MIN_CHANGE: Final = 20 * MILLISECOND
_MAX_EVENT_LAG: Final = 3600 * SECOND
"""What is read again from years ago has no time at which its windows are expected to close."""


class PaceHints:
    """Publishes the facts by which the planner paces a stream: on changes and at each start.

    A change by less than a fifth is not worth a file: where streams come and go, each of a hundred
    would write one every second.
    """

    def __init__(self, signals: PlannerChannel) -> None:
        """Begin without any."""
        self._signals = signals
        self._hints = {"min_interval": 0, "event_lag": 0}

    def update(self, **hints: int) -> None:
        """Publish some of these hints of the driver, ns."""
        for name, ns in hints.items():
            before = self._hints[name]
            if abs(ns - before) > max(before // 5, _MIN_CHANGE) or (ns == 0 and before):
                self._hints[name] = ns
        self.publish()

    def update_lag(
        self, lag: float | None, statuses: Iterable[Mapping[str, Any]], now: int
    ) -> None:
        """Publish how far event times are behind the time of micro-batches.

        Args:
            lag: how far they are behind the clock, s; None where there are none.
            statuses: of the shards, in the newest micro-batch.
            now: the clock, Unix ns; the micro-batch took a while.
        """
        planned_at = max((status["now"] for status in statuses), default=None)
        if lag is not None and planned_at is not None:
            behind = round(lag * SECOND) - (now - planned_at)
            self.update(event_lag=min(max(behind, 0), _MAX_EVENT_LAG))

    def publish(self) -> None:
        """Publish all: at a start, hints are cleared."""
        self._signals.driver.update(**self._hints)


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
