"""The blame of a clock: its holder, since when, and the windows that wait for it."""

from __future__ import annotations

from typing import Any

from streamer.core.durations import SECOND
from streamer.engine.report.clock_blame import ClockBlame, blame_clock
from streamer.window.inspect.window_query import WindowRow

ROWS = [
    WindowRow(None, 0, 10 * SECOND, 3, 300, 10 * SECOND),
    WindowRow(None, 10 * SECOND, 20 * SECOND, 2, 200, 20 * SECOND),
    WindowRow(None, 20 * SECOND, 30 * SECOND, 1, 100, 30 * SECOND),
]


def holder(name: str, ahead: int = 15 * SECOND, part: str = "") -> dict[str, Any]:
    fields = {"source": name, "time": 5 * SECOND, "ahead": ahead, "part": part}
    return {"clock_holder": fields}


def test_the_windows_that_the_furthest_source_would_close_wait() -> None:
    blame = blame_clock([holder("orders/1")], ROWS, 100, None)
    expected = ClockBlame(
        *("source", "orders/1", "", 5 * SECOND, 100, 15 * SECOND, 2, 5, 500), is_complete=True
    )
    assert blame == expected
    assert ClockBlame.from_fields(expected.to_fields()) == expected


def test_it_is_blamed_since_it_began_to_hold_the_clock() -> None:
    first = blame_clock([holder("a", part="one.ndjson")], ROWS, 100, None)
    again = blame_clock([holder("a")], ROWS, 200, first)
    other = blame_clock([holder("b")], ROWS, 300, again)
    assert [(one.since, one.part) for one in (first, again, other) if one] == [
        (100, "one.ndjson"),
        (100, "one.ndjson"),
        (300, ""),
    ]


def test_a_source_that_no_other_is_ahead_of_holds_nothing_back() -> None:
    assert blame_clock([holder("a", ahead=0)], ROWS, 100, None) is None
    assert blame_clock([{}], ROWS, 100, None) is None


def test_of_keys_with_clocks_of_their_own_the_oldest_window_s_is_blamed() -> None:
    rows = [
        WindowRow("ada", 0, 10, 3, None, 10, "key_time"),
        WindowRow("bob", 20, 30, 4, 70, 40, "key_time"),
        WindowRow("ada", 10, 20, 1, None, 20, "key_time"),
    ]
    blame = blame_clock([{}], rows, 100, None, is_complete=False)
    assert blame == ClockBlame("key", "ada", "", None, 100, 30, 2, 4, None, is_complete=False)
    assert blame_clock([{}], rows[::2], 100, None) is None
