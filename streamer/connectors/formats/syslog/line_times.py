"""The times of lines, in RFC 3339."""

from __future__ import annotations

from calendar import monthrange
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from streamer.connectors.formats.syslog.cursor import LineCursor
from streamer.core.errors import MessageError
from streamer.core.timestamps import format_rfc3339, parse_rfc3339

_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov")
_LEAP_YEAR: Final = 2000


def format_line_time(cursor: LineCursor, start: int) -> str:
    """Return the RFC 3339 time that has been read since a column, as Go would write it.

    Raises:
        MessageError: the month has no such day.
    """
    text = cursor.text_since(start)
    try:
        moment = parse_rfc3339(text)
    except ValueError:
        raise MessageError(f'parsing time "{text}": day out of range [col {cursor.at}]') from None
    return format_rfc3339(moment.ns, moment.offset)


def format_stamp_time(cursor: LineCursor, start: int, year: int, zone: tzinfo) -> str:
    """Return the time `Jan _2 15:04:05` that has been read since a column, in a year.

    The time is in UTC, and is told in the zone. As in Go, the year is added to one that is a leap
    year: 29 February is 1 March in others.

    Raises:
        MessageError: the month has no such day.
    """
    text = cursor.text_since(start)
    name = text[:3]
    month = _MONTHS.index(name) + 1 if name in _MONTHS else 12
    day = int(text[4:6])
    if day > monthrange(_LEAP_YEAR, month)[1]:
        raise MessageError(f'parsing time "{text}": day out of range [col {cursor.at}]')
    hour, minute, second = map(int, text[7:].split(":"))
    # Python's calendar begins with the year 1; a multiple of 400 years changes no date.
    shift = 0 if 1 < year < 9999 else _LEAP_YEAR - year
    moment = datetime(year + shift, month, 1, hour, minute, second, tzinfo=UTC)
    moment += timedelta(days=day - 1)
    # A year that is not there lies before all zones' first change.
    known = moment if not shift else moment.replace(year=4)
    offset = known.astimezone(zone).utcoffset() or timedelta(0)
    local = moment.replace(tzinfo=None) + offset
    minutes = int(offset.total_seconds() / 60)
    zone_text = (
        "Z"
        if not minutes
        else f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"
    )
    return f"{local.year - shift:04}-{local:%m-%dT%H:%M:%S}{zone_text}"
