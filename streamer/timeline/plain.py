"""A timeline as plain values, for JSON."""

from __future__ import annotations

from typing import Any

from streamer.timeline.model import Event, Span, Timeline
from streamer.timestamps import format_rfc3339


def plain(timeline: Timeline) -> dict[str, Any]:
    """Return `stream`, `messages` and `windows`; times are RFC 3339."""
    return {
        "stream": timeline.name,
        "messages": [_event(event) for event in timeline.events],
        "windows": [_span(span) for span in timeline.spans],
    }


def _event(event: Event) -> dict[str, Any]:
    found: dict[str, Any] = {
        "number": event.number,
        "content": event.text,
        "arrived": format_rfc3339(event.arrived),
        "time": None if event.time is None else format_rfc3339(event.time),
        "windows": [format_rfc3339(end) for end in sorted((*event.windows, *event.waiting))],
    }
    if event.dropped:
        found |= {"dropped": event.dropped, "why": event.why}
    if event.failed:
        found["error"] = event.failed
    return found


def _span(span: Span) -> dict[str, Any]:
    return {
        "start": format_rfc3339(span.start),
        "end": format_rfc3339(span.end),
        "closed": None if span.closed is None else format_rfc3339(span.closed),
        "messages": span.numbers,
    }
