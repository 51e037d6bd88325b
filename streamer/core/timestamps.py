"""Points in time: int64 nanoseconds since the Unix epoch, and how texts become them.

`parse_event_time` is the rule of docs for window buffers: Unix seconds as a number (read from the
number's text, so nine decimals survive), an RFC 3339 or ISO 8601 date-time with a zone, or a
`Timestamp`.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, Final

import ciso8601

SECOND: Final = 1_000_000_000
_MIN: Final = -(1 << 63)
_MAX: Final = (1 << 63) - 1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY: Final = _EPOCH.toordinal()


class Timestamp:
    """A point in time with the zone it is written in; equal when the instants are equal.

    Attributes:
        ns: nanoseconds since the Unix epoch.
        offset: seconds east of UTC.
        zone: the zone's abbreviation (`UTC`, `CET`), or an empty string for a bare offset.
        location: the IANA name when the zone came from the database, or an empty string.
    """

    __slots__ = ("ns", "offset", "zone", "location")

    def __init__(self, ns: int, offset: int = 0, zone: str = "UTC", location: str = "UTC") -> None:
        self.ns = ns
        self.offset = offset
        self.zone = zone
        self.location = location

    def __str__(self) -> str:
        return format_rfc3339(self.ns, self.offset)

    def __repr__(self) -> str:
        return f"Timestamp({self})"

    def __eq__(self, other: object) -> bool:
        return self.ns == other.ns if isinstance(other, Timestamp) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.ns)

    def __reduce__(self) -> tuple[type[Timestamp], tuple[int, int, str, str]]:
        return (Timestamp, (self.ns, self.offset, self.zone, self.location))


def format_rfc3339(ns: int, offset: int = 0) -> str:
    """Format an instant as RFC 3339 with as many fractional digits as it needs.

    Args:
        ns: nanoseconds since the Unix epoch.
        offset: seconds east of UTC of the zone to write; 0 is written `Z`.

    Example:
        >>> format_rfc3339(1_500_000_000), format_rfc3339(0, 3600)
        ('1970-01-01T00:00:01.5Z', '1970-01-01T01:00:00+01:00')
    """
    seconds, fraction = divmod(ns, SECOND)
    text = _format_seconds(seconds, offset)
    if fraction:
        text += f".{fraction:09d}".rstrip("0")
    if not offset:
        return text + "Z"
    sign, size = ("-", -offset) if offset < 0 else ("+", offset)
    return f"{text}{sign}{size // 3600:02d}:{size // 60 % 60:02d}"


def format_unix_seconds(seconds: float) -> str:
    """Return a time, Unix s, as RFC 3339 in UTC."""
    return format_rfc3339(round(seconds * SECOND))


@lru_cache(maxsize=1 << 13)
def _format_seconds(seconds: int, offset: int) -> str:
    """Return a date and time without a zone; those of one second are asked for again and again."""
    seconds, years = shift_into_calendar(seconds)
    text = datetime.fromtimestamp(seconds + offset, UTC).isoformat()[:19]
    return format_year(int(text[:4]) + years) + text[4:] if years else text


# The calendar repeats itself, weekdays included, every 400 years.
_CYCLE_S: Final = 146_097 * 86_400
_FIRST_SECOND: Final = -62_135_510_400  # 0001-01-02 and 9999-12-30: a zone's offset stays inside
_LAST_SECOND: Final = 253_402_214_400


def shift_into_calendar(seconds: int) -> tuple[int, int]:
    """Move an instant by whole cycles of 400 years into the years that `datetime` knows.

    Args:
        seconds: since the Unix epoch.

    Returns:
        The instant within the years 1 to 9999, and how many years to add to its year.
    """
    if _FIRST_SECOND <= seconds <= _LAST_SECOND:
        return seconds, 0
    # Before all, to the first 400 years, when zones had their local mean time.
    cycles = (seconds - (_FIRST_SECOND if seconds < 0 else 946_684_800)) // _CYCLE_S
    return seconds - cycles * _CYCLE_S, cycles * 400


def format_year(year: int) -> str:
    """Write a year with at least four digits, as Go does."""
    return f"-{-year:04d}" if year < 0 else f"{year:04d}"


_SMALLER_UNITS: Final = {"milliseconds": 1_000, "microseconds": 10**6, "nanoseconds": 10**9}
# 1990 to 2100, as Unix seconds: what a time in a smaller unit is taken for.
_RECENT_SECONDS: Final = (631_152_000, 4_102_444_800)
_MAX_SHOWN_NUMBER: Final = 10**30
_FRACTION: Final = re.compile(r"[.,](\d+)")
_RFC3339: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:[.,](\d+))?([Zz]|[+-]\d\d:\d\d)",
    re.ASCII,
)


def _check_bounds(ns: int) -> int:
    if not _MIN <= ns <= _MAX:
        raise ValueError("the time is outside of what int64 nanoseconds hold (years 1678 to 2261)")
    return ns


def parse_rfc3339(text: str) -> Timestamp:
    """Parse an RFC 3339 date-time of the years 0 to 9999, keeping nanoseconds and zone.

    Raises:
        ValueError: the text is not a date-time with a zone.
    """
    if text[-1:] == "Z" and len(text) == 20:  # what most are: whole seconds in UTC
        try:
            since = ciso8601.parse_rfc3339(text) - _EPOCH
        except ValueError:
            pass
        else:
            return Timestamp((since.days * 86400 + since.seconds) * SECOND)
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise ValueError(f"expected an RFC 3339 date-time with a zone, got {text!r}")
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    try:
        cycle = 0 if year != "0000" else 146_097
        days = date(int(year) or 400, int(month), int(day)).toordinal() - _EPOCH_DAY - cycle
    except ValueError as e:
        raise ValueError(f"{text!r} is no date: {e}") from None
    if int(hour) > 23 or int(minute) > 59 or int(second) > 59:
        raise ValueError(f"{text!r} is no time of day")
    offset = 0
    if zone not in "Zz":
        if int(zone[1:3]) > 23 or int(zone[4:]) > 59:
            raise ValueError(f"{text!r} has no valid zone offset")
        offset = (int(zone[1:3]) * 60 + int(zone[4:])) * (-60 if zone[0] == "-" else 60)
    seconds = days * 86400 + int(hour) * 3600 + int(minute) * 60 + int(second) - offset
    ns = seconds * SECOND + int((fraction or "0")[:9].ljust(9, "0"))
    return Timestamp(ns, offset, "" if offset else "UTC", "" if offset else "UTC")


def parse_event_time(value: Any) -> int:
    """Return the event time that a mapping's result stands for, in nanoseconds.

    Args:
        value: Unix seconds as a number, a date-time text with a zone, or a `Timestamp`.

    Raises:
        ValueError: null, a boolean, a date alone, NaN, something outside int64 nanoseconds, or
            anything else that is not a time; the text says what was found.

    Example:
        >>> parse_event_time("2026-01-01T01:00:00+01:00") == parse_event_time(1767225600)
        True
    """
    kind = type(value)
    if kind is str:
        return _parse_text(value)
    if kind is int:
        ns: int = value * SECOND
        if not _MIN <= ns <= _MAX:
            raise ValueError(_explain_number(value))
        return ns
    if kind is Timestamp:
        return _check_bounds(value.ns)
    if isinstance(value, float):
        return _parse_number(getattr(value, "text", None) or repr(value))
    if kind is bytes:
        return _parse_text(value.decode(errors="replace"))
    shown = "null" if value is None else str(value).lower() if kind is bool else kind.__name__
    raise ValueError(f"expected Unix seconds or a date-time with a zone as event time, got {shown}")


def _explain_number(seconds: int | Decimal) -> str:
    """Return why a number is no time in seconds, and what it may be instead."""
    size = seconds.copy_abs() if isinstance(seconds, Decimal) else abs(seconds)
    for unit, factor in _SMALLER_UNITS.items():
        if _RECENT_SECONDS[0] * factor <= size <= _RECENT_SECONDS[1] * factor:
            return (
                f"the number {seconds} is no time in seconds; it may be in {unit}: "
                f"divide it by {factor}"
            )
    shown = f"{seconds}" if size < _MAX_SHOWN_NUMBER else "of more than thirty digits"
    return f"the number {shown} is no time in seconds (years 1678 to 2261)"


def _parse_number(text: str) -> int:
    try:
        seconds = Decimal(text)
        if not seconds.is_finite():
            raise ValueError(f"the number {text} is no time in seconds")
        if seconds.adjusted() > 9:
            raise ValueError(_explain_number(seconds))
        return _check_bounds(int((seconds * SECOND).to_integral_value("ROUND_FLOOR")))
    except InvalidOperation:
        raise ValueError(f"the number {text} is no time in seconds") from None


def _parse_text(text: str) -> int:
    try:
        moment = ciso8601.parse_datetime(text)
    except (ValueError, OverflowError):
        return _check_bounds(parse_rfc3339(text).ns)
    if moment.tzinfo is None:
        raise ValueError(f"expected a date-time with a zone as event time, got {text!r}")
    ns = moment.microsecond * 1000
    match = _FRACTION.search(text) if ns or "." in text or "," in text else None
    if match is not None:  # ciso8601 keeps microseconds; the text has the rest
        ns = int(match[1][:9].ljust(9, "0"))
    since = moment - _EPOCH
    return _check_bounds((since.days * 86400 + since.seconds) * SECOND + ns)
