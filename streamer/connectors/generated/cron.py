"""Cron expressions, by the rules of the Go library that Benthos takes them from.

Five fields, or six with seconds first; `@every 90s` and names such as `@daily`; `TZ=Europe/London`
before it, else the times are UTC's. When both days are restricted either of them is enough. A time
that a change of the clocks leaves out does not come that day, one that comes twice counts twice.
Other libraries differ in these: robfig/cron v3 is the rule (`make_parser.go`, `spec.go`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from streamer.core.durations import SECOND, parse_duration

_MAX_YEARS_AHEAD: Final = 5
_EXPECTED_TEXT: Final = (
    "expected five or six fields such as 30 9 * * 1-5, or @every 5m, or @daily and its like"
)


class _Bounds(NamedTuple):
    what: str
    low: int
    high: int
    names: tuple[str, ...] = ()


_MONTHS: Final = (
    *("jan", "feb", "mar", "apr", "may", "jun"),
    *("jul", "aug", "sep", "oct", "nov", "dec"),
)
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: Final = (
    _Bounds("second", 0, 59),
    _Bounds("minute", 0, 59),
    _Bounds("hour", 0, 23),
    _Bounds("day of month", 1, 31),
    _Bounds("month", 1, 12, _MONTHS),
    _Bounds("day of week", 0, 6, _DAYS),
)
_DESCRIPTORS: Final = {
    "@yearly": "0 0 0 1 1 *",
    "@annually": "0 0 0 1 1 *",
    "@monthly": "0 0 0 1 * *",
    "@weekly": "0 0 0 * * 0",
    "@daily": "0 0 0 * * *",
    "@midnight": "0 0 0 * * *",
    "@hourly": "0 0 * * * *",
}
_EVERY: Final = "@every "


@dataclass(frozen=True, slots=True)
class EveryInterval:
    """A schedule of equal steps.

    Attributes:
        period: whole seconds, ns.
    """

    period: int

    def next_after(self, moment: int) -> int:
        """Return the next time after a moment, Unix ns; it is at a whole second."""
        return moment // SECOND * SECOND + self.period


@dataclass(frozen=True, slots=True)
class CronSchedule:
    """Times that an expression names.

    Attributes:
        seconds: those that fit, and so on.
        matches_either_day: whether a day fits when one of month and week does.
        zone: whose times they are.
    """

    seconds: frozenset[int]
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    matches_either_day: bool
    zone: tzinfo

    def next_after(self, moment: int) -> int | None:
        """Return the next time after a moment, Unix ns; None when none comes within five years."""
        at = moment // SECOND + 1
        last = datetime.fromtimestamp(at, self.zone).year + _MAX_YEARS_AHEAD
        while True:
            local = datetime.fromtimestamp(at, self.zone)
            if local.year > last:
                return None
            if local.month not in self.months:
                following = (local.replace(day=1) + timedelta(32)).replace(day=1)
            elif not self._matches_day(local):
                following = local + timedelta(1)
            elif local.hour not in self.hours:
                at += 3600 - local.minute * 60 - local.second
                continue
            elif local.minute not in self.minutes:
                at += 60 - local.second
                continue
            elif local.second not in self.seconds:
                at += 1
                continue
            else:
                return at * SECOND
            midnight = datetime(following.year, following.month, following.day, tzinfo=self.zone)
            at = max(int(midnight.timestamp()), at + 1)

    def _matches_day(self, local: datetime) -> bool:
        of_month = local.day in self.days
        of_week = local.isoweekday() % 7 in self.weekdays
        return of_month or of_week if self.matches_either_day else of_month and of_week


@lru_cache(maxsize=64)
def parse_cron(text: str) -> CronSchedule | EveryInterval:
    """Read a cron expression.

    Raises:
        ValueError: it is none; says what was found and what was expected.
    """
    zone: tzinfo = UTC
    body = text.strip()
    if body.startswith(("TZ=", "CRON_TZ=")):
        name, _, body = body.partition("=")[2].partition(" ")
        zone, body = _load_zone(name), body.strip()
    if body.startswith(_EVERY):
        period = max(parse_duration(body.removeprefix(_EVERY)), SECOND)
        return EveryInterval(period // SECOND * SECOND)
    if body.startswith("@") and body not in _DESCRIPTORS:
        raise ValueError(f"unrecognized descriptor: {body}; {_EXPECTED_TEXT}")
    fields = _DESCRIPTORS.get(body, body).split()
    if len(fields) not in (5, 6):
        raise ValueError(f"expected 5 to 6 fields, found {len(fields)}: {body!r}; {_EXPECTED_TEXT}")
    if len(fields) == 5:
        fields.insert(0, "0")
    parsed_fields = [
        _parse_field(field, bounds) for field, bounds in zip(fields, _FIELDS, strict=True)
    ]
    seconds, minutes, hours, days, months, weekdays = (values for values, _ in parsed_fields)
    either = not (parsed_fields[3][1] or parsed_fields[5][1])
    return CronSchedule(seconds, minutes, hours, days, months, weekdays, either, zone)


def _load_zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        raise ValueError(
            f"provided bad location {name}; expected a name such as Europe/London"
        ) from None


def _parse_field(text: str, bounds: _Bounds) -> tuple[frozenset[int], bool]:
    """Return the values that fit, and whether the field is a star."""
    values: set[int] = set()
    star = False
    for part in filter(None, text.split(",")):
        some, is_star = _parse_range(part, bounds)
        values.update(some)
        star = star or is_star
    return frozenset(values), star


def _parse_range(text: str, bounds: _Bounds) -> tuple[range, bool]:
    span, slash, step_text = text.partition("/")
    first, hyphen, last = span.partition("-")
    star = first in ("*", "?")
    if star:
        low, high = bounds.low, bounds.high
    else:
        low = _parse_number(first, bounds, text)
        high = _parse_number(last, bounds, text) if hyphen else low
    step = 1
    if slash:
        step = _parse_number(step_text, bounds._replace(names=()), text)
        # N/step goes on to the end.
        high = high if hyphen else bounds.high
    if low < bounds.low or high > bounds.high or low > high or not step:
        raise ValueError(
            f"{text!r} does not fit a {bounds.what}: expected {bounds.low} to {bounds.high}, the "
            "smaller number first, and a step above 0"
        )
    return range(low, high + 1, step), star and step == 1


def _parse_number(text: str, bounds: _Bounds, part: str) -> int:
    if text.lower() in bounds.names:
        return bounds.names.index(text.lower()) + bounds.low
    if not (text.isascii() and text.isdigit() and len(text) < 5):
        raise ValueError(f"failed to parse int from {text!r} in the {bounds.what} {part!r}")
    return int(text)
