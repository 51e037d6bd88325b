"""Local days begin at midnight, or at an offset from it, on the clocks of their zone."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.core.durations import DAY, HOUR, MINUTE, SECOND
from streamer.window.settings.local_days import LocalDays
from tests.examples import examples

ZONES = (
    *("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Cairo"),
    *("America/Sao_Paulo", "Asia/Kolkata", "Asia/Tehran", "America/Juneau", "Asia/Manila", "UTC"),
)
LEAST, LAST = -(2**63), 2**63 - 1
EPOCH = datetime(1970, 1, 1)


def number(day: str) -> int:
    return (date.fromisoformat(day) - EPOCH.date()).days


def begin(zone: str, day: str, offset: int = 0) -> str:
    """Return when a day begins, in the zone's own words."""
    at = LocalDays(zone, offset).begin_of(number(day))
    assert at % SECOND == 0
    return datetime.fromtimestamp(at // SECOND, ZoneInfo(zone)).isoformat()


def length(zone: str, day: str) -> float:
    days = LocalDays(zone)
    return (days.begin_of(number(day) + 1) - days.begin_of(number(day))) / HOUR


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", "2026-03-29", 23),
        ("Europe/Berlin", "2026-10-25", 25),
        ("Europe/Berlin", "2026-11-21", 24),
        ("America/New_York", "2026-03-08", 23),
        ("America/New_York", "2026-11-01", 25),
        ("Australia/Lord_Howe", "2026-04-05", 24.5),
        ("Australia/Lord_Howe", "2026-10-04", 23.5),
        ("Africa/Cairo", "2025-04-25", 23),
        ("America/Sao_Paulo", "2018-11-04", 23),
        ("America/Juneau", "1867-10-19", 48),
        ("Pacific/Apia", "2011-12-29", 24),
        ("Pacific/Apia", "2011-12-30", 0),
        ("Pacific/Apia", "2011-12-31", 24),
    ],
)
def test_a_day_is_as_long_as_the_clocks_make_it(zone: str, day: str, hours: float) -> None:
    assert length(zone, day) == hours


@pytest.mark.parametrize(
    ("zone", "day", "first"),
    [
        ("America/Sao_Paulo", "2018-11-04", "2018-11-04T01:00:00-02:00"),
        ("Africa/Cairo", "2025-04-25", "2025-04-25T01:00:00+03:00"),
        ("Pacific/Apia", "2011-12-30", "2011-12-31T00:00:00+14:00"),
    ],
)
def test_a_midnight_that_does_not_exist_is_the_first_instant_after_the_jump(
    zone: str, day: str, first: str
) -> None:
    assert begin(zone, day) == first


@pytest.mark.parametrize(
    ("zone", "day", "first"),
    [
        # Clocks in Havana go from 01:00 back to 00:00.
        ("America/Havana", "2026-11-01", "2026-11-01T00:00:00-04:00"),
        # Those of Sao Paulo went from 24:00 back to 23:00: the day before was longer.
        ("America/Sao_Paulo", "2018-02-18", "2018-02-18T00:00:00-03:00"),
    ],
)
def test_a_midnight_that_comes_twice_is_the_first_of_both(zone: str, day: str, first: str) -> None:
    assert begin(zone, day) == first


@pytest.mark.parametrize(
    ("offset", "day", "first"),
    [
        (2 * HOUR + 30 * MINUTE, "2026-03-29", "2026-03-29T03:00:00+02:00"),
        (2 * HOUR + 30 * MINUTE, "2026-03-30", "2026-03-30T02:30:00+02:00"),
        (2 * HOUR + 30 * MINUTE, "2026-10-25", "2026-10-25T02:30:00+02:00"),
        (6 * HOUR, "2026-03-29", "2026-03-29T06:00:00+02:00"),
        (-6 * HOUR, "2026-03-30", "2026-03-29T18:00:00+02:00"),
        (-3 * DAY - HOUR, "2026-04-01", "2026-03-28T23:00:00+01:00"),
        (9 * DAY, "2026-03-20", "2026-03-29T00:00:00+01:00"),
    ],
)
def test_an_offset_is_wall_clock_time_and_one_in_a_gap_the_first_instant_after_it(
    offset: int, day: str, first: str
) -> None:
    assert begin("Europe/Berlin", day, offset) == first


def test_an_offset_counts_to_the_nanosecond_except_in_a_gap() -> None:
    days = LocalDays("Europe/Berlin", 2 * HOUR + 1)
    assert days.begin_of(number("2026-03-28")) % SECOND == 1
    assert days.begin_of(number("2026-03-29")) % SECOND == 0


@pytest.mark.parametrize("zone", ZONES)
def test_an_instant_at_a_beginning_is_in_the_day_and_the_one_before_is_not(zone: str) -> None:
    days = LocalDays(zone)
    for day in (-100_000, -1, 0, 1, 20_000, 100_000):
        at = days.begin_of(day)
        assert (days.day_of(at), days.day_of(at - 1)) == (day, day - 1)
        assert days.days_of(np.array([at, at - 1], np.int64)).tolist() == [day, day - 1]


@pytest.mark.parametrize(
    ("zone", "instant", "day"),
    [
        ("Europe/Berlin", "1970-01-01T00:00:00+00:00", "1970-01-01"),
        ("America/New_York", "1970-01-01T00:00:00+00:00", "1969-12-31"),
        ("Europe/Berlin", "1969-12-31T22:59:59+00:00", "1969-12-31"),
        ("Europe/Berlin", "1969-12-31T23:00:00+00:00", "1970-01-01"),
        ("Europe/Berlin", "2262-04-11T21:59:59+00:00", "2262-04-11"),
        ("Asia/Manila", "1677-09-22T00:00:00+00:00", "1677-09-21"),
    ],
)
def test_days_reach_from_1677_to_2262(zone: str, instant: str, day: str) -> None:
    seconds = int(datetime.fromisoformat(instant).timestamp())
    assert LocalDays(zone).day_of(seconds * SECOND) == number(day)


@pytest.mark.parametrize("offset", [0, 5 * HOUR, -5 * HOUR, 300 * DAY, -106_000 * DAY])
@pytest.mark.parametrize("zone", ["Pacific/Apia", "America/Juneau", "UTC"])
def test_the_first_and_the_last_nanosecond_have_days(zone: str, offset: int) -> None:
    days = LocalDays(zone, offset)
    found = days.days_of(np.array([LAST, LEAST, 0], np.int64)).tolist()
    assert found == [days.day_of(LAST), days.day_of(LEAST), days.day_of(0)]
    assert days.begin_of(found[1]) <= LEAST < days.begin_of(found[1] + 1)
    assert days.begin_of(found[0]) <= LAST < days.begin_of(found[0] + 1)


def test_no_times_have_no_days() -> None:
    assert LocalDays("UTC").days_of(np.array([], np.int64)).tolist() == []


def naive_begin(zone: str, day: int, offset: int) -> int:
    """Return the first second whose wall clock shows a time, or has jumped over it."""
    info = ZoneInfo(zone)
    wall = EPOCH + timedelta(days=day, seconds=offset // SECOND)
    for fold in (0, 1):
        at = wall.replace(tzinfo=info, fold=fold).astimezone(UTC)
        if at.astimezone(info).replace(tzinfo=None) == wall:
            return int(at.timestamp()) * SECOND + offset % SECOND
    second = wall.replace(tzinfo=info, fold=1).astimezone(UTC)
    while second.astimezone(info).replace(tzinfo=None) < wall:
        second += timedelta(seconds=1)
    return int(second.timestamp()) * SECOND


@settings(max_examples=examples(60, 600), deadline=None)
@given(
    zone=st.sampled_from(ZONES),
    at=st.one_of(
        st.integers(LEAST, LAST),
        st.integers(-40 * 365, 80 * 365).map(lambda day: day * DAY),
        st.integers(10**18, 2 * 10**18),
    ),
    offset=st.one_of(st.just(0), st.integers(-3 * DAY, 3 * DAY), st.just(2 * HOUR + 30 * MINUTE)),
    near=st.lists(st.integers(-2 * DAY, 2 * DAY), max_size=20),
)
def test_days_are_those_of_a_naive_calendar(
    zone: str, at: int, offset: int, near: list[int]
) -> None:
    days = LocalDays(zone, offset)
    times = [min(max(at + shift, LEAST), LAST) for shift in (0, *near)]
    found = days.days_of(np.array(times, np.int64)).tolist()
    assert found == [days.day_of(t) for t in times]
    for t, day in zip(times[:3], found, strict=False):
        first, following = naive_begin(zone, day, offset), naive_begin(zone, day + 1, offset)
        assert first <= t < following
        assert (days.begin_of(day), days.begin_of(day + 1)) == (first, following)


def test_odd_midnights_of_forty_years_are_where_a_naive_calendar_says() -> None:
    for zone in ("Africa/Cairo", "America/Sao_Paulo", "America/Havana"):
        days, info, odd = LocalDays(zone), ZoneInfo(zone), 0
        for day in range(number("1985-01-01"), number("2026-01-01")):
            midnight = (EPOCH + timedelta(days=day)).replace(tzinfo=info)
            if midnight.utcoffset() != midnight.replace(fold=1).utcoffset():
                odd += 1
                assert days.begin_of(day) == naive_begin(zone, day, 0)
        assert odd >= 5
