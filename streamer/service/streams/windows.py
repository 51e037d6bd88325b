"""The open windows of a stream, as of its newest micro-batch: bounds, contents, when they close."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from streamer.engine.recent import ClosedWindow, Recent
from streamer.timestamps import format_rfc3339
from streamer.window.system import SystemWindow
from streamer.window.words import AnyWindow, phrase


def open_windows(
    window: AnyWindow | None,
    statuses: Iterable[Mapping[str, Any]],
    recent: Recent | None = None,
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
    found: dict[tuple[int, int], list[int]] = {}
    held = size = more = 0
    for status in statuses:
        held += status.get("held", 0)
        size += status.get("held_bytes", 0)
        more += status.get("open_windows") or 0
        for one in status.get("open", ()):
            entry = found.setdefault((one["start"], one["end"]), [0, 0])
            entry[0] += one["messages"]
            entry[1] += one["size"]
    return {
        "kind": phrase(window),
        "clock": "system" if isinstance(window, SystemWindow) else "event",
        "windows": [
            {
                "start": format_rfc3339(start),
                "end": format_rfc3339(end),
                "messages": messages,
                "bytes": volume,
                "closes": format_rfc3339(_closes(window, end)),
            }
            for (start, end), (messages, volume) in sorted(found.items())
        ],
        "open": len(found) + more,
        "messages": held,
        "bytes": size,
        **_of_late(window, recent or Recent()),
    }


def _of_late(window: AnyWindow, recent: Recent) -> dict[str, Any]:
    size = window.size if isinstance(window, SystemWindow) else None

    def start(one: ClosedWindow) -> str | None:
        return _time(one.end - size if size is not None else one.start)

    return {
        "event_time": _time(recent.event_time),
        "closed": [
            {
                "start": start(one),
                "end": format_rfc3339(one.end),
                "messages": one.messages,
                "reason": one.reason,
                "at": format_rfc3339(one.at),
            }
            for one in recent.closed()
        ],
        "dropped": [
            {
                "at": format_rfc3339(one.at),
                "reason": one.reason,
                "messages": one.messages,
                "event_time": _time(one.event_time),
            }
            for one in recent.drops()
        ],
    }


def _closes(window: AnyWindow, end: int) -> int:
    return window.due(end) if isinstance(window, SystemWindow) else window.closes(end)


def _time(at: int | None) -> str | None:
    return None if at is None else format_rfc3339(at)
