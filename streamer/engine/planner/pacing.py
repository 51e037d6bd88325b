"""Pacing of micro-batches: how long a stream rests between two of them, by what one of them costs.

A micro-batch costs a core for a while, however small it is. A stream that started the next one at
once would use all of that core for ten messages a second; one that always waits is late for
nothing. So a stream rests after each micro-batch, for half as long again as a small one takes it:
two fifths of its time then go into what micro-batches cost beside their messages, whatever the
machine. With few messages it rests up to five times as long as a small micro-batch takes. After
that rest, the first message starts its micro-batch at once.

Windows on a grid of times need no messages before they close. There, data is taken when a window
closes, and not just before it; in between only as often as the interval says.

Everything here is decided by times that are passed in. What is decided is in the offset, so that a
replay does not decide again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import sqrt
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from streamer.core.durations import MILLISECOND, SECOND
from streamer.window.settings.window import Window

if TYPE_CHECKING:
    from streamer.plan import Plan

FULL_BATCH_MESSAGES: Final = 50_000
"""Messages that are worth a micro-batch at once."""

_COSTS: Final = 8
"""Micro-batches by which it is known what one takes."""

_MESSAGE_NS: Final = 4_000.0
"""What a message takes of a micro-batch, as long as these do not say otherwise, ns."""

_MESSAGE_WEIGHT: Final = 2_000.0**2
"""The weight of `_MESSAGE_NS`: as of one micro-batch that has so many messages more than others."""

_BUSY_RATE: Final = 100
"""Messages a second from which on a stream rests by `_MIN_REST_FACTOR`."""

_MIN_REST_FACTOR: Final = 1.5
_MAX_REST_FACTOR: Final = 5.0
"""The rest of a stream with few messages, in times of a small micro-batch."""

_WINDOW_REST_FACTOR: Final = 3.0
"""The rest of a stream with windows, in times of a small micro-batch."""

_CLOSE_MARGIN: Final = 20 * MILLISECOND
"""ns from the end of a window until messages behind it have come, beside their lag."""

_CLOSE_PERIOD: Final = SECOND
"""ns for which the messages that close a window by event time are watched for."""


class PacingSettings(NamedTuple):
    """Settings of the pace of a stream.

    Attributes:
        longest_wait: how long data may wait, ns.
        is_fixed: whether that is the distance of micro-batches as well, since the config sets it.
        collect: how long data is collected at least, ns: a batching period.
        answers_requests: whether somebody waits for an answer, so that nothing rests.
    """

    longest_wait: int
    is_fixed: bool = False
    collect: int = 0
    answers_requests: bool = False

    @classmethod
    def of(cls, plan: Plan, answers_requests: bool) -> Self:
        """Return the settings of a plan's stream."""
        return cls(plan.interval, plan.is_interval_fixed, plan.batching_period, answers_requests)


class PendingData(NamedTuple):
    """The data that waits, at one poll.

    Attributes:
        messages: about how many messages wait.
        steady: the clock that never runs backwards, ns.
        time: the stream's clock, Unix ns.
        min_distance: the shortest time between two micro-batches where streams share cores, ns.
        event_lag: how far the newest event times are behind the clock, ns.
    """

    messages: int
    steady: int
    time: int = 0
    min_distance: int = 0
    event_lag: int = 0


class _Cost(NamedTuple):
    """The cost of a micro-batch.

    Attributes:
        messages: about how many messages it had.
        duration: ns from its start to its end.
    """

    messages: int
    duration: int


def estimate_fixed_cost(costs: Sequence[tuple[int, int]]) -> int:
    """Return what a micro-batch takes beside its messages, ns: the smallest of some.

    One that took long had much to do, or waited for its output, and says nothing. Where all have as
    many messages their part is not known, and is taken for a usual one.

    Args:
        costs: of each, how many messages it had, and how long it took, ns.
    """
    messages = sum(count for count, _ in costs) / len(costs)
    duration = sum(ns for _, ns in costs) / len(costs)
    spread = sum((count - messages) ** 2 for count, _ in costs)
    common = sum((count - messages) * (ns - duration) for count, ns in costs)
    each = (common + _MESSAGE_NS * _MESSAGE_WEIGHT) / (spread + _MESSAGE_WEIGHT)
    shortest = min(ns for _, ns in costs)
    rest = min(ns - max(each, 0.0) * count for count, ns in costs)
    return round(max(rest, shortest / _COSTS))


class PacingPolicy:
    """Decides when the data that waits is taken, where nothing is urgent.

    Attributes:
        waiting_since: when data was first seen that no micro-batch has taken, by the steady clock,
            ns; None when none waits.
    """

    def __init__(self, settings: PacingSettings, windows: Sequence[Window] = ()) -> None:
        """Take the settings, and the windows of each buffer."""
        self._settings = settings
        self._windows = windows
        self._has_grid = bool(windows) and all(
            window.next_due_time(0) is not None for window in windows
        )
        self._costs: deque[_Cost] = deque(maxlen=_COSTS)
        self._cost = 0
        self._taken = self._batch_time = 0
        self._started_at: int | None = None
        self._ended_at: int | None = None
        self.waiting_since: int | None = None

    def note_start(self, data: PendingData) -> None:
        """Note that a micro-batch starts, and takes this."""
        self._started_at, self._ended_at, self.waiting_since = data.steady, None, None
        self._taken, self._batch_time = data.messages, data.time

    def note_end(self, steady: int) -> None:
        """Note that the micro-batch in hand, if any, has ended."""
        if self._started_at is not None and self._ended_at is None:
            self._costs.append(_Cost(self._taken, steady - self._started_at))
            self._cost = estimate_fixed_cost(self._costs)
            self._ended_at = steady

    @property
    def cost(self) -> int:
        """Time that a small micro-batch takes, ns; 0 before the first."""
        return self._cost

    def starts_at(self, data: PendingData) -> int | None:
        """Return when the data that waits is taken, by the steady clock, ns; None without data."""
        if not data.messages:
            return None
        if self.waiting_since is None:
            self.waiting_since = data.steady
        settings, since = self._settings, self.waiting_since
        if self._started_at is None or data.messages >= FULL_BATCH_MESSAGES:
            return since
        if settings.is_fixed:
            at = self._started_at + max(settings.longest_wait, data.min_distance)
        else:
            at = max(self._rested_at(data), since + settings.collect)
            at = min(at, since + settings.longest_wait)
            at = max(at, self._started_at + data.min_distance)
        return max(at, since)

    def _rested_at(self, data: PendingData) -> int:
        """Return when the stream has rested long enough."""
        assert self._started_at is not None
        ended, cost = self._ended_at or data.steady, self._cost
        if self._settings.answers_requests:
            return ended
        if not self._windows:
            return ended + round(cost * self._rest_factor(data))
        rested = ended + round(cost * _WINDOW_REST_FACTOR)
        if not self._has_grid:
            return rested
        closes_in, since_close = self._distance_of_closes(data)
        closes_at = data.steady + closes_in
        if since_close > _CLOSE_PERIOD:
            rested = max(rested, self._started_at + self._settings.longest_wait)
        rested = max(rested, data.steady)
        # What began just before a window's end had still to end before the window can close.
        return rested if rested < closes_at - cost else closes_at

    def _rest_factor(self, data: PendingData) -> float:
        """Return how many times as long as a small micro-batch takes the stream rests."""
        assert self._started_at is not None
        rate = data.messages * SECOND / max(data.steady - self._started_at, 1)
        # The best distance of orders grows with the root of what one costs by what is asked for.
        factor = (1 + _MIN_REST_FACTOR) * sqrt(_BUSY_RATE / rate) - 1
        return min(max(factor, _MIN_REST_FACTOR), _MAX_REST_FACTOR)

    def _distance_of_closes(self, data: PendingData) -> tuple[int, int]:
        """Return in how many ns a window closes, and since when the last one has.

        The former is of the first window that the newest micro-batch did not close, and below 0
        where that is late. By event time, a window is expected to close when the messages behind
        its end have come.
        """
        closes_in: list[int] = []
        since_close: list[int] = []
        for window in self._windows:
            by_event = window.uses_event_time
            delay = data.event_lag + _CLOSE_MARGIN if by_event else 0
            now = data.time - delay
            due = window.next_due_time(self._batch_time - delay)
            assert due is not None
            closes_in.append(due - now)
            before = window.due_time(window.closed_until(now))
            # By the clock on the wall it closes in the micro-batch that is due, and no other.
            since_close.append(now - before if by_event else _CLOSE_PERIOD + 1)
        return min(closes_in), min(since_close)
