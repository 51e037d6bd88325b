"""Where the windows of hopping and tumbling oracles begin: by durations, and by local days."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from tests.window.oracle.hopping import Hopping, bounds, instant
from tests.window.oracle.intake import DAY
from tests.window.oracle.play import HOUR, MINUTE, S


def ns(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp()) * S


def test_offsets_shift_the_grid_and_may_be_negative() -> None:
    assert bounds(Hopping(size=10, offset=3), 2) == [(-7, 3)]
    assert bounds(Hopping(size=10, offset=-3), 7) == [(7, 17)]
    assert bounds(Hopping(size=10, every=4, offset=-3), -1) == [(-7, 3), (-3, 7)]


@pytest.mark.parametrize("time", [-(2**63), -1, 0, 2**63 - 1])
def test_every_instant_is_in_a_window(time: int) -> None:
    ((start, end),) = bounds(Hopping(size=7), time)
    assert start <= time < end and start % 7 == 0 and end - start == 7


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", "2026-03-29", 23),
        ("Europe/Berlin", "2026-10-25", 25),
        ("Europe/Berlin", "2026-07-01", 24),
        ("America/New_York", "2026-03-08", 23),
        ("America/New_York", "2026-11-01", 25),
    ],
)
def test_a_day_is_as_long_as_local_clocks_say(zone: str, day: str, hours: int) -> None:
    midday = datetime.fromisoformat(f"{day}T12:00").replace(tzinfo=ZoneInfo(zone))
    ((start, end),) = bounds(Hopping(size=DAY, timezone=zone), int(midday.timestamp()) * S)
    midnight = datetime.fromtimestamp(start // S, ZoneInfo(zone))
    assert midnight.isoformat()[:16] == f"{day}T00:00"
    assert end - start == hours * HOUR


def test_days_of_a_zone_follow_each_other_without_a_hole() -> None:
    for zone in ("Europe/Berlin", "America/New_York", "America/Sao_Paulo", "America/Havana"):
        starts = [instant(day, 0, zone) for day in range(17_000, 17_800)]
        assert all(22 * HOUR < later - earlier < 26 * HOUR for earlier, later in pairwise(starts))


def test_a_midnight_that_does_not_exist_is_the_first_instant_of_its_date() -> None:
    # São Paulo, 2018-11-04: clocks went from 00:00 to 01:00.
    day = (datetime(2018, 11, 4) - datetime(1970, 1, 1)).days
    assert instant(day, 0, "America/Sao_Paulo") == ns("2018-11-04T03:00:00+00:00")
    assert instant(day, 30 * MINUTE + 5, "America/Sao_Paulo") == ns("2018-11-04T03:00:00+00:00")
    assert instant(day, HOUR, "America/Sao_Paulo") == ns("2018-11-04T03:00:00+00:00")


def test_a_midnight_that_exists_twice_is_the_first_of_both() -> None:
    # Havana, 2025-11-02: at 01:00 clocks went back to 00:00. What is past is in no doubt: it is the
    # same in all versions of the time zones.
    day = (datetime(2025, 11, 2) - datetime(1970, 1, 1)).days
    assert instant(day, 0, "America/Havana") == ns("2025-11-02T04:00:00+00:00")
    assert instant(day + 1, 0, "America/Havana") == ns("2025-11-03T05:00:00+00:00")


def test_an_offset_in_a_gap_is_the_first_instant_after_it() -> None:
    day = (datetime(2026, 3, 29) - datetime(1970, 1, 1)).days
    gap_ends = ns("2026-03-29T01:00:00+00:00")
    assert instant(day, 2 * HOUR + 30 * MINUTE, "Europe/Berlin") == gap_ends
    assert instant(day, 3 * HOUR, "Europe/Berlin") == gap_ends
    assert instant(day, 2 * HOUR, "Europe/Berlin") == gap_ends
    assert instant(day, 2 * HOUR - 1, "Europe/Berlin") == gap_ends - 1


def test_an_offset_that_exists_twice_is_the_first_of_both() -> None:
    day = (datetime(2026, 10, 25) - datetime(1970, 1, 1)).days
    assert instant(day, 2 * HOUR + 30 * MINUTE, "Europe/Berlin") == ns("2026-10-25T00:30:00+00:00")


def test_a_day_that_a_zone_left_out_holds_nothing() -> None:
    # Samoa had no 2011-12-30.
    rules = Hopping(size=DAY, timezone="Pacific/Apia")
    last = ns("2011-12-30T09:59:59+00:00")
    assert bounds(rules, last) == [(ns("2011-12-29T10:00:00+00:00"), last + S)]
    assert bounds(rules, last + S) == [(last + S, last + S + DAY)]


def test_weeks_of_a_zone_are_counted_in_dates_from_1970() -> None:
    rules = Hopping(size=7 * DAY, timezone="Europe/Berlin")
    ((start, end),) = bounds(rules, ns("2026-03-28T12:00:00+00:00"))
    # 1970-01-01 was a Thursday.
    assert datetime.fromtimestamp(start // S, UTC).isoformat() == "2026-03-25T23:00:00+00:00"
    assert end - start == 7 * DAY - HOUR


def test_hopping_days_overlap() -> None:
    rules = Hopping(size=3 * DAY, every=DAY, timezone="Europe/Berlin", offset=-2 * HOUR)
    found = bounds(rules, ns("2026-03-30T00:00:00+00:00"))
    assert [datetime.fromtimestamp(s // S, UTC).isoformat()[:16] for s, _ in found] == [
        "2026-03-27T21:00",
        "2026-03-28T21:00",
        "2026-03-29T20:00",
    ]
