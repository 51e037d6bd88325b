"""Times read by C's directives (`%Y-%m-%d`), with `%f` for microseconds.

Source: github.com/itchyny/timefmt-go, the library that Benthos uses.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from typing import Final

from streamer.bloblang.errors import QueryError
from streamer.bloblang.runtime import usual_times
from streamer.bloblang.runtime.golayout import DAYS, MONTHS
from streamer.bloblang.runtime.goparse import ZONE_NAME, at_offset
from streamer.bloblang.runtime.goquote import quote
from streamer.bloblang.runtime.strftime import expand, usual_parts
from streamer.bloblang.runtime.zones import from_local
from streamer.timestamps import SECOND, Timestamp

_SHORT_MONTHS: Final = [m[:3] for m in MONTHS]
_SHORT_DAYS: Final = [d[:3] for d in DAYS]
_VALUES: Final = {
    "Y": r"-?\d{1,4}",
    "G": r"-?\d{1,4}",
    "y": r"\d{1,2}",
    "g": r"\d{1,2}",
    "C": r"\d{1,2}",
    "m": r"\d{1,2}",
    "d": r"\d{1,2}",
    "e": r" ?\d{1,2}",
    "j": r"\d{1,3}",
    "H": r"\d{1,2}",
    "k": r" ?\d{1,2}",
    "I": r"\d{1,2}",
    "l": r" ?\d{1,2}",
    "M": r"\d{1,2}",
    "S": r"\d{1,2}",
    "s": r"-?\d{1,19}",
    "f": r"\d{1,6}",
    "w": r"[0-6]",
    "u": r"[1-7]",
    "V": r"\d{1,2}",
    "U": r"\d{1,2}",
    "W": r"\d{1,2}",
    "B": "(?i:" + "|".join(MONTHS) + ")",
    "b": "(?i:" + "|".join(_SHORT_MONTHS) + ")",
    "h": "(?i:" + "|".join(_SHORT_MONTHS) + ")",
    "A": "(?i:" + "|".join(DAYS) + ")",
    "a": "(?i:" + "|".join(_SHORT_DAYS) + ")",
    "p": "(?i:AM|PM)",
    "P": "(?i:AM|PM)",
    "Z": r"[A-Z]*",
    "t": r"\s+",
    "n": r"\s+",
    "%": "%",
}
_MINUTES: Final = r"[0-5]\d"
_OFFSETS: Final = {
    "z": rf"Z|[+-](?:[01]\d|2[0-3])(?:{_MINUTES}|:{_MINUTES}(?::{_MINUTES})?)?",
    ":z": rf"Z|[+-](?:[01]\d|2[0-3]):{_MINUTES}",
    "::z": rf"Z|[+-](?:[01]\d|2[0-3]):{_MINUTES}:{_MINUTES}",
    ":::z": rf"Z|[+-](?:[01]\d|2[0-3])(?::?{_MINUTES}(?::{_MINUTES})?)?",
}
_RANGES: Final = {
    "m": (1, 12),
    "d": (1, 31),
    "e": (1, 31),
    "j": (1, 366),
    "H": (0, 23),
    "k": (0, 23),
    "I": (1, 12),
    "l": (1, 12),
    "M": (0, 59),
    "S": (0, 60),
    "V": (1, 53),
}


@lru_cache(maxsize=256)
def _pattern(pattern: str) -> tuple[tuple[str, str], ...]:
    parts: list[tuple[str, str]] = []
    end = 0
    expanded = expand(pattern)
    for match in re.finditer(r"%(:{0,3}z|.|$)", expanded, re.DOTALL):
        parts.append((expanded[end : match.start()], match[1]))
        end = match.end()
        if not match[1]:
            raise QueryError('stray "%"')
        if match[1] not in _VALUES and not match[1].endswith("z"):
            raise QueryError(f'unexpected format "%{match[1]}"')
    return (*parts, (expanded[end:], ""))


@lru_cache(maxsize=256)
def _reader(pattern: str) -> Callable[[str], Timestamp]:
    return usual_times.reader(usual_parts(pattern), partial(_read, pattern=pattern))


def parse_time(text: str, pattern: str) -> Timestamp:
    """Return the timestamp that a text stands for; UTC without a zone in it.

    Raises:
        QueryError: the text does not fit the pattern.
    """
    return _reader(pattern)(text)


def _read(text: str, pattern: str) -> Timestamp:
    try:
        return _parse(text, pattern)
    except QueryError as e:
        raise QueryError(f"failed to parse {quote(text)} with {quote(pattern)}: {e}") from None


def _parse(text: str, pattern: str) -> Timestamp:
    found: dict[str, str] = {}
    at = 0
    for literal, name in _pattern(pattern):
        for c in literal:
            if not text.startswith(c, at):
                raise QueryError(f"expected {c!r}")
            at += 1
        if not name:
            continue
        match = re.compile(_OFFSETS.get(name) or _VALUES[name]).match(text, at)
        if match is None:
            raise QueryError(_misfit(text, at, name))
        if name == "Z" and not ZONE_NAME.fullmatch(match[0]):
            raise QueryError(f'cannot parse {quote(match[0])} with "%Z"')
        at = match.end()
        low, high = _RANGES.get(name, (None, None))
        if low is not None and high is not None and not low <= int(match[0]) <= high:
            raise QueryError(f'cannot parse "%{name}"')
        found["z" if name.endswith("z") else name] = match[0]
    if at < len(text):
        raise QueryError(f"unparsed string {quote(text[at:])}")
    return _assembled(found)


def _misfit(text: str, at: int, name: str) -> str:
    if name in "tn":
        return f'expected a space for "%{name}"'
    if name in (":z", "::z") and re.compile(r"[+-](?:[01]\d|2[0-3])").match(text, at):
        return f"expected ':' for \"%{name}\""
    return f'cannot parse "%{name}"'


def _first(found: dict[str, str], names: str, default: int) -> int:
    return next((int(found[name]) for name in names if name in found), default)


def _assembled(found: dict[str, str]) -> Timestamp:
    if "s" in found:
        return Timestamp(int(found["s"]) * SECOND)
    year = _first(found, "YG", 1900)
    if "y" in found or "g" in found:
        short = _first(found, "yg", 0)
        year = short + (2000 if short < 69 else 1900)
    if "C" in found:
        year = int(found["C"]) * 100 + year % 100
    month = _first(found, "m", 1)
    for name in "Bbh":
        if name in found:
            month = [m.lower() for m in _SHORT_MONTHS].index(found[name][:3].lower()) + 1
    hour = _first(found, "Hk", 0)
    if "I" in found or "l" in found:
        hour = _first(found, "Il", 12) % 12
    if found.get("p", found.get("P", "")).upper() == "PM":
        hour += 12
    # Years that `datetime` does not know are moved by whole cycles of the calendar.
    shift = 0 if 1 < year < 9999 else year - ((year - 2) % 400 + 2)
    try:
        when = datetime(year - shift, month, 1, hour, _first(found, "M", 0), 0, 0, UTC)
        when += timedelta(days=_day(found, when), seconds=_first(found, "S", 0))
    except (ValueError, OverflowError) as e:
        raise QueryError(str(e)) from None
    moment = from_local(when, int(found.get("f", "0").ljust(6, "0")) * 1000, shift)
    return _in_zone(moment, found)


def _day(found: dict[str, str], first: datetime) -> int:
    """Return how many days the date lies behind the first of its month or, by week, its year."""
    if "d" in found or "e" in found:
        return _first(found, "de", 1) - 1
    if "j" in found:
        return int(found["j"]) - 1
    weekday = _weekday(found)
    if "V" in found:
        monday = datetime.fromisocalendar(first.year, int(found["V"]), 1)
        return (monday - datetime(first.year, 1, 1)).days + (weekday or 1) - 1
    if "U" in found:
        start = first.isoweekday() % 7
        return int(found["U"]) * 7 - start + (weekday or 0) % 7
    if "W" in found:
        return int(found["W"]) * 7 - first.weekday() + (weekday or 1) - 1
    return 0


def _weekday(found: dict[str, str]) -> int | None:
    """Return the ISO weekday, 1 for Monday, if the text named one."""
    if "u" in found:
        return int(found["u"])
    if "w" in found:
        return int(found["w"]) or 7
    for name in "Aa":
        if name in found:
            return [d.lower() for d in _SHORT_DAYS].index(found[name][:3].lower()) + 1
    return None


def _in_zone(moment: Timestamp, found: dict[str, str]) -> Timestamp:
    name, text = found.get("Z", ""), found.get("z", "")
    if text in ("", "Z"):
        if name in ("", "UTC") or text:
            return moment
        return Timestamp(moment.ns, 0, name, "")
    digits = text[1:].replace(":", "").ljust(6, "0")
    seconds = int(digits[:2]) * 3600 + int(digits[2:4]) * 60 + int(digits[4:6])
    return at_offset(moment.ns, -seconds if text[0] == "-" else seconds, name)
