"""Times formatted by C's directives (`%Y-%m-%d`), with `%f` for microseconds."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache, partial
from typing import Final

from streamer.bloblang.golib import common_layouts
from streamer.bloblang.golib.golayout import DAYS, MONTHS
from streamer.bloblang.golib.zones import get_year_shift, to_local
from streamer.core.timestamps import SECOND, Timestamp
from streamer.core.value import parse_bounded_int

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
_MAX_WIDTH: Final = 1024
"""How wide a directive may be; what Connect uses has the same bound."""
_DIRECTIVE: Final = re.compile(r"%([-_^#0]*)(\d*)(:{0,3}z|.)?", re.DOTALL)


def expand_directives(pattern: str) -> str:
    """Return a pattern with the directives that stand for several written out."""
    return re.sub(
        r"%[-_^#0]*\d*(.)",
        lambda m: _COMPOSITE.get(m[1], m[0]),
        pattern,
        flags=re.DOTALL,
    )


def _format_offset(seconds: int, colons: int) -> str:
    sign, size = ("-", -seconds) if seconds < 0 else ("+", seconds)
    hours, minutes, rest = size // 3600, size // 60 % 60, size % 60
    if colons == 0:
        return f"{sign}{hours:02d}{minutes:02d}"
    if colons > 2:  # as much as it takes
        colons = 2 if rest else 1 if minutes else 0
        if not colons:
            return f"{sign}{hours:02d}"
    text = f"{sign}{hours:02d}:{minutes:02d}"
    return f"{text}:{rest:02d}" if colons > 1 else text


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


def _shift_year(name: str, number: int, years: int) -> int:
    """Return a number, with the years added that the calendar at hand lacks."""
    if name in "YG":
        return number + years
    if name == "C":
        return number + years // 100
    return number


def _pad_number(number: int, size: int, pad: str) -> str:
    if number < 0 and pad == "0":
        return f"-{str(-number).rjust(size - 1, pad)}"
    return str(number).rjust(size, pad)


@lru_cache(maxsize=256)
def to_common_parts(pattern: str) -> tuple[tuple[str, str], ...]:
    """Return a pattern's parts: text, and the name of the directive behind it."""
    pieces = re.split(r"%(:{0,3}z|.|$)", expand_directives(pattern), flags=re.DOTALL)
    # A flag, or a percent sign, is no directive that a usual time has.
    return tuple(zip(pieces[::2], [name or "?" for name in pieces[1::2]] + [""], strict=True))


@lru_cache(maxsize=256)
def _make_writer(pattern: str) -> Callable[[Timestamp], str]:
    return common_layouts.make_writer(
        to_common_parts(pattern), partial(_write_time, pattern=pattern)
    )


def format_time(moment: Timestamp, pattern: str) -> str:
    """Return a timestamp, in its own zone, as a pattern has it."""
    return _make_writer(pattern)(moment)


def _write_time(moment: Timestamp, pattern: str) -> str:
    when = to_local(moment)
    years = get_year_shift(moment)

    def fill(match: re.Match[str]) -> str:
        flags, width, name = match.groups()
        if not name:
            return match[0]
        if name in _NUMBERS or name == "f":
            micros = moment.ns % SECOND // 1000
            value, digits, pad = _NUMBERS.get(name, (lambda _: micros, 6, "0"))
            pad = " " if "_" in flags else "0" if "0" in flags else pad
            size = _parse_width(width) if width else 0 if "-" in flags else digits
            return _pad_number(_shift_year(name, value(when), years), size, pad)
        text = _directive_text(name, when, moment)
        if text is None:
            return match[0]
        text = text.upper() if "^" in flags else text.swapcase() if "#" in flags else text
        return text.rjust(_parse_width(width)) if width else text

    return _DIRECTIVE.sub(fill, expand_directives(pattern))


def _parse_width(width: str) -> int:
    return min(parse_bounded_int(width), _MAX_WIDTH)


def _directive_text(name: str, when: datetime, moment: Timestamp) -> str | None:
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
        case "Z":
            return moment.zone or _format_offset(moment.offset, 0)
        case "t" | "n" | "%":
            return {"t": "\t", "n": "\n", "%": "%"}[name]
    return _format_offset(moment.offset, len(name) - 1) if name.endswith("z") else None
