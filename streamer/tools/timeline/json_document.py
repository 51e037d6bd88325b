"""A timeline as plain values, for JSON."""

from __future__ import annotations

from typing import Any

from streamer.core.timestamps import format_rfc3339
from streamer.tools.timeline.model import Event, Timeline, WindowSpan


def to_json_document(timeline: Timeline) -> dict[str, Any]:
    """Return `stream`, `messages` and `windows`; times are RFC 3339."""
    return {
        "stream": timeline.name,
        "messages": [_event_to_json(event) for event in timeline.events],
        "windows": [_window_to_json(span) for span in timeline.spans],
    }


def _event_to_json(event: Event) -> dict[str, Any]:
    document: dict[str, Any] = {
        "number": event.number,
        "content": event.text,
        "arrived": format_rfc3339(event.arrived),
        "time": None if event.time is None else format_rfc3339(event.time),
        "windows": sorted(
            _format_time(span.end) or "" for span in (*event.windows, *event.waiting)
        ),
    }
    if event.dropped:
        document |= {"dropped": event.dropped, "why": event.why}
    if event.failed:
        document["error"] = event.failed
    return document


def _window_to_json(span: WindowSpan) -> dict[str, Any]:
    key = {} if span.key is None else {"key": span.key}
    return {
        **key,
        "start": _format_time(span.start),
        "end": _format_time(span.end),
        "closed": _format_time(span.closed),
        "messages": span.numbers,
        **({"cut": True} if span.is_cut else {}),
        **({} if span.retracted is None else {"retracted": _format_time(span.retracted)}),
    }


def _format_time(at: int | None) -> str | None:
    return None if at is None else format_rfc3339(at)
