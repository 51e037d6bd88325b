"""What the settings of windows mean, in words, for all who show them: plans, pictures, the status.

Whoever shows windows asks here, and knows no kind of them by its name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.core.durations import MINUTE, format_duration
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.system_window import SystemWindow
from streamer.window.settings.window_types import (
    Count,
    EventTimeSettings,
    Join,
    Session,
    Sliding,
    Tumbling,
    WindowType,
)

AnyWindow = SystemWindow | EventWindow
"""The settings of any window buffer."""

_END_OF_INPUT_TEXTS: Final = {
    "wait": "waits for open windows",
    "flush": "emits open windows at once",
    "keep": "keeps open windows in the checkpoint",
}
_EMIT_TEXTS: Final = {
    "changes": "emitted whenever they change",
    "each": "emitted at every message",
    "forward": "messages forwarded at once",
}


def describe_window(window: AnyWindow) -> str:
    """Return the settings in a line: `windows of 10s every 5s, 2s for late messages`."""
    if isinstance(window, SystemWindow):
        parts = [_describe_grid(window.size, window.epoch, window.offset)]
    else:
        parts = [_describe_type(window.kind)]
        if window.keyed and not isinstance(window.kind, Join):
            parts.append("for each key")
    if lateness_of(window):
        parts.append(f"{format_duration(lateness_of(window))} for late messages")
    if not isinstance(window, SystemWindow) and window.time.emit in _EMIT_TEXTS:
        parts.append(_EMIT_TEXTS[window.time.emit])
    return ", ".join(parts)


def format_headline(window: AnyWindow) -> str:
    """Return the setting that matters most, in a word: `10s`, `100`."""
    kind = window if isinstance(window, SystemWindow) else window.kind
    match kind:
        case SystemWindow() | Tumbling() | Sliding():
            return format_duration(kind.size)
        case Session():
            return format_duration(kind.gap)
        case Count():
            return str(kind.count)
        case Join():
            return format_duration(max(kind.before, kind.after))


def describe_rules(window: AnyWindow) -> Iterator[str]:
    """Return what a plan says of windows, line by line: their shape, then what closes them."""
    if isinstance(window, SystemWindow):
        shape = _describe_shape(window.size, window.slide or window.size, window.offset)
        yield f"{shape}, (end - size, end]"
        wait = format_duration(window.allowed_lateness)
        yield f"closes by the system clock at its end + {wait}"
        expire_delay = format_duration(window.expire_delay)
        expired = {"drop": "dropped", "keep": "emitted late"}[window.on_expired]
        yield f"under back pressure, overdue by more than {expire_delay}: {expired}"
    else:
        yield _describe_bounds(window.kind)
        yield from _describe_closing(window.kind, window.time)
    yield f"when the input ends: {_describe_end_of_input(window)}"


def _describe_end_of_input(window: AnyWindow) -> str:
    if not isinstance(window, SystemWindow):
        if isinstance(window.kind, Count):
            return "drops what does not fill a window (incomplete)"
        if window.time.emit in _EMIT_TEXTS and window.end_of_input != "keep":
            return "closes open windows, of which nothing more comes"
    return _END_OF_INPUT_TEXTS[window.end_of_input]


def lateness_of(window: AnyWindow) -> int:
    """Return how long windows wait for late messages, ns."""
    if isinstance(window, SystemWindow):
        return window.allowed_lateness
    return window.time.allowed_lateness


def retention_of(window: AnyWindow) -> int | None:
    """Return how long results are kept for queries after their window's end, ns; None for not."""
    return window.retention if isinstance(window, SystemWindow) else window.time.retention


def spacing_of(window: AnyWindow) -> int:
    """Return about how far apart windows are, ns: a scale for pictures of them."""
    if isinstance(window, SystemWindow):
        return window.epoch
    match window.kind:
        case Tumbling():
            return window.kind.every
        case Session():
            return window.kind.gap
        case Sliding():
            return window.kind.size
        case Count() | Join():
            return MINUTE


def brackets_of(window: AnyWindow) -> tuple[str, str]:
    """Return the signs that say whether the bounds of windows belong to them: `[`, `)`."""
    if isinstance(window, SystemWindow):
        return "(", "]"
    return "[", ")" if isinstance(window.kind, Tumbling) else "]"


def _describe_grid(size: int, every: int, offset: int) -> str:
    text = f"windows of {format_duration(size)}"
    text += f" every {format_duration(every)}" if every != size else ""
    return f"{text}, moved by {format_duration(offset)}" if offset else text


def _describe_type(kind: WindowType) -> str:
    match kind:
        case Tumbling():
            text = _describe_grid(kind.size, kind.every, kind.offset)
            return f"{text}, days of {kind.timezone}" if kind.timezone else text
        case Session():
            text = f"sessions, ended by {format_duration(kind.gap)} without a message"
            max_duration = kind.max_duration
            return f"{text} or after {format_duration(max_duration)}" if max_duration else text
        case Sliding():
            size = format_duration(kind.size)
            if kind.mode == "event":
                return f"for every message, those of the {size} before it"
            return f"windows of {size} that begin with a message"
        case Count():
            text = f"windows of {kind.count:,} messages"
            return f"{text} every {kind.every:,}" if kind.every != kind.count else text
        case Join():
            return f"pairs of {kind.left} and {kind.right}, {_describe_join_bounds(kind)}"


def _describe_join_bounds(kind: Join) -> str:
    before, after = format_duration(kind.before), format_duration(kind.after)
    if kind.before == kind.after:
        return f"at most {before} apart"
    return f"{kind.right} from {before} before {kind.left} to {after} after it"


def _describe_shape(size: int, every: int, offset: int) -> str:
    text = f"size {format_duration(size)}"
    text += f", slide {format_duration(every)}" if every != size else ", tumbling"
    return f"{text}, offset {format_duration(offset)}" if offset else text


def _describe_bounds(kind: WindowType) -> str:
    match kind:
        case Tumbling():
            shape = _describe_shape(kind.size, kind.every, kind.offset).replace("slide", "every")
            days = f", in days of {kind.timezone}" if kind.timezone else ""
            return f"{shape}{days}, [start, start + size)"
        case Session():
            cut = f", cut after {format_duration(kind.max_duration)}" if kind.max_duration else ""
            return f"gap {format_duration(kind.gap)}{cut}, [first, last]"
        case Sliding():
            bounds = {"event": "[t - size, t]", "forward": "[t, t + size]"}
            bound = bounds.get(kind.mode, "[t - size, t] and [t + 1ms, t + 1ms + size]")
            return f"size {format_duration(kind.size)}, {kind.mode}: {bound}"
        case Count():
            return f"count {kind.count:,}, every {kind.every:,}"
        case Join():
            return f"{kind.type}, {_describe_type(kind)}"


def _describe_closing(kind: WindowType, time: EventTimeSettings) -> Iterator[str]:
    if isinstance(kind, Count):
        yield "closes by its number of messages"
        return
    clock = "system clock" if time.clock == "system" else "largest event time"
    clock += " of its key" if time.clock_scope == "key" else ""
    gap = f" + {format_duration(kind.gap)}" if isinstance(kind, Session) else ""
    wait = format_duration(time.allowed_lateness)
    if isinstance(kind, Join):
        yield "pairs come out with their second message"
        by = f" by {wait}" if time.allowed_lateness else ""
        yield f"messages wait until the {clock} has passed their last possible match{by}"
        return
    yield f"closes by the {clock} at its end{gap} + {wait}"
    if time.idle_timeout is not None:
        yield f"closes when nothing came for {format_duration(time.idle_timeout)}"
    if time.emit in _EMIT_TEXTS:
        yield f"{_EMIT_TEXTS[time.emit]}, not when they close"
