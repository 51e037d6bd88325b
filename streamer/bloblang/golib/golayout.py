"""Times formatted by Go's reference layouts (`Mon Jan 2 15:04:05 -0700 MST 2006`)."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache, partial
from typing import Final

from streamer.bloblang.golib import common_layouts
from streamer.bloblang.golib.zones import get_year_shift, to_local
from streamer.core.timestamps import SECOND, Timestamp, format_year

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
def split_layout(layout: str) -> tuple[tuple[str, str], ...]:
    """Split a layout into pairs of literal text and the part behind it."""
    parts: list[tuple[str, str]] = []
    end = 0
    for match in _PARTS.finditer(layout):
        parts.append((layout[end : match.start()], match[0]))
        end = match.end()
    return (*parts, (layout[end:], ""))


# The parts of usual layouts, by the names of C's directives.
_COMMON_PARTS: Final = {
    **{"2006": "Y", "01": "m", "Jan": "b", "02": "d", "15": "H", "04": "M", "05": "S"},
    **{"-0700": "z", "-07:00": ":z", "Z07:00": "Z:z"},
}


def to_common_parts(layout: str) -> tuple[tuple[str, str], ...]:
    """Return a layout's parts under the names of C's directives, where those have one."""
    parts = split_layout(layout)
    return tuple((text, _COMMON_PARTS.get(part, part and "?")) for text, part in parts)


@lru_cache(maxsize=256)
def make_writer(layout: str) -> Callable[[Timestamp], str]:
    """Return a function that writes a timestamp, in its own zone, in a layout."""
    return common_layouts.make_writer(to_common_parts(layout), partial(_write_time, layout=layout))


def format_time(moment: Timestamp, layout: str) -> str:
    """Return a timestamp, in its own zone, in a layout."""
    return make_writer(layout)(moment)


def _write_time(moment: Timestamp, layout: str) -> str:
    when = to_local(moment)
    year = when.year + get_year_shift(moment)
    parts = split_layout(layout)
    return "".join(
        [
            literal + (_format_part(part, when, year, moment) if part else "")
            for literal, part in parts
        ]
    )


def _format_part(part: str, when: datetime, year: int, moment: Timestamp) -> str:
    hour = when.hour % 12 or 12
    match part:
        case "2006":
            return format_year(year)
        case "06":
            return f"{abs(year) % 100:02d}"
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
            return moment.zone or _format_offset("-0700", moment.offset)
    if part[0] in ".,":
        digits = f"{moment.ns % SECOND:09d}"
        if part[1] == "0":
            return part[0] + digits[: len(part) - 1]
        fraction = digits[: len(part) - 1].rstrip("0")
        return part[0] + fraction if fraction else ""
    return _format_offset(part, moment.offset)


def _format_offset(part: str, offset: int) -> str:
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
