"""The rules of windows in words: by which a window closed or is open, and a message was dropped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from streamer.core.durations import MILLISECOND, SECOND, format_duration
from streamer.core.timestamps import format_rfc3339
from streamer.engine.report.clock_blame import ClockBlame
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.system_window import SystemWindow
from streamer.window.settings.window import Window
from streamer.window.settings.window_types import Session, Tumbling

_MAX_WINDOWS: Final = 20
_CLOSE_TEXTS: Final = {
    "flush": "the input had ended, or a deploy or a stop with --drain let open windows out",
    "idle": "no message of its key came for idle_timeout, by the time of day",
    "expired": "it was dropped: back pressure held it up for longer than the buffer allows",
    "count": "its number of messages was reached",
    "changes": "a micro-batch had changed it (emit: changes)",
    "each": "a message had come into it (emit: each)",
    "event": "an event has triggered it",
    "deleted": "its last message was deleted",
    "retracted": "its result was taken back: it was merged, got other bounds, or having refuses it",
    "empty": "the clock passed its end, and no message was in it",
}
_OPEN_TEXTS: Final = {
    "event_time": "it closes when the clock of the stream comes to that time",
    "key_time": "it closes when an event of its own key comes to that time (clock_scope: key)",
    "clock": "it closes by the time of day",
    "count": "it closes by its number of messages",
    "message": "each message is emitted as it comes; the window only frees it then",
    "never": "it never closes",
}
_DROP_TEXTS: Final = {
    "expired": "its window was not emitted in time under back pressure, and expired",
    "incomplete": "its count window was not complete when the input ended, or never will be",
    "future": "its event time is further ahead of the time of day than max_ahead allows",
    "timestamp": "its timestamp_mapping gave no time",
    "key": "its key_mapping gave no key",
}


def windows_at(window: Window, at: int) -> list[tuple[int, int]]:
    """Return start and end of the windows on a grid that hold an event time, the oldest first.

    Args:
        window: the settings; other kinds than windows on a grid give nothing.
        at: ns.
    """
    if not isinstance(window, SystemWindow) and not (
        isinstance(window, EventWindow) and isinstance(window.kind, Tumbling)
    ):
        return []
    # Windows [start, end) are named by the instants before.
    offset = 0 if isinstance(window, SystemWindow) else 1
    grid = window.grid
    return [
        (start + offset, end + offset)
        for end in [*grid.windows_of(at)][-_MAX_WINDOWS:]
        for start in grid.starts_of(end)
    ]


def windows_with_bound(window: Window, bound: int) -> list[tuple[int, int]]:
    """Return start and end of the windows on a grid that begin or end at a time."""
    near = dict.fromkeys(
        one for at in (bound - 1, bound, bound + 1) for one in windows_at(window, at)
    )
    return [one for one in near if bound in one]


def due_time(window: Window, end: int | None) -> int | None:
    """Return the clock at which a window closes that ends at a time as metadata name it, ns."""
    if end is None:
        return None
    if not isinstance(window, EventWindow):
        return window.due_time(end)
    if isinstance(window.kind, Session):
        return end + window.kind.gap + window.allowed_lateness + 1
    # `due_time` takes the last instant of a window [start, end).
    return window.due_time(end - 1) if isinstance(window.kind, Tumbling) else None


def explain_close(window: Window | None, reason: str, due: int | None) -> str:
    """Return why a window closed, in words."""
    if reason in _CLOSE_TEXTS:
        return _CLOSE_TEXTS[reason]
    if window is None or due is None:
        return f"it was emitted as {reason}"
    return f"the clock came to {format_rfc3339(due)}: {describe_due(window)}"


def describe_due(window: Window) -> str:
    """Return the rule by which a window closes, in words."""
    lateness = window.allowed_lateness
    wait = f" plus allowed_lateness {format_duration(lateness)}" if lateness else ""
    if isinstance(window, EventWindow) and isinstance(window.kind, Session):
        return f"its last event plus the gap {format_duration(window.kind.gap)}{wait}"
    return f"its end{wait}"


def explain_open(window: Window | None, closes_by: str) -> str:
    """Return why a window has not closed yet, in words."""
    if closes_by == "event_time" and window is not None and not window.uses_event_time:
        closes_by = "clock"
    text = _OPEN_TEXTS.get(closes_by, "it closes then")
    if closes_by in ("event_time", "key_time") and window is not None:
        return f"{text}: {describe_due(window)}"
    return text


def explain_drop(window: Window | None, reason: str, detail: str, due: int | None) -> str:
    """Return the rule by which a message was dropped, in words."""
    if detail:
        return detail
    if reason != "late":
        return _DROP_TEXTS.get(reason, reason)
    if window is None or due is None:
        return "all windows that it belongs to had closed by the clock before it"
    return (
        f"its last window closes when the clock comes to {format_rfc3339(due)} "
        f"({describe_due(window)}), and the clock before it was there"
    )


def suggest_remedy(
    window: Window | None, dropped: Mapping[str, Any], window_end: int | None
) -> str | None:
    """Return the setting by which a late message would have been taken; None for no advice."""
    clock, time = dropped["watermark"], dropped["event_time"]
    if dropped["reason"] != "late" or window is None or clock is None or time is None:
        return None
    end = time + _gap_of(window) if window_end is None else window_end
    needed = -(-(clock - end + 1) // SECOND) * SECOND
    parts = [f"allowed_lateness: {format_duration(max(needed, SECOND))} would have taken it"]
    if (
        isinstance(window, EventWindow)
        and window.uses_event_time
        and window.time.clock_scope == "stream"
    ):
        parts.append("clock_scope: partition or input waits for a source that lags")
    return "; ".join([*parts, "late_output keeps such messages"])


def _gap_of(window: Window) -> int:
    if isinstance(window, EventWindow) and isinstance(window.kind, Session):
        return window.kind.gap
    return 0


def suggest_timeout(window: Window, blame: ClockBlame | None, now: int) -> str | None:
    """Return the timeout that ends a wait for a source or key; None where none is waited for.

    Args:
        window: the settings.
        blame: who holds the clock.
        now: the newest batch time, ns.
    """
    if blame is None or not isinstance(window, EventWindow):
        return None
    waited = format_duration(max(now - blame.since, 0) // MILLISECOND * MILLISECOND)
    if blame.kind == "key":
        setting = window.time.idle_timeout
        if setting is None:
            return f"set idle_timeout: windows of {blame.name} wait since {waited}, without an end"
        return f"idle_timeout {format_duration(setting)} closes them without another message"
    timeout = window.time.source_idle_timeout
    if not timeout:
        return f"set source_idle_timeout: {blame.name} is waited for since {waited}, without an end"
    return (
        f"source_idle_timeout {format_duration(timeout)}: so long after its last message the clock "
        f"goes on without {blame.name}; a shorter one waits less"
    )
