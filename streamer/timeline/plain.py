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
        "windows": sorted(_at(span.end) or "" for span in (*event.windows, *event.waiting)),
    }
    if event.dropped:
        found |= {"dropped": event.dropped, "why": event.why}
    if event.failed:
        found["error"] = event.failed
    return found


def _span(span: Span) -> dict[str, Any]:
    key = {} if span.key is None else {"key": span.key}
    return {
        **key,
        "start": _at(span.start),
        "end": _at(span.end),
        "closed": _at(span.closed),
        "messages": span.numbers,
    }


def _at(at: int | None) -> str | None:
    return None if at is None else format_rfc3339(at)
