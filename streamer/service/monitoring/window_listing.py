"""The open windows of a stream, as of its newest micro-batch: bounds, contents, when they close."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from streamer.core.timestamps import format_rfc3339
from streamer.engine.report.window_history import ClosedWindow, WindowHistory
from streamer.engine.report.window_questions import Answer
from streamer.service.monitoring.window_rows import (
    DEFAULT_QUERY,
    content_document,
    row_document,
    select_windows,
)
from streamer.window.inspect.window_query import WindowQuery
from streamer.window.settings.window import Window

_SUMS: Final = ("open", "messages", "bytes", "matches")


def list_windows_of_buffers(
    windows: Mapping[str, Window],
    statuses: Iterable[Mapping[str, Any]],
    recent: WindowHistory | None = None,
    query: WindowQuery = DEFAULT_QUERY,
    answer: Answer | None = None,
) -> dict[str, Any]:
    """Return the open windows of several buffers, each with the label of its buffer.

    What has closed, and what was dropped, is told of all together.

    Args:
        windows: the windows' settings, by the buffer's label.
        statuses: of the shards of all buffers.
        recent: as of `list_open_windows`.
        query: likewise.
        answer: likewise, of the shards of all buffers.
    """
    known = list(statuses)
    listed = {
        label: list_open_windows(
            window,
            [one for one in known if one.get("buffer") == label],
            *(recent, query, answer, label),
        )
        for label, window in windows.items()
    }
    first = next(iter(listed.values()))
    return {
        **first,
        "kind": "; ".join(f"{label}: {one['kind']}" for label, one in listed.items()),
        "buffers": {
            label: {name: one[name] for name in ("kind", "clock", "keyed", *_SUMS)}
            for label, one in listed.items()
        },
        "complete": all(one["complete"] for one in listed.values()),
        **{
            name: [
                {**entry, "buffer": label} for label, one in listed.items() for entry in one[name]
            ]
            for name in ("windows", "contents")
        },
        **{name: sum(one[name] for one in listed.values()) for name in _SUMS},
    }


def list_open_windows(
    window: Window | None,
    statuses: Iterable[Mapping[str, Any]],
    recent: WindowHistory | None = None,
    query: WindowQuery = DEFAULT_QUERY,
    answer: Answer | None = None,
    buffer: str = "",
) -> dict[str, Any]:
    """Return the open windows of a stream, and what became of others of late.

    `closes` is the time at which a window closes: by the machine's clock where that closes
    windows, else by the time of events.

    Args:
        window: the windows' settings; None for a stream without.
        statuses: of its shards.
        recent: what is remembered of windows that have closed, and of messages that were dropped.
        query: which windows are listed, and in which order.
        answer: what shards have answered to that question; None where nobody has asked it.
        buffer: label of the windows' buffer, where there are several.
    """
    if window is None:
        return {"windows": [], "open": 0, "messages": 0, "bytes": 0}
    known = list(statuses)
    selected = select_windows(window, known, query, answer, buffer)
    return {
        "kind": window.describe(),
        "clock": "event" if window.uses_event_time else "system",
        "windows": [row_document(row) for row in selected.rows],
        "open": _count_open(window, known),
        "messages": sum(status.get("held", 0) for status in known),
        "bytes": sum(status.get("held_bytes", 0) for status in known),
        "matches": selected.total,
        "complete": selected.is_complete,
        "answered_at": _format_time(selected.at),
        "contents": [content_document(one) for one in selected.contents],
        "keyed": window.keyed or window.spreads_groups,
        **_recent_events(window, recent or WindowHistory()),
    }


def _count_open(window: Window, statuses: Sequence[Mapping[str, Any]]) -> int:
    if window.strategy == "panes":
        return len({(one["start"], one["end"]) for s in statuses for one in s.get("open", ())})
    return sum(status.get("open_windows") or 0 for status in statuses)


def _recent_events(window: Window, recent: WindowHistory) -> dict[str, Any]:
    size = window.implicit_size

    def start(one: ClosedWindow) -> str | None:
        is_known = one.start is not None or size is None
        return _format_time(one.start if is_known else one.end - (size or 0))

    return {
        "event_time": _format_time(recent.event_time),
        "closed": [
            {
                "start": start(one),
                "end": format_rfc3339(one.end),
                "messages": one.messages,
                "reason": one.reason,
                "at": format_rfc3339(one.at),
                "key": one.key,
                "buffer": one.buffer,
            }
            for one in recent.closed_windows()
        ],
        "dropped": [
            {
                "at": format_rfc3339(one.at),
                "reason": one.reason,
                "messages": one.messages,
                "event_time": _format_time(one.event_time),
                "sample": _format_sample(one.sample),
            }
            for one in recent.drops()
        ],
    }


def _format_sample(sample: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if sample is None:
        return None
    return {**sample, "event_time": _format_time(sample.get("event_time"))}


def _format_time(at: int | None) -> str | None:
    return None if at is None else format_rfc3339(at)
