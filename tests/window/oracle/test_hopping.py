"""Tumbling and hopping windows by the oracle: the examples of ksqlDB, Tenzir and eKuiper."""

from __future__ import annotations

from tests.window.oracle.events import Event
from tests.window.oracle.hopping import Hopping, bounds
from tests.window.oracle.play import (
    HOUR,
    MINUTE,
    S,
    at_once,
    brief,
    briefs,
    ends,
    events,
    one_by_one,
    tumbling,
)

NOON = 1_700_049_600 * S  # 2023-11-15T12:00:00Z


# ksqlDB


def test_the_order_count_table_of_ksqldb_comes_out_row_by_row() -> None:
    # The zip code of the page's last row is a misprint for 94041: its count proves it.
    orders = [(0, 2), (1, 23), (3, 0), (5, 30), (4, 0), (6, 10)]
    stream = [
        Event(f"100_{n}", NOON + m * MINUTE + s * S, "94041") for n, (m, s) in enumerate(orders, 1)
    ]
    oracle = tumbling(5 * MINUTE, keyed=True, emit="each", allowed_lateness=MINUTE)
    out = at_once(oracle, stream)
    rows = [
        ((b.start - NOON) // MINUTE, (b.end - NOON) // MINUTE, (b.latest - NOON) // S, len(b.ids))  # type: ignore[operator]
        for b in out.batches
    ]
    assert rows == [
        (0, 5, 2, 1),
        (0, 5, 83, 2),
        (0, 5, 180, 3),
        (5, 10, 330, 1),
        (0, 5, 240, 4),
        (5, 10, 370, 2),
    ]
    assert {b.reason for b in out.batches} == {"each"}
    assert {b.window_key for b in out.batches} == {"94041"}


def test_after_the_grace_period_of_the_table_an_order_is_late() -> None:
    oracle = tumbling(5 * MINUTE, keyed=True, emit="each", allowed_lateness=MINUTE)
    late = Event("late", NOON + 4 * MINUTE, "94041")
    at_once(oracle, [Event("clock", NOON + 6 * MINUTE - 1, "94041")])
    assert at_once(oracle, [Event("in time", late.time, "94041")]).dropped == []
    at_once(oracle, [Event("clock2", NOON + 6 * MINUTE, "94041")])
    assert at_once(oracle, [late]).dropped == [("late", "late")]


def test_two_hours_of_grace_take_an_order_just_under_three_hours_old() -> None:
    oracle = tumbling(HOUR, keyed=True, allowed_lateness=2 * HOUR)
    out = at_once(oracle, [Event("a", NOON + 3 * HOUR - 1, "z"), Event("b", NOON, "z")])
    assert out.dropped == []
    out = at_once(oracle, [Event("c", NOON + 3 * HOUR, "z"), Event("d", NOON, "z")])
    assert out.dropped == [("d", "late")]
    assert [b.ids for b in out.batches] == [("b",)]


def test_four_attempts_in_five_seconds_are_one_windows_and_a_fifth_second_is_anothers() -> None:
    stream = [Event(f"a{n}", n * S, "card") for n in (0, 1, 3, 4, 5)]
    out = at_once(tumbling(5 * S, keyed=True), stream)
    assert [b.ids for b in out.batches] == [("a0", "a1", "a3", "a4")]


def test_thirty_second_windows_that_hop_by_ten_hold_an_event_three_times() -> None:
    rules = Hopping(size=30 * S, every=10 * S)
    assert bounds(rules, 35 * S) == [(10 * S, 40 * S), (20 * S, 50 * S), (30 * S, 60 * S)]
    assert bounds(rules, 30 * S) == bounds(rules, 40 * S - 1)


# Tenzir


def test_an_event_at_the_end_belongs_to_the_next_window() -> None:
    assert ends(oracle := tumbling()) == []
    out = at_once(oracle, events("a0 b9 c10"))
    assert brief(out.batches) == ["final [0, 10] ab"]
    assert ends(oracle) == ["flush [10, 20] c"]


def test_a_window_closes_when_the_clock_reaches_its_end_plus_the_tolerance() -> None:
    oracle = tumbling(allowed_lateness=5)
    assert briefs(one_by_one(oracle, events("a3 b14 c4 d15 e5"))) == [
        [],
        [],
        [],
        ["final [0, 10] ac"],
        [],
    ]


def test_an_event_is_late_when_an_earlier_one_of_its_batch_closed_its_window() -> None:
    out = at_once(tumbling(), events("a3 b10 c9 d11"))
    assert out.dropped == [("c", "late")]
    assert brief(out.batches) == ["final [0, 10] a"]


def test_a_late_event_is_still_delivered_to_those_of_its_windows_that_are_open() -> None:
    oracle = tumbling(every=5)
    out = at_once(oracle, events("a7 b12 c6 d4"))
    assert out.dropped == [("d", "late")]
    assert brief(out.batches) == ["final [0, 10] a"]
    assert ends(oracle) == ["flush [5, 15] abc", "flush [10, 20] b"]


def test_each_key_advances_its_own_clock_under_clock_scope_key() -> None:
    out = at_once(
        tumbling(keyed=True, clock_scope="key"),
        [Event("a", 3, "x"), Event("b", 33, "y"), Event("c", 4, "x"), Event("d", 10, "x")],
    )
    assert out.dropped == []
    assert brief(out.batches) == ["final [0, 10] ac"]


def test_one_clock_closes_the_windows_of_all_keys_by_end_then_first_arrival() -> None:
    stream = [Event("a", 13, "x"), Event("b", 3, "y"), Event("c", 4, "x"), Event("d", 40, "y")]
    out = at_once(tumbling(keyed=True, allowed_lateness=10), stream)
    assert [(b.ids, b.key) for b in out.batches] == [
        (("b",), "y"),
        (("c",), "x"),
        (("a",), "x"),
    ]


# eKuiper


def test_ten_second_windows_end_at_every_tenth_second_whenever_the_stream_starts() -> None:
    assert bounds(Hopping(size=10 * S), NOON + 7 * S) == [(NOON, NOON + 10 * S)]
    assert bounds(Hopping(size=10 * S, every=5 * S), NOON + 7 * S) == [
        (NOON, NOON + 10 * S),
        (NOON + 5 * S, NOON + 15 * S),
    ]


def test_a_filter_runs_before_the_window_and_what_it_drops_moves_no_clock() -> None:
    stream = [
        Event("a", 3),
        Event("b", 50, filter=False),
        Event("c", 60, filter="error"),
        Event("d", None, filter=False),
        Event("e", 4),
    ]
    out = at_once(tumbling(filtered=True), stream)
    assert (out.filtered, out.dropped, out.batches) == (["b", "c", "d"], [], [])


def test_an_error_goes_straight_on_and_is_in_no_window() -> None:
    oracle = tumbling(filtered=True)
    out = at_once(oracle, [Event("a", 3), Event("b", 50, failed=True, filter=False), Event("c", 4)])
    assert (out.failed, out.filtered, out.batches) == (["b"], [], [])
    assert ends(oracle) == ["flush [0, 10] ac"]
