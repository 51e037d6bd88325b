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
from streamer.bloblang.golib import common_layouts
from streamer.bloblang.golib.golayout import DAYS, MONTHS
from streamer.bloblang.golib.goparse import ZONE_NAME, at_offset
from streamer.bloblang.golib.goquote import quote
from streamer.bloblang.golib.zones import from_local
from streamer.bloblang.runtime.strftime import expand_directives, to_common_parts
from streamer.core.timestamps import SECOND, Timestamp

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
def _split_pattern(pattern: str) -> tuple[tuple[str, str], ...]:
    parts: list[tuple[str, str]] = []
    end = 0
    expanded = expand_directives(pattern)
    for match in re.finditer(r"%(:{0,3}z|.|$)", expanded, re.DOTALL):
        parts.append((expanded[end : match.start()], match[1]))
        end = match.end()
        if not match[1]:
            raise QueryError('stray "%"')
        if match[1] not in _VALUES and not match[1].endswith("z"):
            raise QueryError(f'unexpected format "%{match[1]}"')
    return (*parts, (expanded[end:], ""))


@lru_cache(maxsize=256)
def _make_reader(pattern: str) -> Callable[[str], Timestamp]:
    return common_layouts.make_reader(
        to_common_parts(pattern), partial(_read_time, pattern=pattern)
    )


def parse_time(text: str, pattern: str) -> Timestamp:
    """Return the timestamp that a text stands for; UTC without a zone in it.

    Raises:
        QueryError: the text does not fit the pattern.
    """
    return _make_reader(pattern)(text)


def _read_time(text: str, pattern: str) -> Timestamp:
    try:
        return _parse_text(text, pattern)
    except QueryError as e:
        raise QueryError(f"failed to parse {quote(text)} with {quote(pattern)}: {e}") from None


def _parse_text(text: str, pattern: str) -> Timestamp:
    fields: dict[str, str] = {}
    at = 0
    for literal, name in _split_pattern(pattern):
        for c in literal:
            if not text.startswith(c, at):
                raise QueryError(f"expected {c!r}")
            at += 1
        if not name:
            continue
        match = re.compile(_OFFSETS.get(name) or _VALUES[name]).match(text, at)
        if match is None:
            raise QueryError(_mismatch_reason(text, at, name))
        if name == "Z" and not ZONE_NAME.fullmatch(match[0]):
            raise QueryError(f'cannot parse {quote(match[0])} with "%Z"')
        at = match.end()
        low, high = _RANGES.get(name, (None, None))
        if low is not None and high is not None and not low <= int(match[0]) <= high:
            raise QueryError(f'cannot parse "%{name}"')
        fields["z" if name.endswith("z") else name] = match[0]
    if at < len(text):
        raise QueryError(f"unparsed string {quote(text[at:])}")
    return _build_timestamp(fields)


def _mismatch_reason(text: str, at: int, name: str) -> str:
    if name in "tn":
        return f'expected a space for "%{name}"'
    if name in (":z", "::z") and re.compile(r"[+-](?:[01]\d|2[0-3])").match(text, at):
        return f"expected ':' for \"%{name}\""
    return f'cannot parse "%{name}"'


def _first_number(fields: dict[str, str], names: str, default: int) -> int:
    return next((int(fields[name]) for name in names if name in fields), default)


def _build_timestamp(fields: dict[str, str]) -> Timestamp:
    if "s" in fields:
        return Timestamp(int(fields["s"]) * SECOND)
    year = _first_number(fields, "YG", 1900)
    if "y" in fields or "g" in fields:
        short = _first_number(fields, "yg", 0)
        year = short + (2000 if short < 69 else 1900)
    if "C" in fields:
        year = int(fields["C"]) * 100 + year % 100
    month = _first_number(fields, "m", 1)
    for name in "Bbh":
        if name in fields:
            month = [m.lower() for m in _SHORT_MONTHS].index(fields[name][:3].lower()) + 1
    hour = _first_number(fields, "Hk", 0)
    if "I" in fields or "l" in fields:
        hour = _first_number(fields, "Il", 12) % 12
    if fields.get("p", fields.get("P", "")).upper() == "PM":
        hour += 12
    # Years that `datetime` does not know are moved by whole cycles of the calendar.
    shift = 0 if 1 < year < 9999 else year - ((year - 2) % 400 + 2)
    try:
        when = datetime(year - shift, month, 1, hour, _first_number(fields, "M", 0), 0, 0, UTC)
        when += timedelta(days=_day_offset(fields, when), seconds=_first_number(fields, "S", 0))
    except (ValueError, OverflowError) as e:
        raise QueryError(str(e)) from None
    moment = from_local(when, int(fields.get("f", "0").ljust(6, "0")) * 1000, shift)
    return _to_zone(moment, fields)


def _day_offset(fields: dict[str, str], first: datetime) -> int:
    """Return how many days the date lies behind the first of its month or, by week, its year."""
    if "d" in fields or "e" in fields:
        return _first_number(fields, "de", 1) - 1
    if "j" in fields:
        return int(fields["j"]) - 1
    weekday = _find_weekday(fields)
    if "V" in fields:
        monday = datetime.fromisocalendar(first.year, int(fields["V"]), 1)
        return (monday - datetime(first.year, 1, 1)).days + (weekday or 1) - 1
    if "U" in fields:
        start = first.isoweekday() % 7
        return int(fields["U"]) * 7 - start + (weekday or 0) % 7
    if "W" in fields:
        return int(fields["W"]) * 7 - first.weekday() + (weekday or 1) - 1
    return 0


def _find_weekday(fields: dict[str, str]) -> int | None:
    """Return the ISO weekday, 1 for Monday, if the text named one."""
    if "u" in fields:
        return int(fields["u"])
    if "w" in fields:
        return int(fields["w"]) or 7
    for name in "Aa":
        if name in fields:
            return [d.lower() for d in _SHORT_DAYS].index(fields[name][:3].lower()) + 1
    return None


def _to_zone(moment: Timestamp, fields: dict[str, str]) -> Timestamp:
    name, text = fields.get("Z", ""), fields.get("z", "")
    if text in ("", "Z"):
        if name in ("", "UTC") or text:
            return moment
        return Timestamp(moment.ns, 0, name, "")
    digits = text[1:].replace(":", "").ljust(6, "0")
    seconds = int(digits[:2]) * 3600 + int(digits[2:4]) * 60 + int(digits[4:6])
    return at_offset(moment.ns, -seconds if text[0] == "-" else seconds, name)
