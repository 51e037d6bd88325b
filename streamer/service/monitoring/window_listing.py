"""The open windows of a stream, as of its newest micro-batch: bounds, contents, when they close."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from streamer.core.timestamps import format_rfc3339
from streamer.engine.report.window_history import ClosedWindow, WindowHistory
from streamer.window.settings.window import Window

_SUMS: Final = ("open", "messages", "bytes")


def list_windows_of_buffers(
    windows: Mapping[str, Window],
    statuses: Iterable[Mapping[str, Any]],
    recent: WindowHistory | None = None,
) -> dict[str, Any]:
    """Return the open windows of several buffers, each with the label of its buffer.

    What has closed, and what was dropped, is told of all together.

    Args:
        windows: the windows' settings, by the buffer's label.
        statuses: of the shards of all buffers.
        recent: as of `list_open_windows`.
    """
    known = list(statuses)
    listed = {
        label: list_open_windows(
            window, [one for one in known if one.get("buffer") == label], recent
        )
        for label, window in windows.items()
    }
    first = next(iter(listed.values()))
    return {
        **first,
        "kind": "; ".join(f"{label}: {one['kind']}" for label, one in listed.items()),
        "windows": [
            {**window, "buffer": label}
            for label, one in listed.items()
            for window in one["windows"]
        ],
        **{name: sum(one[name] for one in listed.values()) for name in _SUMS},
    }


def list_open_windows(
    window: Window | None,
    statuses: Iterable[Mapping[str, Any]],
    recent: WindowHistory | None = None,
) -> dict[str, Any]:
    """Return the open windows of a stream, oldest first, and what became of others of late.

    `closes` is the time at which a window closes: by the machine's clock where that closes
    windows, else by the time of events. Where each key has windows of its own, only their number
    is known.

    Args:
        window: the windows' settings; None for a stream without.
        statuses: of its shards.
        recent: what is remembered of windows that have closed, and of messages that were dropped.
    """
    if window is None:
        return {"windows": [], "open": 0, "messages": 0, "bytes": 0}
    contents: dict[tuple[int, int], list[int]] = {}
    message_count = size = more = 0
    for status in statuses:
        message_count += status.get("held", 0)
        size += status.get("held_bytes", 0)
        more += status.get("open_windows") or 0
        for one in status.get("open", ()):
            entry = contents.setdefault((one["start"], one["end"]), [0, 0])
            entry[0] += one["messages"]
            entry[1] += one["size"]
    return {
        "kind": window.describe(),
        "clock": "event" if window.uses_event_time else "system",
        "windows": [
            {
                "start": format_rfc3339(start),
                "end": format_rfc3339(end),
                "messages": messages,
                "bytes": volume,
                "closes": format_rfc3339(window.due_time(end)),
            }
            for (start, end), (messages, volume) in sorted(contents.items())
        ],
        "open": len(contents) + more,
        "messages": message_count,
        "bytes": size,
        **_recent_events(window, recent or WindowHistory()),
    }


def _recent_events(window: Window, recent: WindowHistory) -> dict[str, Any]:
    size = window.implicit_size

    def start(one: ClosedWindow) -> str | None:
        return _format_time(one.end - size if size is not None else one.start)

    return {
        "event_time": _format_time(recent.event_time),
        "closed": [
            {
                "start": start(one),
                "end": format_rfc3339(one.end),
                "messages": one.messages,
                "reason": one.reason,
                "at": format_rfc3339(one.at),
            }
            for one in recent.closed_windows()
        ],
        "dropped": [
            {
                "at": format_rfc3339(one.at),
                "reason": one.reason,
                "messages": one.messages,
                "event_time": _format_time(one.event_time),
            }
            for one in recent.drops()
        ],
    }


def _format_time(at: int | None) -> str | None:
    return None if at is None else format_rfc3339(at)
