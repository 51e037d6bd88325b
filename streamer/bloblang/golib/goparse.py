"""Times read by Go's reference layouts, step by step as Go's `time.Parse` does, with its errors."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from typing import Final

from streamer.bloblang.errors import QueryError
from streamer.bloblang.golib import common_layouts
from streamer.bloblang.golib.golayout import DAYS, MONTHS, split_layout, to_common_parts
from streamer.bloblang.golib.goquote import quote_time
from streamer.bloblang.golib.zones import from_local
from streamer.core.timestamps import SECOND, Timestamp

_SHORT_MONTHS: Final = [month[:3] for month in MONTHS]
_SHORT_DAYS: Final = [day[:3] for day in DAYS]
_OFFSETS: Final = {
    "07": r"([+-])(\d\d)",
    "0700": r"([+-])(\d\d)(\d\d)",
    "07:00": r"([+-])(\d\d):(\d\d)",
    "070000": r"([+-])(\d\d)(\d\d)(\d\d)",
    "07:00:00": r"([+-])(\d\d):(\d\d):(\d\d)",
}
ZONE_NAME: Final = re.compile(
    r"ChST|MeST|GMT(?:[+-](?:2[0-3]|[01]?[0-9])(?![0-9]))?|[+-](?:2[0-3]|[01]?[0-9])(?![0-9])"
    r"|WITA(?![A-Z])|[A-Z]{4}T(?![A-Z])|[A-Z]{3}T(?![A-Z])|[A-Z]{3}(?![A-Z])"
)
_FRACTION: Final = re.compile(r"[.,][0-9]+")


class _LayoutMismatch(Exception):
    """The text does not fit the part of the layout; with a text, something is out of range."""


@dataclass(slots=True)
class _TimeReader:
    """The rest of the text, and the parts read so far; -1 where there is none."""

    rest: str
    year: int = 0
    month: int = -1
    day: int = -1
    yday: int = -1
    hour: int = 0
    minute: int = 0
    second: int = 0
    ns: int = 0
    half: str = ""
    utc: bool = False
    offset: int | None = None
    zone: str = ""

    def skip(self, literal: str) -> str | None:
        """Go past a literal; white space stands for any amount of it. Return what did not fit."""
        at = 0
        while at < len(literal):
            if literal[at] == " ":
                if self.rest and self.rest[0] != " ":
                    return literal[at:]
                at += len(literal[at:]) - len(literal[at:].lstrip(" "))
                self.rest = self.rest.lstrip(" ")
                continue
            if not self.rest or self.rest[0] != literal[at]:
                return literal[at:]
            self.rest = self.rest[1:]
            at += 1
        return None

    def read_number(self, digits: int, fixed: bool) -> int:
        match = re.match(rf"[0-9]{{{digits if fixed else 1},{digits}}}", self.rest)
        if match is None:
            raise _LayoutMismatch
        self.rest = self.rest[match.end() :]
        return int(match[0])

    def check_range(self, what: str, number: int, low: int, high: int) -> int:
        if not low <= number <= high:
            raise _LayoutMismatch(f"{what} out of range")
        return number

    def read_word(self, words: list[str]) -> int:
        for i, word in enumerate(words):
            if self.rest[: len(word)].lower() == word.lower():
                self.rest = self.rest[len(word) :]
                return i
        raise _LayoutMismatch

    def read_fraction(self, digits: int) -> None:
        """Read a dot or comma and so many digits."""
        if not re.match(rf"[.,][0-9]{{{digits}}}", self.rest):
            raise _LayoutMismatch
        self.ns = int(self.rest[1 : digits + 1][:9].ljust(9, "0"))
        self.rest = self.rest[digits + 1 :]


def _read_part(reading: _TimeReader, part: str, following: str) -> None:
    """Read one part of the layout."""
    match part:
        case "2006":
            if not re.match("[0-9]{4}", reading.rest):
                raise _LayoutMismatch
            reading.year, reading.rest = int(reading.rest[:4]), reading.rest[4:]
        case "06":
            year = reading.read_number(2, True)
            reading.year = year + (1900 if year >= 69 else 2000)
        case "January":
            reading.month = reading.read_word(MONTHS) + 1
        case "Jan":
            reading.month = reading.read_word(_SHORT_MONTHS) + 1
        case "1" | "01":
            reading.month = reading.check_range(
                "month", reading.read_number(2, part == "01"), 1, 12
            )
        case "Monday":
            reading.read_word(DAYS)
        case "Mon":
            reading.read_word(_SHORT_DAYS)
        case "2" | "_2" | "02":
            if part == "_2":
                reading.rest = reading.rest.removeprefix(" ")
            reading.day = reading.read_number(2, part == "02")
        case "__2" | "002":
            if part == "__2":
                reading.rest = re.sub("^ {1,2}", "", reading.rest)
            reading.yday = reading.read_number(3, part == "002")
        case "15":
            reading.hour = reading.check_range("hour", reading.read_number(2, False), 0, 23)
        case "3" | "03":
            reading.hour = reading.check_range("hour", reading.read_number(2, part == "03"), 0, 12)
        case "4" | "04":
            reading.minute = reading.check_range(
                "minute", reading.read_number(2, part == "04"), 0, 59
            )
        case "5" | "05":
            reading.second = reading.check_range(
                "second", reading.read_number(2, part == "05"), 0, 59
            )
            fraction = _FRACTION.match(reading.rest)
            if fraction is not None and not following.startswith((".", ",")):
                reading.read_fraction(len(fraction[0]) - 1)
        case "PM" | "pm":
            if reading.rest[:2] not in (part, part.replace("P", "A").replace("p", "a")):
                raise _LayoutMismatch
            reading.half, reading.rest = reading.rest[:2].upper(), reading.rest[2:]
        case "MST":
            _read_zone(reading)
        case _ if part[0] in ".,":
            fraction = _FRACTION.match(reading.rest)
            if part[1] == "0":
                reading.read_fraction(len(part) - 1)
            elif fraction is not None:
                reading.read_fraction(len(fraction[0]) - 1)
        case _:
            _read_offset(reading, part)


def _read_zone(reading: _TimeReader) -> None:
    if reading.rest.startswith("UTC"):
        reading.utc, reading.rest = True, reading.rest[3:]
        return
    match = ZONE_NAME.match(reading.rest)
    if match is None:
        raise _LayoutMismatch
    reading.zone, reading.rest = match[0], reading.rest[match.end() :]


def _read_offset(reading: _TimeReader, part: str) -> None:
    if part[0] == "Z" and reading.rest.startswith("Z"):
        reading.utc, reading.rest = True, reading.rest[1:]
        return
    match = re.match(_OFFSETS[part[1:]], reading.rest, re.ASCII)
    if match is None:
        raise _LayoutMismatch
    sign, hours, minutes, seconds = (*match.groups(), "0", "0")[:4]
    reading.rest = reading.rest[match.end() :]
    total = reading.check_range("time zone offset hour", int(hours), 0, 24) * 3600
    total += reading.check_range("time zone offset minute", int(minutes), 0, 60) * 60
    total += reading.check_range("time zone offset second", int(seconds), 0, 60)
    reading.offset = -total if sign == "-" else total


@lru_cache(maxsize=256)
def _make_reader(layout: str) -> Callable[[str], Timestamp]:
    return common_layouts.make_reader(to_common_parts(layout), partial(_read_time, layout=layout))


def parse_time(text: str, layout: str) -> Timestamp:
    """Return the timestamp that a text stands for in a layout; UTC without a zone in it.

    Raises:
        QueryError: the text does not fit, in Go's words.
    """
    return _make_reader(layout)(text)


def _read_time(text: str, layout: str) -> Timestamp:
    reading = _TimeReader(text)
    where = f"parsing time {quote_time(text)}"
    parts = split_layout(layout)
    for index, (literal, part) in enumerate(parts):
        if reading.skip(literal) is not None:
            raise _parse_error(where, layout, reading.rest, literal)
        if not part:
            break
        unread = reading.rest
        try:
            _read_part(reading, part, parts[index + 1][1] if not parts[index + 1][0] else "")
        except _LayoutMismatch as e:
            if str(e):
                raise QueryError(f"{where}: {e}") from None
            raise _parse_error(where, layout, unread, part) from None
    if reading.rest:
        raise QueryError(f"{where}: extra text: {quote_time(reading.rest)}")
    return _build_timestamp(reading, where)


def _parse_error(where: str, layout: str, rest: str, part: str) -> QueryError:
    reason = f"cannot parse {quote_time(rest)} as {quote_time(part)}"
    return QueryError(f"{where} as {quote_time(layout)}: {reason}")


def _resolve_day_of_year(reading: _TimeReader, leap: bool, where: str) -> None:
    """Work out month and day from the day of the year, which they must agree with."""
    if not 1 <= reading.yday <= 365 + leap:
        raise QueryError(f"{where}: day-of-year out of range")
    # A year of the calendar's cycle that has as many days.
    when = datetime(2000 if leap else 2001, 1, 1) + timedelta(days=reading.yday - 1)
    if reading.month not in (-1, when.month):
        raise QueryError(f"{where}: day-of-year does not match month")
    if reading.day not in (-1, when.day):
        raise QueryError(f"{where}: day-of-year does not match day")
    reading.month, reading.day = when.month, when.day


def _build_timestamp(reading: _TimeReader, where: str) -> Timestamp:
    hour = reading.hour
    if reading.half == "PM" and hour < 12:
        hour += 12
    elif reading.half == "AM" and hour == 12:
        hour = 0
    leap = calendar.isleap(reading.year)
    if reading.yday >= 0:
        _resolve_day_of_year(reading, leap, where)
    month = reading.month if reading.month > 0 else 1
    day = reading.day if reading.day >= 0 else 1
    days = 29 if month == 2 and leap else calendar.monthrange(2001, month)[1]
    if not 1 <= day <= days:
        raise QueryError(f"{where}: day out of range")
    # The year 0 is not one that `datetime` knows; 400 years later everything is the same.
    years = -400 if reading.year == 0 else 0
    clock = (hour, reading.minute, reading.second)
    when = datetime(reading.year - years, month, day, *clock, 0, UTC)
    moment = from_local(when, reading.ns, years)
    if reading.utc:
        return moment
    if reading.offset is not None:
        return at_offset(moment.ns, reading.offset, reading.zone)
    return _at_named_zone(moment.ns, reading.zone) if reading.zone else moment


def at_offset(ns: int, offset: int, zone: str) -> Timestamp:
    """Return a time that was read as UTC and is meant at an offset, in seconds, from it."""
    if not offset:
        return Timestamp(ns)
    return Timestamp(ns - offset * SECOND, offset, zone, "")


def _at_named_zone(ns: int, zone: str) -> Timestamp:
    """Return a time in a zone of which only the name is known: it counts as UTC.

    A name such as `GMT+3` says its offset, which Go shows the time in without moving it.
    """
    offset = int(zone[3:]) * 3600 if zone.startswith("GMT") and len(zone) > 3 else 0
    return Timestamp(ns, offset, zone, "")
