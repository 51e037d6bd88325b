"""Times formatted and parsed by Go's reference layouts (`Mon Jan 2 15:04:05 -0700 MST 2006`)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Final

from streamer.bloblang.errors import QueryError
from streamer.bloblang.runtime.goquote import quote
from streamer.bloblang.runtime.zones import from_local, local
from streamer.timestamps import SECOND, Timestamp

MONTHS: Final = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
DAYS: Final = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]

_PARTS: Final = re.compile(
    r"January|Jan(?![a-z])|Monday|Mon(?![a-z])|MST|2006|__2|_2(?!006)|002|0[1-6]|15|[12345]|PM|pm"
    r"|[-Z]07:00:00|[-Z]07:00|[-Z]070000|[-Z]0700|[-Z]07|[.,]0+(?!\d)|[.,]9+(?!\d)"
)


@lru_cache(maxsize=256)
def _split(layout: str) -> tuple[tuple[str, str], ...]:
    """Split a layout into pairs of literal text and the part behind it."""
    found: list[tuple[str, str]] = []
    end = 0
    for match in _PARTS.finditer(layout):
        found.append((layout[end : match.start()], match[0]))
        end = match.end()
    return (*found, (layout[end:], ""))


# The parts that C's strftime writes just so, whatever the host's locale.
_NATIVE: Final = {
    "2006": "%Y",
    "01": "%m",
    "02": "%d",
    "002": "%j",
    "15": "%H",
    "03": "%I",
    "04": "%M",
    "05": "%S",
}


@lru_cache(maxsize=256)
def _native(layout: str) -> str | None:
    """Return the layout as a pattern for strftime, if it has one."""
    parts = _split(layout)
    if any(part not in _NATIVE for _, part in parts[:-1]) or not layout.isascii():
        return None
    return "".join(text.replace("%", "%%") + _NATIVE.get(part, "") for text, part in parts)


def format_time(moment: Timestamp, layout: str) -> str:
    """Return a timestamp, in its own zone, in a layout."""
    when = local(moment)
    native = _native(layout)
    if native is not None and when.year >= 1000:
        return when.strftime(native)
    return "".join(
        literal + (_format(part, when, moment) if part else "") for literal, part in _split(layout)
    )


def _format(part: str, when: datetime, moment: Timestamp) -> str:
    hour = when.hour % 12 or 12
    match part:
        case "2006":
            return f"{when.year:04d}"
        case "06":
            return f"{when.year % 100:02d}"
        case "January":
            return MONTHS[when.month - 1]
        case "Jan":
            return MONTHS[when.month - 1][:3]
        case "1" | "01":
            return f"{when.month:0{len(part)}d}"
        case "Monday":
            return DAYS[when.weekday()]
        case "Mon":
            return DAYS[when.weekday()][:3]
        case "2" | "02":
            return f"{when.day:0{len(part)}d}"
        case "_2":
            return f"{when.day:2d}"
        case "__2":
            return f"{when.timetuple().tm_yday:3d}"
        case "002":
            return f"{when.timetuple().tm_yday:03d}"
        case "15":
            return f"{when.hour:02d}"
        case "3" | "03":
            return f"{hour:0{len(part)}d}"
        case "4" | "04":
            return f"{when.minute:0{len(part)}d}"
        case "5" | "05":
            return f"{when.second:0{len(part)}d}"
        case "PM" | "pm":
            return part if when.hour >= 12 else part.replace("P", "A").replace("p", "a")
        case "MST":
            return moment.zone or _zone("-0700", moment.offset).removesuffix("00")
    if part[0] in ".,":
        digits = f"{moment.ns % SECOND:09d}"
        if part[1] == "0":
            return part[0] + digits[: len(part) - 1].ljust(len(part) - 1, "0")
        kept = digits[: len(part) - 1].rstrip("0")
        return part[0] + kept if kept else ""
    return _zone(part, moment.offset)


def _zone(part: str, offset: int) -> str:
    if part[0] == "Z" and not offset:
        return "Z"
    sign, size = ("-", -offset) if offset < 0 else ("+", offset)
    colon = ":" if ":" in part else ""
    text = f"{sign}{size // 3600:02d}"
    if len(part) > 3:
        text += f"{colon}{size // 60 % 60:02d}"
    if len(part) > 6:
        text += f"{colon}{size % 60:02d}"
    return text


_VALUES: Final = {
    "2006": r"\d{4}",
    "06": r"\d\d",
    "January": "(?i:" + "|".join(MONTHS) + ")",
    "Jan": "(?i:" + "|".join(m[:3] for m in MONTHS) + ")",
    "Monday": "(?i:" + "|".join(DAYS) + ")",
    "Mon": "(?i:" + "|".join(d[:3] for d in DAYS) + ")",
    "_2": r" ?\d{1,2}",
    "__2": r"[ \d][ \d]\d",
    "002": r"\d{3}",
    "15": r"\d\d?",
    "PM": "AM|PM",
    "pm": "am|pm",
    "MST": r"(?:UTC|GMT[+-]\d{1,2}|[A-Z]{3,5}|[+-]\d\d)",
    "1": r"\d\d?",
    "2": r"\d\d?",
    "3": r"\d\d?",
    "4": r"\d\d?",
    "5": r"\d\d?",
}
_NAMES: Final = {
    "January": "month",
    "Jan": "month",
    "1": "month",
    "01": "month",
    "2": "day",
    "02": "day",
    "_2": "day",
    "15": "hour",
    "3": "hour",
    "03": "hour",
    "4": "minute",
    "04": "minute",
    "5": "second",
    "05": "second",
    "002": "yday",
    "__2": "yday",
}


@lru_cache(maxsize=1024)
def _value(part: str) -> re.Pattern[str]:
    if part[0] in ".,":
        if part[1] == "9":
            return re.compile(r"(?:[.,]\d+)?")
        return re.compile(rf"[.,]\d{{{len(part) - 1}}}")
    if part[0] in "-Z" and part[1:3] == "07":
        digits = re.sub("0", r"\\d", part[1:].replace("7", "0"))
        return re.compile(("Z|" if part[0] == "Z" else "") + "[+-]" + digits)
    return re.compile(_VALUES.get(part, r"\d\d"))


def parse_time(text: str, layout: str) -> Timestamp:
    """Return the timestamp that a text stands for in a layout; UTC without a zone in it.

    Raises:
        QueryError: the text does not fit, in Go's words.
    """
    found: dict[str, int] = {}
    zone: tzinfo = UTC
    at = 0
    parts = _split(layout)
    where = f"parsing time {quote(text)}"
    for index, (literal, part) in enumerate(parts):
        if not text.startswith(literal, at):
            shown = f"cannot parse {quote(text[at:])} as {quote(literal)}"
            raise QueryError(f"{where} as {quote(layout)}: {shown}")
        at += len(literal)
        if not part:
            continue
        match = _value(part).match(text, at)
        if match is None:
            shown = f"cannot parse {quote(text[at:])} as {quote(part)}"
            raise QueryError(f"{where} as {quote(layout)}: {shown}")
        at = match.end()
        if part[0] in "-Z" and part[1:3] == "07" or part == "MST":
            zone = _parsed_zone(match[0], zone, part)
        else:
            _take(part, match[0], found)
        if part in ("5", "05") and not parts[index + 1][1].startswith((".", ",")):
            extra = re.compile(r"[.,]\d+").match(text, at)
            if extra is not None:
                at = extra.end()
                _take(".9", extra[0], found)
    if at < len(text):
        raise QueryError(f"{where}: extra text: {quote(text[at:])}")
    return _assembled(found, zone, where)


def _take(part: str, text: str, found: dict[str, int]) -> None:
    if part[0] in ".,":
        found["ns"] = int(text[1:10].ljust(9, "0") or "0")
    elif part == "2006":
        found["year"] = int(text)
    elif part == "06":
        found["year"] = int(text) + (1900 if int(text) >= 69 else 2000)
    elif part in ("January", "Jan"):
        found["month"] = [m[:3].lower() for m in MONTHS].index(text[:3].lower()) + 1
    elif part in ("PM", "pm"):
        found["pm"] = text.upper() == "PM"
        found["half"] = 1
    elif part in _NAMES:
        found[_NAMES[part]] = int(text)


def _parsed_zone(text: str, known: tzinfo, part: str) -> tzinfo:
    if text in ("Z", "UTC"):
        return UTC
    if part == "MST" and not text.startswith(("+", "-")):
        hours = int(text[3:]) if text.startswith("GMT") and len(text) > 3 else 0
        offset = known.utcoffset(None) if known is not UTC else None
        return timezone(offset or timedelta(hours=hours), text)
    digits = text[1:].replace(":", "").ljust(6, "0")
    seconds = int(digits[:2]) * 3600 + int(digits[2:4]) * 60 + int(digits[4:6])
    offset = timedelta(seconds=-seconds if text[0] == "-" else seconds)
    return timezone(offset, known.tzname(None) or "") if known is not UTC else timezone(offset, " ")


def _assembled(found: dict[str, int], zone: tzinfo, where: str) -> Timestamp:
    hour = found.get("hour", 0)
    if found.get("half"):
        hour = hour % 12 + (12 if found["pm"] else 0)
    year, month, day = found.get("year", 0), found.get("month", 1), found.get("day", 1)
    for name, value, low, high in (
        ("month", month, 1, 12),
        ("hour", hour, 0, 23),
        ("minute", found.get("minute", 0), 0, 59),
        ("second", found.get("second", 0), 0, 59),
    ):
        if not low <= value <= high:
            raise QueryError(f"{where}: {name} out of range")
    if year < 1:
        raise QueryError(f"{where}: the time has no year that int64 nanoseconds could hold")
    try:
        when = datetime(
            year, month, day, hour, found.get("minute", 0), found.get("second", 0), 0, zone
        )
        if "yday" in found:
            when = when.replace(month=1, day=1) + timedelta(days=found["yday"] - 1)
    except (ValueError, OverflowError):
        raise QueryError(f"{where}: day out of range") from None
    moment = from_local(when, found.get("ns", 0))
    moment.zone = moment.zone.strip()
    return moment
