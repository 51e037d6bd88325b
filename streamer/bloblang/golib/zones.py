"""Time zones by name, and a timestamp's parts in its own zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from streamer.bloblang.errors import ArgumentError
from streamer.core.timestamps import SECOND, Timestamp, shift_into_calendar


@lru_cache(maxsize=256)
def load_zone(name: str) -> tzinfo:
    """Return a time zone by its IANA name; `Local` counts as UTC, whatever the host's zone is.

    Raises:
        ArgumentError: there is no such zone.
    """
    if name in ("", "UTC", "Local"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ArgumentError(
            f"failed to parse timezone location name: unknown time zone {name}"
        ) from None


def to_local(moment: Timestamp) -> datetime:
    """Return a timestamp's date and time in its zone, whole seconds only.

    Its year lacks `get_year_shift(moment)` when it lies outside of the years 1 to 9999.
    """
    seconds = shift_into_calendar(moment.ns // SECOND)[0]
    if moment.location not in ("", "UTC"):
        return datetime.fromtimestamp(seconds, load_zone(moment.location))
    # A bare offset may be one that Python's zones don't take, such as 24 hours.
    return datetime.fromtimestamp(seconds + moment.offset, UTC)


def get_year_shift(moment: Timestamp) -> int:
    """Return how many years to add to what `local` gives."""
    return shift_into_calendar(moment.ns // SECOND)[1]


def at_zone(ns: int, name: str) -> Timestamp:
    """Return an instant as a timestamp in a zone.

    Args:
        ns: nanoseconds since the Unix epoch.
        name: the zone's IANA name.
    """
    zone = load_zone(name)
    if zone is UTC:
        return Timestamp(ns)
    moment = datetime.fromtimestamp(shift_into_calendar(ns // SECOND)[0], zone)
    offset = moment.utcoffset() or timedelta()
    return Timestamp(ns, int(offset.total_seconds()), moment.tzname() or "", name)


def from_local(moment: datetime, ns: int, years: int = 0) -> Timestamp:
    """Return the timestamp of a date and time.

    Args:
        moment: the date and time, with a zone.
        ns: nanoseconds within the second.
        years: a multiple of 400 to add to the year.
    """
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    seconds = (since.days + years // 400 * 146_097) * 86400 + since.seconds
    offset = moment.utcoffset() or timedelta()
    name = moment.tzname() or ""
    key = getattr(moment.tzinfo, "key", "" if offset else "UTC")
    return Timestamp(seconds * SECOND + ns, int(offset.total_seconds()), name, key)
