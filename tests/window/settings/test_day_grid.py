"""Windows of whole local days lie where the clocks of their zone put them."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.core.durations import DAY, HOUR, SECOND
from streamer.core.timestamps import format_rfc3339
from streamer.window.evaluate.message_slots import panes_of_times
from streamer.window.settings.day_grid import DayGrid
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.window_types import Tumbling
from tests.examples import examples
from tests.window.oracle.hopping import Hopping, bounds
from tests.window.oracle.streams import CHANGES

ZONES = ("Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Pacific/Apia")
APIA = 1_325_203_200  # 2011-12-30T00:00:00Z, between a Thursday and a Saturday in Apia


def ns(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * SECOND


def grid_of(zone: str, size: int = 1, every: int = 1, offset: int = 0) -> DayGrid:
    found = EventWindow(Tumbling(size * DAY, every * DAY, offset, zone)).grid
    assert isinstance(found, DayGrid)
    return found


@st.composite
def grids(draw: st.DrawFn) -> tuple[Hopping, DayGrid, int]:
    """Rules, their grid, and a time near a day on which clocks change."""
    zone = draw(st.sampled_from(ZONES))
    size = draw(st.integers(1, 4))
    every = draw(st.integers(1, size))
    offset = draw(st.integers(-24 * every + 1, 24 * every - 1)) * HOUR
    rules = Hopping(size=size * DAY, every=every * DAY, offset=offset, timezone=zone)
    near = draw(st.sampled_from([*CHANGES, APIA])) * SECOND
    time = near + draw(st.integers(-100, 100)) * HOUR + draw(st.integers(-1, 1))
    return rules, grid_of(zone, size, every, offset), time


@settings(max_examples=examples(100, 500), deadline=None)
@given(grids())
def test_a_time_belongs_to_the_windows_of_its_days(case: tuple[Hopping, DayGrid, int]) -> None:
    rules, grid, time = case
    expected = {(start - 1, end - 1) for start, end in bounds(rules, time)}
    ends = grid.windows_of(time)
    assert list(ends) == sorted({end for _, end in expected})
    assert {(start, end) for end in ends for start in grid.starts_of(end) if start < time} == {
        pair for pair in expected
    }
    assert grid.end_at_or_after(time) == ends[0]
    assert grid.last_end(time) == ends[-1]
    assert all(grid.end_at_or_before(end) == end for end in ends)
    assert all(grid.end_at_or_before(end - 1) < end for end in ends)


@settings(max_examples=examples(60, 300), deadline=None)
@given(grids())
def test_all_times_of_a_pane_belong_to_the_same_windows(
    case: tuple[Hopping, DayGrid, int],
) -> None:
    rules, grid, time = case
    pane = grid.pane_of(time)
    assert pane >= time
    for other in (pane, (time + pane) // 2):
        assert grid.pane_of(other) == pane
        assert bounds(rules, other) == bounds(rules, time)
    assert bounds(rules, pane + 1) != bounds(rules, time)


@settings(max_examples=examples(20, 100), deadline=None)
@given(grids(), st.lists(st.integers(-300, 300), min_size=1))
def test_panes_of_many_times_are_those_of_each(
    case: tuple[Hopping, DayGrid, int], hours: list[int]
) -> None:
    _, grid, time = case
    times = [time + hour * HOUR for hour in hours]
    found = panes_of_times(grid, np.array(times, np.int64)).tolist()
    assert found == [grid.pane_of(each) for each in times]


@pytest.mark.parametrize(
    ("day", "start", "end"),
    [
        ("2026-03-29T12:00", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"),
        ("2026-10-25T12:00", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"),
    ],
)
def test_a_day_is_23_or_25_hours_long_when_the_clocks_change(
    day: str, start: str, end: str
) -> None:
    grid = grid_of("Europe/Berlin")
    (last,) = grid.windows_of(ns(day))
    assert format_rfc3339(last + 1) == end
    assert [format_rfc3339(first + 1) for first in grid.starts_of(last)] == [start]


def test_two_windows_end_together_before_a_date_that_never_was() -> None:
    grid = grid_of("Pacific/Apia", size=2)
    last = grid.end_at_or_after((APIA - 12 * 3600) * SECOND)
    assert [format_rfc3339(start + 1) for start in grid.starts_of(last)] == [
        "2011-12-28T10:00:00Z",
        "2011-12-29T10:00:00Z",
    ]


def test_the_first_and_the_last_instant_of_64_bits_have_their_days() -> None:
    grid = grid_of("Europe/Berlin", size=3)
    for time in (-(2**63), 2**63 - 1):
        assert len(grid.windows_of(time)) == 3
        assert time <= grid.pane_of(time) < 2**63
