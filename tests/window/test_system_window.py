"""Every rule of `system_window` that is a function of times, to the nanosecond."""

from __future__ import annotations

import pytest

from streamer.core.durations import MILLISECOND, SECOND, parse_duration
from streamer.window import SystemWindow, find_system_window_problems
from streamer.window.settings.back_pressure import BackPressure

END = 1628330400 * SECOND  # 2021-08-07T10:00:00Z, an end of every window here


def window(size: str, slide: str = "", offset: str = "", lateness: str = "") -> SystemWindow:
    return SystemWindow(
        parse_duration(size),
        parse_duration(slide) if slide else None,
        parse_duration(offset or "0s"),
        parse_duration(lateness or "0s"),
    )


def s(count: float) -> int:
    return int(count * SECOND)


@pytest.mark.parametrize(
    ("made", "t", "horizon"),
    [
        # The largest end before T - max(epoch, allowed_lateness).
        (window("10s"), END, END - s(20)),
        (window("10s"), END + 1, END - s(10)),
        (window("10s"), END + s(10), END - s(10)),
        (window("10s", lateness="9s"), END + 1, END - s(10)),
        (window("10s", slide="2s"), END + 1, END - s(2)),
        (window("10s", slide="2s", lateness="8s"), END + 1, END - s(8)),
        (window("10s", offset="3s"), END + 1, END - s(17)),
        (window("10s", offset="-3s"), END + s(7) + 1, END - s(3)),
        (window("10s"), -(2**63) + s(15), -(2**63)),  # none is earlier than int64 can say
    ],
)
def test_the_first_horizon_lets_the_previous_window_in(
    made: SystemWindow, t: int, horizon: int
) -> None:
    assert made.initial_closed_until(t) == horizon


@pytest.mark.parametrize(
    ("made", "t", "end"),
    [
        (window("10s"), END - 1, END - s(10)),
        (window("10s"), END, END),
        (window("10s", lateness="3s"), END + s(3) - 1, END - s(10)),
        (window("10s", lateness="3s"), END + s(3), END),
        (window("10s", slide="2s", lateness="3s"), END + s(3), END),
        (window("10s", slide="2s", lateness="3s"), END + s(5), END + s(2)),
        (window("10s", offset="9s"), END + s(9) - 1, END - s(1)),
        (window("10s", offset="9s"), END + s(9), END + s(9)),
    ],
)
def test_a_window_is_due_when_the_clock_reaches_its_end_and_lateness(
    made: SystemWindow, t: int, end: int
) -> None:
    assert made.closed_until(t) == end


@pytest.mark.parametrize(
    ("made", "t", "end"),
    [
        # More than 10 s overdue, which is one epoch too.
        (window("10s"), END + s(20), END),
        (window("10s"), END + s(20) + 1, END + s(10)),
        (window("10s"), END + s(10), END - s(10)),
        (window("10s"), END + s(10) + 1, END),
        # Second-long windows: 10 s, not one epoch.
        (window("1s"), END + s(10), END - s(1)),
        (window("1s"), END + s(10) + 1, END),
        # Longer ones: one epoch.
        (window("60s"), END + s(60), END - s(60)),
        (window("60s"), END + s(60) + 1, END),
        (window("60s", lateness="30s"), END + s(90), END - s(60)),
        (window("60s", lateness="30s"), END + s(90) + 1, END),
        # However small expire_after is, the previous window survives.
        (SystemWindow(s(10), expire_after=0), END + s(10), END - s(10)),
        (SystemWindow(s(10), expire_after=0), END + s(10) + 1, END),
        (SystemWindow(s(10), expire_after=s(25)), END + s(25), END - s(10)),
        (SystemWindow(s(10), expire_after=s(25)), END + s(25) + 1, END),
    ],
)
def test_a_window_expires_when_it_is_older_than_the_previous_and_overdue(
    made: SystemWindow, t: int, end: int
) -> None:
    # It was at work for ever, then not for long enough, then not at all.
    assert made.expired_until(t, BackPressure(((0, t),), 0, t)) == end
    assert (
        made.expired_until(t, BackPressure(((t - made.expire_delay, t),), 0, made.expire_delay))
        is None
    )
    assert made.expired_until(t, BackPressure((), 0, 0)) is None


def test_the_default_patience_is_an_epoch_and_ten_seconds_at_least() -> None:
    assert window("1s").expire_delay == s(10)
    assert window("1h").expire_delay == parse_duration("1h")
    assert window("1h", slide="5m").expire_delay == parse_duration("5m")
    assert SystemWindow(s(1), expire_after=7).expire_delay == 7


def test_due_times_are_rounded_up_to_whole_milliseconds() -> None:
    made = window("1500us")
    assert made.due_time(END) == END
    assert made.due_time(END + 1_500_000) == END + 2 * MILLISECOND
    assert window("10s", lateness="1ns").due_time(END) == END + MILLISECOND


@pytest.mark.parametrize("made", [window("10s"), window("10s", "3s", "1s", "2500us")])
def test_the_count_of_due_times_grows_by_one_at_each(made: SystemWindow) -> None:
    due = made.next_due_time(END)
    for _ in range(20):
        assert made.due_count(due) == made.due_count(due - 1) + 1
        assert made.next_due_time(due - 1) == due
        assert made.next_due_time(due) > due
        due = made.next_due_time(due)


def test_windows_shorter_than_a_millisecond_are_counted_once_a_millisecond() -> None:
    made = SystemWindow(300_000)
    assert made.next_due_time(END) == END + MILLISECOND
    assert made.due_count(END + MILLISECOND - 1) == made.due_count(END)
    assert made.due_count(END + 3 * MILLISECOND) == made.due_count(END) + 10


@pytest.mark.parametrize(
    ("settings", "field", "text"),
    [
        ({"size": None}, "size", "size is missing, but a window needs a length above 0s"),
        ({"size": 0}, "size", "size is 0s, but a window needs a length above 0s"),
        ({"size": -1}, "size", "size is -1ns"),
        ({"slide": s(10)}, "slide", "slide is 10s, but it must be shorter than the window's"),
        ({"slide": -1}, "slide", "slide is -1ns, but it must not be negative"),
        ({"offset": s(10)}, "offset", "offset is 10s, but it must be within the window's size"),
        ({"offset": -s(10)}, "offset", "offset is -10s"),
        ({"offset": s(2), "slide": s(2)}, "offset", "offset is 2s, but it must be within the sl"),
        ({"offset": -s(2), "slide": s(2)}, "offset", "within the slide, 2s"),
        (
            {"allowed_lateness": s(10)},
            "allowed_lateness",
            "allowed_lateness is 10s, but it must be",
        ),
        ({"allowed_lateness": -1}, "allowed_lateness", "must not be negative"),
        ({"expire_after": -1}, "expire_after", "must not be negative"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(
    settings: dict[str, int | None], field: str, text: str
) -> None:
    found = find_system_window_problems(**{"size": s(10), **settings})
    assert [name for name, _ in found] == [field]
    assert text in found[0][1]


def test_all_problems_are_told_at_once() -> None:
    found = find_system_window_problems(s(10), s(11), s(12), s(13), -1)
    assert [name for name, _ in found] == ["slide", "offset", "allowed_lateness", "expire_after"]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"slide": s(10) - 1},
        {"slide": 0},
        {"offset": s(10) - 1},
        {"offset": 1 - s(10)},
        {"slide": s(3), "offset": s(3) - 1},
        {"allowed_lateness": s(10) - 1},
        {"expire_after": 0},
    ],
)
def test_a_setting_at_the_edge_is_taken(settings: dict[str, int]) -> None:
    assert find_system_window_problems(s(10), **settings) == []
