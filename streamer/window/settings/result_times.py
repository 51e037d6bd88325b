"""Times of the results of windows, and how early they may yet be: the clock of windows behind.

A result has the time of its window: by itself that of the window's last instant, so that a window
of an hour that ends at midnight belongs to the day before. Whatever is to come out of windows later
has a known least time, by their clock alone; windows behind them that end before it can close, and
nothing is late for them.
"""

from __future__ import annotations

from typing import Final, Literal

from streamer.core.durations import HOUR, MILLISECOND
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.grid import Grid
from streamer.window.settings.system_window import SystemWindow
from streamer.window.settings.window import Window
from streamer.window.settings.window_types import (
    Join,
    KeyedMessages,
    Session,
    Sliding,
    TableJoin,
    Tumbling,
)

ResultTimes = Literal["end", "event", "mapped"]
"""Which times results have: that of the last instant of their window; of joins, the event time of
the message or the later one of the pair; or one by a mapping, anywhere in their window."""

_NO_CLOCK: Final = -(2**62)
"""No clock is as early as this: one that stands for that there is none is."""


def find_next_end(window: Window, clock: int) -> int | None:
    """Return the least end of the windows that come out later, by their metadata.

    Args:
        window: windows that are decided key by key.
        clock: what closes them, ns.

    Returns:
        ns; None where windows have no end, or no clock yet.
    """
    if clock <= _NO_CLOCK or not isinstance(window, EventWindow):
        return None
    kind, until = window.kind, clock - window.allowed_lateness
    match kind:
        case Tumbling():
            return window.grid.end_at_or_after(until) + 1
        case Session():
            return until - kind.gap
        case Sliding(mode="kafka"):
            return until - MILLISECOND + 1
        case Sliding() | Join() | TableJoin():
            return until
        case KeyedMessages() if window.sorts_by_time:
            return until
    return None


def shift_of_results(window: Window) -> int:
    """Return by how much the time of a result differs from its window's end, ns.

    Windows [start, end) end with the instant before. Those of `system_window` hold their end, and
    are named by it; but who groups minutes by hours means the hour that has just ended.
    """
    is_closed = isinstance(window, EventWindow) and not isinstance(window.kind, Tumbling)
    return 0 if is_closed else -1


def least_result_time(window: Window, next_end: int, times: ResultTimes) -> int | None:
    """Return the least event time of the results that windows have yet to give.

    Args:
        window: the windows.
        next_end: the least end of those that come out later, ns.
        times: which times results have.

    Returns:
        ns; None when a window may be of any length.
    """
    if times == "end":
        return next_end + shift_of_results(window)
    if times == "event":
        return next_end - _unmatched_reach(window)
    if isinstance(window, SystemWindow):
        return next_end - window.size
    assert isinstance(window, EventWindow)
    if isinstance(window.kind, Tumbling):
        return min(window.grid.starts_of(window.grid.end_at_or_after(next_end - 1))) + 1
    length = _max_length(window)
    return None if length is None else next_end - length


def clock_that_reaches(window: Window, time: int, times: ResultTimes) -> int | None:
    """Return the clock at which the results that windows have yet to give are not before a time.

    It is the inverse of `least_result_time`.

    Args:
        window: the windows.
        time: ns.
        times: as there.

    Returns:
        The clock of the windows, ns; None where no clock does that.
    """
    length = -shift_of_results(window) if times == "end" else _max_length(window)
    if times == "event":
        length = _unmatched_reach(window)
    if length is None:
        return None
    next_end = time + length
    if isinstance(window, SystemWindow):
        return window.due_time(window.grid.end_at_or_before(next_end - 1))
    assert isinstance(window, EventWindow)
    kind = window.kind
    match kind:
        case Tumbling():
            return window.due_time(window.grid.end_at_or_before(next_end - 2))
        case Session():
            return next_end + kind.gap + window.allowed_lateness
        case Sliding() | Join() | TableJoin():
            return next_end + window.allowed_lateness + MILLISECOND - 1
        case KeyedMessages():
            return next_end + window.allowed_lateness
    return None


def find_obstacle(window: Window) -> str:
    """Return why no window can tell time by the results of these; empty where they can.

    The text goes on after the name of their buffer.
    """
    if isinstance(window, SystemWindow):
        return ""
    assert isinstance(window, EventWindow)
    time = window.time
    if isinstance(window.kind, KeyedMessages):
        if window.sorts_by_time:
            return ""
        return "gives messages in order of arrival: how early a later one may be is not known"
    if not isinstance(window.kind, Tumbling | Session | Sliding | Join | TableJoin):
        return "has windows without a time"
    if isinstance(window.kind, Session) and window.kind.by_message:
        return "has sessions with gaps of their own: how early one ends is not known"
    if time.clock_scope == "key":
        return (
            f"has `clock_scope: {time.clock_scope}`: how early its results may yet be is not "
            "known of all keys together"
        )
    if time.emit != "final":
        return (
            f"has `emit: {time.emit}`: it gives a window more than once, and windows behind it "
            "would count it as often"
        )
    return ""


def has_bounded_length(window: Window) -> bool:
    """Return whether no window is longer than its settings say."""
    return _max_length(window) is not None


def _unmatched_reach(window: Window) -> int:
    """Return how far the event time of a join's result may be before the end of its window, ns.

    The window of a pair ends with the later one of both. That of a message without a partner ends
    with the last time at which one might have come.
    """
    assert isinstance(window, EventWindow)
    match window.kind:
        case Join(type="left", after=after):
            return max(after, 0)
        case Join(type="outer", before=before, after=after):
            return max(before, after, 0)
    return 0


def _max_length(window: Window) -> int | None:
    """Return the length of the longest window, ns; None where it may be any."""
    if isinstance(window, SystemWindow):
        return window.size
    assert isinstance(window, EventWindow)
    kind = window.kind
    match kind:
        case Tumbling():
            return kind.size if isinstance(window.grid, Grid) else kind.size + _CLOCK_CHANGE_NS
        case Sliding():
            return kind.size + kind.delay
        case Join():
            return kind.before + kind.after
        case TableJoin() | KeyedMessages():
            return 0
        case Session(max_duration=int(length)):
            # A session is cut at the second multiple behind its start at the latest.
            return 2 * length
    return None


_CLOCK_CHANGE_NS: Final = HOUR
"""By how much a day of a time zone is longer than 24 hours at most, nearly everywhere."""
