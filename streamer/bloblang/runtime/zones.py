"""Time zones by name, and a timestamp's parts in its own zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from streamer.bloblang.errors import ArgumentError
from streamer.timestamps import SECOND, Timestamp


@lru_cache(maxsize=256)
def load(name: str) -> tzinfo:
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


def local(moment: Timestamp) -> datetime:
    """Return a timestamp's date and time in its zone, whole seconds only."""
    zone: tzinfo = UTC
    if moment.location not in ("", "UTC"):
        zone = load(moment.location)
    elif moment.offset:
        zone = timezone(timedelta(seconds=moment.offset))
    return datetime.fromtimestamp(moment.ns // SECOND, zone)


def at_zone(ns: int, name: str) -> Timestamp:
    """Return an instant as a timestamp in a zone.

    Args:
        ns: nanoseconds since the Unix epoch.
        name: the zone's IANA name.
    """
    zone = load(name)
    if zone is UTC:
        return Timestamp(ns)
    moment = datetime.fromtimestamp(ns // SECOND, zone)
    offset = moment.utcoffset() or timedelta()
    return Timestamp(ns, int(offset.total_seconds()), moment.tzname() or "", name)


def from_local(moment: datetime, ns: int) -> Timestamp:
    """Return the timestamp of a date and time with zone, and nanoseconds within the second."""
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    seconds = since.days * 86400 + since.seconds
    offset = moment.utcoffset() or timedelta()
    name = moment.tzname() or ""
    key = getattr(moment.tzinfo, "key", "" if offset else "UTC")
    return Timestamp(seconds * SECOND + ns, int(offset.total_seconds()), name, key)
