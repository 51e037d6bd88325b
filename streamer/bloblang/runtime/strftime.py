"""Times formatted and parsed by C's directives (`%Y-%m-%d`), with `%f` for microseconds."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Final

from streamer.bloblang.errors import QueryError
from streamer.bloblang.runtime.golayout import DAYS, MONTHS
from streamer.bloblang.runtime.goquote import quote
from streamer.bloblang.runtime.zones import from_local, local
from streamer.timestamps import SECOND, Timestamp

_COMPOSITE: Final = {
    "c": "%a %b %e %H:%M:%S %Y",
    "+": "%a %b %e %H:%M:%S %Z %Y",
    "v": "%e-%b-%Y",
    "r": "%I:%M:%S %p",
    "F": "%Y-%m-%d",
    "D": "%m/%d/%y",
    "x": "%m/%d/%y",
    "T": "%H:%M:%S",
    "X": "%H:%M:%S",
    "R": "%H:%M",
}
_DIRECTIVE: Final = re.compile(r"%([-_^#0]*)(\d*)(:{0,3}z|.)?", re.DOTALL)


def _expand(pattern: str) -> str:
    return re.sub(
        r"%(.)",
        lambda m: _COMPOSITE.get(m[1], m[0]),
        pattern,
        flags=re.DOTALL,
    )


def _offset(seconds: int, colons: int) -> str:
    sign, size = ("-", -seconds) if seconds < 0 else ("+", seconds)
    hours, minutes, rest = size // 3600, size // 60 % 60, size % 60
    if colons == 0:
        return f"{sign}{hours:02d}{minutes:02d}"
    text = f"{sign}{hours:02d}:{minutes:02d}"
    return f"{text}:{rest:02d}" if colons > 1 else text


def _number(digits: int, pad: str = "0") -> Callable[[int], str]:
    return lambda value: str(value).rjust(digits, pad)


_NUMBERS: Final[dict[str, tuple[Callable[[datetime], int], int, str]]] = {
    "Y": (lambda t: t.year, 4, "0"),
    "y": (lambda t: t.year % 100, 2, "0"),
    "C": (lambda t: t.year // 100, 2, "0"),
    "G": (lambda t: t.isocalendar()[0], 4, "0"),
    "g": (lambda t: t.isocalendar()[0] % 100, 2, "0"),
    "m": (lambda t: t.month, 2, "0"),
    "w": (lambda t: t.isoweekday() % 7, 1, "0"),
    "u": (lambda t: t.isoweekday(), 1, "0"),
    "V": (lambda t: t.isocalendar()[1], 2, "0"),
    "U": (lambda t: (t.timetuple().tm_yday + 6 - t.isoweekday() % 7) // 7, 2, "0"),
    "W": (lambda t: (t.timetuple().tm_yday + 6 - t.weekday()) // 7, 2, "0"),
    "d": (lambda t: t.day, 2, "0"),
    "e": (lambda t: t.day, 2, " "),
    "j": (lambda t: t.timetuple().tm_yday, 3, "0"),
    "H": (lambda t: t.hour, 2, "0"),
    "k": (lambda t: t.hour, 2, " "),
    "I": (lambda t: t.hour % 12 or 12, 2, "0"),
    "l": (lambda t: t.hour % 12 or 12, 2, " "),
    "M": (lambda t: t.minute, 2, "0"),
    "S": (lambda t: t.second, 2, "0"),
}


@lru_cache(maxsize=256)
def _native(pattern: str) -> str | None:
    """Return the pattern as C's strftime takes it, if it writes it just so in every locale."""
    expanded = _expand(pattern)
    return expanded if re.fullmatch(r"(?:[^%]|%[YmdjHIMS%])*", expanded, re.ASCII) else None


def format_time(moment: Timestamp, pattern: str) -> str:
    """Return a timestamp, in its own zone, as a pattern has it."""
    when = local(moment)
    native = _native(pattern)
    if native is not None and when.year >= 1000:
        return when.strftime(native)

    def fill(match: re.Match[str]) -> str:
        flags, width, name = match.groups()
        if not name:
            return match[0]
        if name in _NUMBERS:
            value, digits, pad = _NUMBERS[name]
            pad = " " if "_" in flags else "0" if "0" in flags else pad
            size = int(width) if width else 0 if "-" in flags else digits
            return str(value(when)).rjust(size, pad)
        text = _text(name, when, moment)
        if text is None:
            return match[0]
        text = text.upper() if "^" in flags else text.swapcase() if "#" in flags else text
        return text.rjust(int(width)) if width else text

    return _DIRECTIVE.sub(fill, _expand(pattern))


def _text(name: str, when: datetime, moment: Timestamp) -> str | None:
    match name:
        case "B":
            return MONTHS[when.month - 1]
        case "b" | "h":
            return MONTHS[when.month - 1][:3]
        case "A":
            return DAYS[when.weekday()]
        case "a":
            return DAYS[when.weekday()][:3]
        case "p":
            return "PM" if when.hour >= 12 else "AM"
        case "P":
            return "pm" if when.hour >= 12 else "am"
        case "s":
            return str(moment.ns // SECOND)
        case "f":
            return f"{moment.ns % SECOND // 1000:06d}"
        case "Z":
            return moment.zone or _offset(moment.offset, 0)
        case "t" | "n" | "%":
            return {"t": "\t", "n": "\n", "%": "%"}[name]
    return _offset(moment.offset, len(name) - 1) if name.endswith("z") else None


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
    "Z": r"[A-Z]+",
    "t": r"\s+",
    "n": r"\s+",
    "%": "%",
}
_ZONE: Final = r"Z|[+-]\d\d(?::?\d\d(?::?\d\d)?)?"
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
}


@lru_cache(maxsize=256)
def _pattern(pattern: str) -> tuple[tuple[str, str], ...]:
    parts: list[tuple[str, str]] = []
    end = 0
    expanded = _expand(pattern)
    for match in re.finditer(r"%(:{0,3}z|.|$)", expanded, re.DOTALL):
        parts.append((expanded[end : match.start()], match[1]))
        end = match.end()
        if not match[1]:
            raise QueryError('stray "%"')
        if match[1] not in _VALUES and not match[1].endswith("z"):
            raise QueryError(f'unexpected format "%{match[1]}"')
    return (*parts, (expanded[end:], ""))


def parse_time(text: str, pattern: str) -> Timestamp:
    """Return the timestamp that a text stands for; UTC without a zone in it.

    Raises:
        QueryError: the text does not fit the pattern.
    """
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
        match = re.compile(_ZONE if name.endswith("z") else _VALUES[name]).match(text, at)
        if match is None:
            raise QueryError(f'cannot parse "%{name}"')
        at = match.end()
        low, high = _RANGES.get(name, (None, None))
        if low is not None and high is not None and not low <= int(match[0]) <= high:
            raise QueryError(f'cannot parse "%{name}"')
        found["z" if name.endswith("z") else name] = match[0]
    if at < len(text):
        raise QueryError(f"unparsed string {quote(text[at:])}")
    return _assembled(found)


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
    zone = _zone(found)
    try:
        when = datetime(year, month, 1, hour, _first(found, "M", 0), 0, 0, zone)
        when += timedelta(days=_day(found, when), seconds=_first(found, "S", 0))
    except (ValueError, OverflowError) as e:
        raise QueryError(str(e)) from None
    return from_local(when, int(found.get("f", "0").ljust(6, "0")) * 1000)


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


def _zone(found: dict[str, str]) -> tzinfo:
    name = found.get("Z", "")
    text = found.get("z", "")
    if not text:
        return UTC if name in ("", "UTC") else timezone(timedelta(0), name)
    if text == "Z":
        return UTC
    digits = text[1:].replace(":", "").ljust(6, "0")
    seconds = int(digits[:2]) * 3600 + int(digits[2:4]) * 60 + int(digits[4:6])
    offset = timedelta(seconds=-seconds if text[0] == "-" else seconds)
    return timezone(offset, name) if name else timezone(offset)
