"""Whether results of windows are kept for longer than their windows are open."""

from __future__ import annotations

from typing import Final

from streamer.config.nodes import Mapping, Scalar
from streamer.config.read_context import ReadContext
from streamer.core.durations import format_duration, parse_duration

_LENGTH_FIELDS: Final = ("size", "gap")


def check_retention(context: ReadContext, root: Mapping) -> None:
    """Add a warning about results that may have expired before their window is closed.

    Args:
        context: gets the finding.
        root: the config's tree.
    """
    buffer = root.entries.get("buffer")
    kinds = buffer[1].entries.values() if buffer and isinstance(buffer[1], Mapping) else ()
    for _, body in kinds:
        if not isinstance(body, Mapping):
            continue
        retention = _read_duration(body, "retention")
        length = next(
            (value for name in _LENGTH_FIELDS if (value := _read_duration(body, name))), None
        )
        if retention is None or retention <= 0 or length is None:
            continue
        open_for = length + (_read_duration(body, "allowed_lateness") or 0)
        if retention <= open_for:
            message = (
                f"results are kept for {format_duration(retention)} after the end of their window, "
                f"which may be open for {format_duration(open_for)} (its length and "
                "allowed_lateness): some are gone before anybody can ask for them"
            )
            hint = f"keep them for longer than {format_duration(open_for)}"
            context.findings.add_at(body.entries["retention"][1], "short_retention", message, hint)


def _read_duration(body: Mapping, name: str) -> int | None:
    """Return a field that is a duration, ns; None where it is not there, or none."""
    entry = body.entries.get(name)
    if entry is None or not isinstance(entry[1], Scalar):
        return None
    try:
        return parse_duration(entry[1].text)
    except ValueError:
        return None
