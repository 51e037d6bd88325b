"""Durations as Go writes them (`1h30m`, `250ms`, `-1.5h`), and `d` for 24 hours, exact in ns."""

from __future__ import annotations

import re
from typing import Final

MICROSECOND: Final = 1_000
MILLISECOND: Final = 1_000_000
SECOND: Final = 1_000_000_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR

_MAX: Final = 2**63 - 1
_EXPECTED_TEXT: Final = "expected a duration such as 30s, 1h30m, 250ms or 1d"
_UNITS: Final = {
    "ns": 1,
    "us": MICROSECOND,
    "\u00b5s": MICROSECOND,  # the micro sign
    "\u03bcs": MICROSECOND,  # the Greek letter mu, which Go accepts too
    "ms": MILLISECOND,
    "s": SECOND,
    "m": MINUTE,
    "h": HOUR,
    "d": DAY,
}
# The number and its unit, a unit being whatever stands up to the next number: so that an
# unknown one can be named whole.
_PART: Final = re.compile(r"([0-9]*)(\.([0-9]*))?([^0-9.]*)")


def parse_duration(text: str) -> int:
    """Read a duration, to the nanosecond.

    Args:
        text: an optional sign, then numbers with an optional fraction, each with its unit out of
            `d h m s ms us µs ns`. A lone `0` needs none. What is below a nanosecond is cut off.

    Returns:
        Nanoseconds, within int64.

    Raises:
        ValueError: the text is no duration, or is beyond 106,751 days; the text of the error says
            what is wrong with it and what was expected.

    The rules are those of Go's `time.ParseDuration`; `d` is ours.
    """
    body = text[1:] if text[:1] in ("-", "+") else text
    if body == "0":
        return 0
    if not body:
        raise ValueError(f"the duration {text!r} is empty: {_EXPECTED_TEXT}")
    total = 0
    position = 0
    while position < len(body):
        match = _PART.match(body, position)
        if match is None or not (match[1] or match[3]):
            raise ValueError(f"{text!r} is not a duration: {_EXPECTED_TEXT}")
        total += _parse_part(text, match[1], match[3] or "", match[4])
        position = match.end()
    if text.startswith("-"):
        total = -total
    if not -_MAX - 1 <= total <= _MAX:
        raise ValueError(f"the duration {text!r} is too long: the longest is 106751d")
    return total


def _parse_part(text: str, whole: str, fraction: str, unit: str) -> int:
    if not unit:
        raise ValueError(f"the duration {text!r} lacks a unit after a number: {_EXPECTED_TEXT}")
    size = _UNITS.get(unit)
    if size is None:
        known = "d, h, m, s, ms, us, ns"
        raise ValueError(f"the duration {text!r} has the unknown unit {unit!r}: use {known}")
    if len(whole) + len(fraction) > 60:
        raise ValueError(f"the duration {text[:70]!r}… has a number with too many digits")
    above = int(whole or "0") * size
    return above + int(fraction) * size // 10 ** len(fraction) if fraction else above


def format_duration(ns: int) -> str:
    """Write a duration in the shortest form that `parse_duration` and Go read back exactly.

    Args:
        ns: nanoseconds.

    Returns:
        `1h30m`, `250ms`, `1m0.5s`, `-6h`, `0s`; never `d`, which Go does not know.

    >>> format_duration(90 * MINUTE), format_duration(parse_duration("1d"))
    ('1h30m', '24h')
    """
    if ns == 0:
        return "0s"
    sign, rest = ("-", -ns) if ns < 0 else ("", ns)
    if rest < SECOND:
        unit = "ms" if rest >= MILLISECOND else "us" if rest >= MICROSECOND else "ns"
        return f"{sign}{_format_decimal(rest, _UNITS[unit])}{unit}"
    hours, rest = divmod(rest, HOUR)
    minutes, rest = divmod(rest, MINUTE)
    parts = [f"{hours}h" if hours else "", f"{minutes}m" if minutes else ""]
    if rest:
        parts.append(f"{_format_decimal(rest, SECOND)}s")
    return sign + "".join(parts)


def _format_decimal(value: int, unit: int) -> str:
    whole, rest = divmod(value, unit)
    if not rest:
        return str(whole)
    return f"{whole}.{rest:0{len(str(unit)) - 1}d}".rstrip("0")
