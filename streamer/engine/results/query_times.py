"""Times in questions, as people and programs write them."""

from __future__ import annotations

from streamer.core.json.parse import parse_json
from streamer.core.timestamps import parse_event_time
from streamer.engine.results.query_model import ResultQueryError


def parse_time(name: str, text: str) -> int:
    """Return a time, Unix ns.

    Args:
        name: of what is read, for the error.
        text: a date and time with zone (RFC 3339, ISO 8601), or Unix seconds.

    Raises:
        QuestionError: it is no such text.
    """
    try:
        number = parse_json(text.encode())
    except ValueError:
        number = text
    try:
        return parse_event_time(text if isinstance(number, bool | list | dict) else number)
    except ValueError:
        raise ResultQueryError(
            f"{name} is {text[:40]!r}, expected a time such as 2026-11-21T10:00:00Z, or Unix "
            "seconds"
        ) from None
