"""Times in the usual layouts: read with one regular expression, written with one template.

That is dates with four digits of year, times of day to the second, and numeric zones. Whatever does
not fit, or would be an error, is left to the readers and writers of all layouts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final

from streamer.core.timestamps import SECOND, Timestamp

# The parts of a layout, as C's directives name them: text before each, and the name; at the end
# there is text without one.
LayoutParts = Sequence[tuple[str, str]]

_MONTHS: Final = (
    "Jan",
    "Feb",
    "Mar",
    "Apr",
    "May",
    "Jun",
    "Jul",
    "Aug",
    "Sep",
    "Oct",
    "Nov",
    "Dec",
)
_VALUES: Final = {
    **{"Y": r"(\d{4})", "m": r"(\d\d)", "d": r"(\d\d)"},
    **{"H": r"(\d\d)", "M": r"(\d\d)", "S": r"(\d\d)"},
    **{"b": f"({'|'.join(_MONTHS)})", "z": r"([+-]\d{4})", ":z": r"([+-]\d\d:\d\d)"},
    "Z:z": r"(Z|[+-]\d\d:\d\d)",
}
_ZONES: Final = {"z": "+0000", ":z": "+00:00", "Z:z": "Z"}
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_NUMBERS: Final = {f"{number:02d}": number for number in range(60)}
_MONTH_NUMBERS: Final = {
    **{f"{number:02d}": number for number in range(1, 13)},
    **{name: number for number, name in enumerate(_MONTHS, 1)},
}
# 1000-01-01 and 10000-01-01: in between, years have four digits.
_FIRST_SECOND: Final = (date(1000, 1, 1).toordinal() - _EPOCH_DAY) * 86400
_LAST_SECOND: Final = (date(9999, 12, 31).toordinal() - _EPOCH_DAY + 1) * 86400
_MAX_CACHED_ZONES: Final = 64


@lru_cache(maxsize=4096)
def _epoch_day(year: str, month: str, day: str) -> int | None:
    """Return the days since the Unix epoch; None when there is no such date."""
    try:
        return date(int(year), _MONTH_NUMBERS[month], int(day)).toordinal() - _EPOCH_DAY
    except (ValueError, KeyError):
        return None


def _find_index(names: list[str], *candidates: str) -> int | None:
    return next((names.index(name) for name in candidates if name in names), None)


def make_reader(parts: LayoutParts, read: Callable[[str], Timestamp]) -> Callable[[str], Timestamp]:
    """Return a function that reads times in a layout.

    Args:
        parts: the layout.
        read: reads any text in that layout, or says what is wrong with it.
    """
    names = [name for _, name in parts if name]
    date_at = (_find_index(names, "Y"), _find_index(names, "m", "b"), _find_index(names, "d"))
    usual = all(name in _VALUES for name in names) and len(set(names)) == len(names)
    if not usual or None in date_at or {"m", "b"} <= set(names):
        return read
    match = re.compile(
        "".join(re.escape(text) + _VALUES.get(name, "") for text, name in parts), re.ASCII
    ).fullmatch
    year, month, day = (at for at in date_at if at is not None)
    clock = [_find_index(names, name) for name in "HMS"]
    zone_at = _find_index(names, *_ZONES)
    zones: dict[str, tuple[int, str, str]] = {}

    def quick(text: str) -> Timestamp:
        result = match(text)
        if result is None:
            return read(text)
        values = result.groups()
        days = _epoch_day(values[year], values[month], values[day])
        if days is None:
            return read(text)
        seconds = days * 86400
        for at, size in zip(clock, (3600, 60, 1), strict=True):
            if at is not None:
                number = _NUMBERS.get(values[at], 60)
                if number > (23 if size == 3600 else 59):
                    return read(text)
                seconds += number * size
        zone = values[zone_at] if zone_at is not None else ""
        known = zones.get(zone)
        if known is None:
            moment = read(text)
            if len(zones) < _MAX_CACHED_ZONES:
                zones[zone] = (moment.offset, moment.zone, moment.location)
            return moment
        offset, name, location = known
        return Timestamp((seconds - offset) * SECOND, offset, name, location)

    return quick


@lru_cache(maxsize=4096)
def _format_date_parts(days: int) -> tuple[str, str, str, str]:
    """Return year, month, month's name and day of the days since the Unix epoch."""
    when = date.fromordinal(days + _EPOCH_DAY)
    return f"{when.year:04d}", f"{when.month:02d}", _MONTHS[when.month - 1], f"{when.day:02d}"


_TWO_DIGITS: Final = [f"{number:02d}" for number in range(60)]
_WRITABLE_PARTS: Final = "YmbdHMS"


def make_writer(
    parts: LayoutParts, write: Callable[[Timestamp], str]
) -> Callable[[Timestamp], str]:
    """Return a function that writes times in a layout.

    Args:
        parts: the layout.
        write: writes any time in that layout.
    """
    names = [name for _, name in parts if name]
    writable = [name for name in names if name not in _ZONES]
    if len(writable) < 2 or any(len(name) > 1 or name not in _WRITABLE_PARTS for name in writable):
        return write
    template = "".join(
        text.replace("%", "%%") + (_ZONES.get(name) or ("%s" if name else ""))
        for text, name in parts
    )
    select: Any = itemgetter(*map(_WRITABLE_PARTS.index, writable))

    def quick(moment: Timestamp) -> str:
        seconds = moment.ns // SECOND
        if (
            moment.offset
            or moment.location not in ("UTC", "")
            or not _FIRST_SECOND <= seconds < _LAST_SECOND
        ):
            return write(moment)
        days, rest = divmod(seconds, 86400)
        minutes, second = divmod(rest, 60)
        hour, minute = divmod(minutes, 60)
        values = (
            *_format_date_parts(days),
            _TWO_DIGITS[hour],
            _TWO_DIGITS[minute],
            _TWO_DIGITS[second],
        )
        text: str = template % select(values)
        return text

    return quick
