"""Durations with the errors of Go's `time.ParseDuration`; what they mean is in durations.py."""

from __future__ import annotations

import re
from typing import Final

from streamer.bloblang.errors import QueryError
from streamer.bloblang.golib.goquote import quote_time
from streamer.core.durations import parse_duration

_NUMBER: Final = re.compile(r"([0-9]*)(\.[0-9]*)?([^0-9.]*)", re.DOTALL)
_UNITS: Final = frozenset(("ns", "us", "\u00b5s", "\u03bcs", "ms", "s", "m", "h"))


def parse_go_duration(text: str) -> int:
    """Return a duration in nanoseconds.

    Args:
        text: numbers with the units `h m s ms us ns`; Go knows no days.

    Raises:
        QueryError: in Go's words.
    """
    fault = _find_fault(text)
    if not fault:
        try:
            return parse_duration(text)
        except ValueError:
            fault = "invalid duration"
    raise QueryError(f"time: {fault} {quote_time(text)}")


def _find_fault(text: str) -> str:
    """Return what Go has against a text, as far as its parts are concerned."""
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return ""
    if not rest:
        return "invalid duration"
    while rest:
        match = _NUMBER.match(rest)
        whole, fraction, unit = match.groups() if match else ("", None, "")
        if not whole and not (fraction or "")[1:]:
            return "invalid duration"
        if not unit:
            return "missing unit in duration"
        if unit not in _UNITS:
            return f"unknown unit {quote_time(unit)} in duration"
        rest = rest[match.end() if match else len(rest) :]
    return ""
