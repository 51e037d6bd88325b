from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.core.durations import DAY, HOUR, SECOND, parse_duration
from streamer.core.timestamps import format_rfc3339
from streamer.window import Grid
from tests.examples import examples


def ns(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * SECOND


@pytest.mark.parametrize(
    ("size", "offset", "t", "end"),
    [
        ("1h", "0s", "2021-08-07T09:49:35", "2021-08-07T10:00:00Z"),
        ("1h", "0s", "2021-08-07T10:00:00", "2021-08-07T10:00:00Z"),
        ("1h", "0s", "2021-08-07T10:00:01", "2021-08-07T11:00:00Z"),
        ("24h", "-6h", "2021-08-07T17:00:00", "2021-08-07T18:00:00Z"),
        ("24h", "-6h", "2021-08-07T18:00:01", "2021-08-08T18:00:00Z"),
        ("1h", "30m", "2021-08-07T10:00:00", "2021-08-07T10:30:00Z"),
        ("10s", "9s", "2021-08-07T10:00:00", "2021-08-07T10:00:09Z"),
        ("10s", "-9s", "2021-08-07T10:00:00", "2021-08-07T10:00:01Z"),
        # As Go's Truncate has them, from year 1 on: weeks end on Mondays, and 7s not at 1970.
        ("168h", "0s", "2021-08-07T10:00:00", "2021-08-09T00:00:00Z"),
        ("7s", "0s", "1970-01-01T00:00:00", "1970-01-01T00:00:03Z"),
        ("7s", "0s", "2021-08-07T10:00:00", "2021-08-07T10:00:06Z"),
        ("7h", "0s", "2021-08-07T10:00:00", "2021-08-07T13:00:00Z"),
        ("1.5s", "0s", "2021-08-07T10:00:00", "2021-08-07T10:00:00Z"),
        ("1h", "0s", "1969-12-31T23:30:00", "1970-01-01T00:00:00Z"),
    ],
)
def test_a_window_ends_where_go_rounds(size: str, offset: str, t: str, end: str) -> None:
    length = parse_duration(size)
    grid = Grid(length, length, parse_duration(offset))
    assert format_rfc3339(grid.end_at_or_after(ns(t))) == end


@pytest.mark.parametrize(
    ("size", "seconds", "end"),
    [
        # time.Unix(seconds, 0).UTC().Truncate(size).UnixNano(), as Go 1.26.8 prints it
        ("7s", 1628330400, 1628330399000000000),
        ("7s", 0, -4000000000),
        ("7s", -1, -4000000000),
        ("7s", -9000000000, -9000000006000000000),
        ("7s", 9000000000, 8999999998000000000),
        ("11m", 1628330400, 1628329800000000000),
        ("11m", 0, -420000000000),
        ("11m", -1, -420000000000),
        ("11m", -9000000000, -9000000000000000000),
        ("11m", 9000000000, 8999999820000000000),
        ("13h", 1628330400, 1628326800000000000),
        ("13h", 0, -32400000000000),
        ("13h", -1, -32400000000000),
        ("13h", -9000000000, -9000000000000000000),
        ("13h", 9000000000, 8999982000000000000),
        ("100h", 1628330400, 1628323200000000000),
        ("100h", 0, -316800000000000),
        ("100h", -1, -316800000000000),
        ("100h", -9000000000, -9000316800000000000),
        ("100h", 9000000000, 8999683200000000000),
        ("168h", 1628330400, 1627862400000000000),
        ("168h", 0, -259200000000000),
        ("168h", -1, -259200000000000),
        ("168h", -9000000000, -9000288000000000000),
        ("168h", 9000000000, 8999769600000000000),
        ("1h40m", 1628330400, 1628329200000000000),
        ("1h40m", 0, -4800000000000),
        ("1h40m", -1, -4800000000000),
        ("1h40m", -9000000000, -9000004800000000000),
        ("1h40m", 9000000000, 8999995200000000000),
        ("777ms", 1628330400, 1628330399490000000),
        ("777ms", 0, -150000000),
        ("777ms", -1, -1704000000),
        ("777ms", -9000000000, -9000000000141000000),
        ("777ms", 9000000000, 8999999999841000000),
        ("1.000000007s", 1628330400, 1628330399347487271),
        ("1.000000007s", 0, -50825445),
        ("1.000000007s", -1, -1050825452),
        ("1.000000007s", -9000000000, -9000000000050825004),
        ("1.000000007s", 9000000000, 8999999999949174114),
        ("86399s", 1628330400, 1628247584000000000),
        ("86399s", 0, -27970000000000),
        ("86399s", -1, -27970000000000),
        ("86399s", -9000000000, -9000039002000000000),
        ("86399s", 9000000000, 8999983062000000000),
    ],
)
def test_ends_are_where_go_truncates_to(size: str, seconds: int, end: int) -> None:
    length = parse_duration(size)
    assert Grid(length, length).end_at_or_before(seconds * SECOND) == end


def test_an_end_belongs_to_its_window_and_the_start_does_not() -> None:
    grid = Grid(HOUR, HOUR)
    end = ns("2021-08-07T10:00:00")
    assert list(grid.windows_of(end)) == [end]
    assert list(grid.windows_of(end + 1)) == [end + HOUR]
    assert list(grid.windows_of(end - HOUR)) == [end - HOUR]
    assert list(grid.windows_of(end - HOUR + 1)) == [end]


def test_a_sliding_window_has_the_panes_between_all_starts_and_ends() -> None:
    grid = Grid(4, 10)  # ends ..., 4k; starts 4k - 10, which are 4k + 2 too
    first = grid.end_at_or_after(0)
    panes = sorted({grid.pane_of(t) for t in range(first, first + 8)})
    assert [pane - first for pane in panes] == [0, 2, 4, 6, 8]


def test_panes_at_the_ends_of_int64_stay_inside() -> None:
    grid = Grid(DAY, DAY)
    latest = 2**63 - 1
    assert grid.pane_of(latest) == latest
    assert list(grid.windows_of(grid.pane_of(latest))) == list(grid.windows_of(latest))
    assert grid.pane_of(-(2**63)) >= -(2**63)


grids = st.integers(1, 40).flatmap(
    lambda size: st.builds(Grid, st.integers(1, size), st.just(size), st.integers(-39, 39))
)


@settings(max_examples=examples(80, 300), deadline=None)
@given(grids, st.integers(-200, 200))
def test_all_times_of_a_pane_are_in_the_same_windows(grid: Grid, t: int) -> None:
    windows = [end for end in range(t - 50, t + 100) if grid.end_at_or_after(end) == end]
    assert list(grid.windows_of(t)) == [end for end in windows if end - grid.size < t <= end]
    pane = grid.pane_of(t)
    assert pane >= t
    assert list(grid.windows_of(pane)) == list(grid.windows_of(t))
    assert all(grid.pane_of(other) == pane for other in range(t, pane + 1))
    for end in grid.windows_of(t):
        ((after,), until) = grid.starts_of(end), end
        assert after < pane <= until


@settings(max_examples=100, deadline=None)
@given(grids, st.integers(-200, 200))
def test_ends_lie_around_a_time(grid: Grid, t: int) -> None:
    assert grid.end_before(t) < t <= grid.end_at_or_after(t)
    assert grid.end_at_or_after(t) - grid.end_before(t) == grid.epoch
    assert grid.end_at_or_before(t) in (t, grid.end_before(t))
    assert grid.index_of(grid.end_at_or_after(t)) == grid.index_of(grid.end_before(t)) + 1
