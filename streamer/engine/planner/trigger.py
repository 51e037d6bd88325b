"""Decides when a micro-batch starts: enough data, data that has waited, or a window due.

Spark asks several times a second whether there is something to do, which costs next to nothing
(0.015 of a core); a micro-batch costs half a CPU second however small it is. So data waits a
little, and windows close on time all the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamer.connectors.kafka.input.opened_input import Offsets
from streamer.engine.planner.offset_log import is_before
from streamer.engine.planner.planner_channel import PlannerChannel
from streamer.window import MicroBatchInfo
from streamer.window.settings.back_pressure import BackPressure
from streamer.window.settings.window import Window

_POLL_INTERVAL_S = 0.25

FULL_BATCH_MESSAGES = 50_000
"""Messages that are worth a micro-batch at once."""


def _is_different(seconds: float, before: float) -> bool:
    return abs(seconds - before) > before / 5


class PollSettings:
    """Publishes how often a source polls, and how long data waits: on changes and at each start."""

    def __init__(self, signals: PlannerChannel) -> None:
        """Begin without any rest."""
        self._signals = signals
        self._seconds = self._min_wait = 0.0

    def update(self, seconds: float, min_wait: float) -> None:
        """Publish both intervals (seconds) to the planner, if one changed by more than 20 %.

        A change by less than a fifth is not worth a file: where streams come and go, each of a
        hundred would write one every second.
        """
        if _is_different(seconds, self._seconds):
            self._seconds = seconds
            self._signals.set_poll_interval(seconds)
        if _is_different(min_wait, self._min_wait):
            self._min_wait = min_wait
            self._signals.set_min_wait(min_wait)

    def publish(self) -> None:
        """Publish both intervals again: at a start, hints are cleared."""
        self._signals.set_poll_interval(self._seconds)
        self._signals.set_min_wait(self._min_wait)


class IdlePause:
    """The pause between two looks that find nothing: Spark may look more often than it is worth."""

    def __init__(
        self,
        signals: PlannerChannel,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """Take the planner's channel, a clock that never runs backwards, and the wall clock."""
        self._signals = signals
        self._now = now
        self._sleep = sleep
        self._clock = clock
        self._since: float | None = None

    def note_poll(self, has_data: bool) -> None:
        """Note a look, and whether it found something to do: then the next one comes at once."""
        self._since = None if has_data else self._now()

    def wait(self) -> None:
        """Rest; a stop and a window that is due end it within `_NAP` seconds."""
        if self._since is None:
            return
        until = self._since + self._signals.poll_interval()
        while (left := until - self._now()) > 0 and not self._signals.is_stopping():
            due = self._signals.due()
            if due is not None and self._clock() >= due:
                return
            self._sleep(min(left, _POLL_INTERVAL_S))


@dataclass
class TriggerPolicy:
    """Decides for each look at the source whether a micro-batch starts.

    Attributes:
        interval: how long data may wait, ns.
        waiting_since: when data was first seen that no micro-batch has taken, ns.
    """

    interval: int
    waiting_since: int | None = None

    def should_start(self, messages: int, urgent: bool, now: int, min_wait: int = 0) -> bool:
        """Return whether the data that waits is taken now.

        Args:
            messages: about how many messages wait.
            urgent: a micro-batch starts anyway, or the source is behind.
            now: the clock, ns.
            min_wait: how long data may wait at least, ns.
        """
        if messages == 0:
            return False
        if self.waiting_since is None or now < self.waiting_since:
            self.waiting_since = now
        waited = now - self.waiting_since
        if urgent or messages >= FULL_BATCH_MESSAGES or waited >= max(self.interval, min_wait):
            self.waiting_since = None
            return True
        return False


def next_tick(window: Window | None, before: int, due: int | None, now: int) -> int:
    """Return the tick of a micro-batch: how many due times have passed, when one is due now.

    Args:
        window: the windows' settings; without, there are no ticks.
        before: the tick of the previous micro-batch.
        due: when the next open window is due, ns; None when none is open.
        now: the clock, ns.
    """
    if window is None or due is None or now < due:
        return before
    return max(before, window.due_count(now))


def batch_time(offset: Mapping[str, Any]) -> int:
    """Return a micro-batch's time, ns: when our source was looked at, where its part of it ends."""
    # A micro-batch that a former version planned may come again.
    time: int = offset["time"] if "time" in offset else offset["floor"]
    return time


def make_batch_info(offset: Mapping[str, Any], ends: Sequence[Offsets] = ()) -> MicroBatchInfo:
    """Return the facts about a micro-batch for shards.

    Args:
        offset: where our source's part of it ends; `backlog_ends` is where Kafka
            ended at the start, until all before it is planned.
        ends: where it ends in Kafka, for each of the inputs.
    """
    lag, backlog = offset.get("lag", False), is_before(ends, offset.get("backlog_ends", ()))
    fields = offset.get("pressure")
    pressure = None if fields is None else BackPressure.from_fields(fields)
    start, ended = offset["start"], offset["ended"]
    stood = offset.get("stood", 0)
    return MicroBatchInfo(batch_time(offset), start, backlog, ended, lag, pressure, stood)
