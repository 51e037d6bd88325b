"""`tumbling_window` and `hopping_window`: [start, end), in durations or in local days."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from tests.window.oracle.driver import Window, WindowOracle
from tests.window.oracle.intake import DAY, Arrived, Fields

SECOND = 10**9
MIDNIGHT_1970 = datetime(1970, 1, 1)


@dataclass(frozen=True, kw_only=True)
class Hopping(Fields):
    """A tumbling window is one whose `every` is its size."""

    size: int
    every: int | None = None
    offset: int = 0
    timezone: str | None = None

    @property
    def hop(self) -> int:
        return self.size if self.every is None else self.every


class HoppingOracle(WindowOracle):
    def __init__(self, rules: Hopping) -> None:
        super().__init__(rules)
        self.rules = rules

    def take(self, arrived: Arrived) -> list[Window] | None:
        windows = [
            self._window(arrived, start, end) for start, end in bounds(self.rules, arrived.time)
        ]
        still_open = [w for w in windows if not self.is_shut(w, arrived.clock)]
        for window in still_open:
            window.inside.append(arrived)
            if window not in self.open:
                self.open.append(window)
        return still_open or None

    def is_past(self, window: Window, clock: int) -> bool:
        return clock >= window.end + self.rules.allowed_lateness

    def _window(self, arrived: Arrived, start: int, end: int) -> Window:
        for window in self.open:
            if (window.key, window.start, window.end) == (arrived.key, start, end):
                return window
        return Window(arrived.key, start, end)


def bounds(rules: Hopping, time: int) -> list[tuple[int, int]]:
    """All windows with start <= time < end, tried one by one."""
    if rules.timezone is not None:
        return [(s, e) for s, e in days_near(rules, rules.timezone, time) if s <= time < e]
    found = []
    number = (time - rules.size - rules.offset) // rules.hop - 1
    while (start := number * rules.hop + rules.offset) <= time:
        if time < start + rules.size:
            found.append((start, start + rules.size))
        number += 1
    return found


def days_near(rules: Hopping, timezone: str, time: int) -> list[tuple[int, int]]:
    """The windows of local days, from well before a time to well after it."""
    size, every = rules.size // DAY, rules.hop // DAY
    reach = size + abs(rules.offset) // DAY + 3
    today = time // DAY
    return [
        (instant(day, rules.offset, timezone), instant(day + size, rules.offset, timezone))
        for day in range(today - reach, today + reach + 1)
        if day % every == 0
    ]


def instant(day: int, offset: int, timezone: str) -> int:
    """The first instant at which local clocks show `offset` past midnight of a day, or later.

    So what clocks leave out is the first instant after the gap, and what they show twice is the
    first of both. `day` is a number of local dates since 1970-01-01.
    """
    zone = ZoneInfo(timezone)
    seconds, rest = divmod(day * DAY + offset, SECOND)
    wall = MIDNIGHT_1970 + timedelta(seconds=seconds)
    first = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if shown(first, zone) == wall:
        return unix(first) * SECOND + rest
    # The wall time is in a gap: look for the end of the gap, second by second in halves.
    before = wall.replace(tzinfo=zone, fold=1).astimezone(UTC)
    low, high = unix(before), unix(first)
    while high - low > 1:
        middle = (low + high) // 2
        at = datetime.fromtimestamp(middle, UTC)
        low, high = (low, middle) if shown(at, zone) >= wall else (middle, high)
    return high * SECOND


def shown(at: datetime, zone: ZoneInfo) -> datetime:
    return at.astimezone(zone).replace(tzinfo=None, fold=0)


def unix(at: datetime) -> int:
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)
