"""Tumbling and hopping windows by the oracle: the seeds' examples, and the rules by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from tests.window.oracle.events import KEY_FAILS, Event, MicroBatch
from tests.window.oracle.hopping import Hopping, HoppingOracle, bounds, instant
from tests.window.oracle.intake import DAY
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
)

NOON = 1_700_049_600 * S  # 2023-11-15T12:00:00Z


def ns(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp()) * S


def tumbling(size: int = 10, **fields: object) -> HoppingOracle:
    return HoppingOracle(Hopping(size=size, **fields))  # type: ignore[arg-type]


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


# Grids


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
    # Havana, 2026-11-01: at 01:00 clocks went back to 00:00.
    day = (datetime(2026, 11, 1) - datetime(1970, 1, 1)).days
    assert instant(day, 0, "America/Havana") == ns("2026-11-01T04:00:00+00:00")
    assert instant(day + 1, 0, "America/Havana") == ns("2026-11-02T05:00:00+00:00")


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


# Order of decisions


def test_the_first_reason_wins() -> None:
    oracle = tumbling(filtered=True, keyed=True, max_ahead=10)
    stream = [
        Event("ok", 30, "k"),
        Event("a", None, KEY_FAILS, failed=True, filter=False),
        Event("b", None, KEY_FAILS, filter=False),
        Event("c", None, KEY_FAILS),
        Event("d", 31, KEY_FAILS),
        Event("e", 5, KEY_FAILS),
        Event("f", 5, "k"),
    ]
    out = at_once(oracle, stream, t=20)
    assert (out.failed, out.filtered) == (["a"], ["b"])
    assert out.dropped == [("c", "timestamp"), ("d", "future"), ("e", "key"), ("f", "late")]


def test_what_is_too_far_ahead_moves_no_clock() -> None:
    oracle = tumbling(max_ahead=10)
    out = at_once(oracle, events("a5 b31 c6 d30"), t=20)
    assert out.dropped == [("b", "future")]
    assert brief(out.batches) == ["final [0, 10] ac"]


def test_keys_are_equal_as_json_values_and_shown_as_first_spelled() -> None:
    keys: list[object] = [1.0, "1", 1, True, None, {"a": 1, "b": [2]}, {"b": [2.0], "a": 1}]
    oracle = tumbling(keyed=True)
    at_once(oracle, [Event(f"{n}", 3, key) for n, key in enumerate(keys)])
    out = oracle.step(MicroBatch(0, ended=True))
    assert [(b.ids, b.window_key) for b in out.batches] == [
        (("0", "2"), "1.0"),
        (("1",), "1"),
        (("3",), "true"),
        (("4",), "null"),
        (("5", "6"), '{"a":1,"b":[2]}'),
    ]


# Clocks


def test_the_clock_before_an_event_is_of_earlier_micro_batches_and_its_own_partition() -> None:
    oracle = tumbling()
    stream = [Event("a", 3), Event("b", 12), Event("c", 4, partition=1), Event("d", 5)]
    out = at_once(oracle, stream)
    assert out.dropped == [("d", "late")]
    assert brief(out.batches) == ["final [0, 10] ac"]
    assert at_once(oracle, [Event("e", 6, partition=2)]).dropped == [("e", "late")]


def test_a_dropped_event_moves_no_clock() -> None:
    oracle = tumbling(keyed=True)
    out = at_once(oracle, [Event("a", 50, KEY_FAILS), Event("b", 3, "k")])
    assert out.dropped == [("a", "key")]
    assert out.batches == []


def test_with_the_system_clock_nothing_is_late_in_the_first_micro_batch() -> None:
    oracle = tumbling(clock="system")
    first = oracle.step(MicroBatch(100, events("a3 b95 c105 d200")))
    assert first.dropped == []
    assert brief(first.batches) == ["final [0, 10] a", "final [90, 100] b"]
    second = oracle.step(MicroBatch(120, events("e98 f109")))
    assert second.dropped == [("e", "late")]
    assert brief(second.batches) == ["final [100, 110] cf"]


def test_the_system_clock_closes_nothing_while_the_first_backlog_is_worked_off() -> None:
    oracle = tumbling(clock="system")
    oracle.step(MicroBatch(10, events("a13")))
    out = oracle.step(MicroBatch(100, events("b14 c55"), restarted=True, backlog=True))
    assert (out.dropped, out.batches) == ([], [])
    out = oracle.step(MicroBatch(101, events("d15 e9"), backlog=True))
    assert (out.dropped, out.batches) == ([("e", "late")], [])
    out = oracle.step(MicroBatch(102, events("f16")))
    assert brief(out.batches) == ["final [10, 20] abdf", "final [50, 60] c"]
    assert oracle.step(MicroBatch(103, events("g17"))).dropped == [("g", "late")]


def test_the_stream_clock_closes_in_a_backlog_too() -> None:
    oracle = tumbling()
    out = oracle.step(MicroBatch(0, events("a3 b10"), backlog=True))
    assert brief(out.batches) == ["final [0, 10] a"]


def test_a_recorded_time_that_runs_back_is_held() -> None:
    oracle = tumbling(clock="system")
    oracle.step(MicroBatch(30))
    out = oracle.step(MicroBatch(12, (Event("a", "now"), Event("b", 15))))
    assert out.dropped == [("b", "late")]
    assert ends(oracle, 12) == ["flush [30, 40] a"]


def test_a_keys_clock_is_forgotten_after_key_retention() -> None:
    oracle = tumbling(keyed=True, clock_scope="key", key_retention=100)
    oracle.step(MicroBatch(0, (Event("a", 50, "x"), Event("b", 50, "y"))))
    oracle.step(MicroBatch(50, (Event("c", 51, "y"),)))
    out = oracle.step(MicroBatch(99, (Event("d", 5, "x"),)))
    assert out.dropped == [("d", "late")]  # and does not keep the clock
    out = oracle.step(MicroBatch(100, (Event("e", 5, "x"), Event("f", 5, "y"))))
    assert out.dropped == [("f", "late")]
    assert ends(oracle) == ["flush [0, 10] e", "flush [50, 60] a", "flush [50, 60] bc"]


# Idle windows


def test_a_window_closes_when_its_last_event_was_taken_idle_timeout_ago() -> None:
    oracle = tumbling(idle_timeout=30)
    oracle.step(MicroBatch(0, events("a3")))
    oracle.step(MicroBatch(20, events("b4")))
    assert oracle.step(MicroBatch(49)).batches == []
    assert brief(oracle.step(MicroBatch(50)).batches) == ["idle [0, 10] ab"]
    late = oracle.step(MicroBatch(51, events("c5 d15")))
    assert late.dropped == [("c", "late")]
    assert brief(oracle.step(MicroBatch(60, events("e25"))).batches) == ["final [10, 20] d"]


def test_due_by_the_clock_and_by_idleness_at_once_is_final() -> None:
    oracle = tumbling(idle_timeout=30)
    oracle.step(MicroBatch(0, events("a3")))
    out = oracle.step(MicroBatch(40, events("b10")))
    assert brief(out.batches) == ["final [0, 10] a"]


def test_only_the_windows_an_event_is_taken_into_are_no_longer_idle() -> None:
    oracle = tumbling(every=5, idle_timeout=30)
    oracle.step(MicroBatch(0, events("a7")))
    out = oracle.step(MicroBatch(30, events("b3")))
    assert brief(out.batches) == ["idle [5, 15] a"]
    assert oracle.held() == {"a", "b"}


def test_time_while_the_program_is_down_or_behind_is_not_idle() -> None:
    oracle = tumbling(idle_timeout=30)
    oracle.step(MicroBatch(0, events("a3")))
    oracle.step(MicroBatch(20))  # 20
    oracle.step(MicroBatch(500, restarted=True, backlog=True))
    oracle.step(MicroBatch(600, backlog=True))
    oracle.step(MicroBatch(700))
    oracle.step(MicroBatch(705))  # 25
    oracle.step(MicroBatch(800, lag=True))
    assert oracle.step(MicroBatch(900)).batches == []
    assert oracle.step(MicroBatch(904)).batches == []  # 29
    assert brief(oracle.step(MicroBatch(905)).batches) == ["idle [0, 10] a"]


def test_a_dropped_event_does_not_keep_a_window_awake() -> None:
    oracle = tumbling(idle_timeout=30, max_ahead=0, clock="stream")
    oracle.step(MicroBatch(5, events("a3")))
    out = oracle.step(MicroBatch(35, events("b36")))
    assert (out.dropped, brief(out.batches)) == ([("b", "future")], ["idle [0, 10] a"])


# What is emitted


def test_changes_emits_what_changed_once_a_micro_batch_and_not_again_at_the_close() -> None:
    oracle = tumbling(every=5, emit="changes")
    assert brief(at_once(oracle, events("a7 b8")).batches) == [
        "changes [0, 10] ab",
        "changes [5, 15] ab",
    ]
    assert brief(at_once(oracle, events("c12")).batches) == [
        "changes [5, 15] abc",
        "changes [10, 20] c",
    ]
    assert brief(at_once(oracle, events("d40")).batches) == [
        "changes [35, 45] d",
        "changes [40, 50] d",
    ]
    assert ends(oracle) == []


def test_a_window_that_changes_and_closes_in_one_micro_batch_is_emitted_as_changed() -> None:
    out = at_once(tumbling(emit="changes"), events("a3 b10"))
    assert brief(out.batches) == ["changes [0, 10] a", "changes [10, 20] b"]


def test_each_emits_after_every_event_by_end() -> None:
    out = at_once(tumbling(every=5, emit="each", allowed_lateness=5), events("a7 b3"))
    assert brief(out.batches) == [
        "each [0, 10] a",
        "each [5, 15] a",
        "each [-5, 5] b",
        "each [0, 10] ab",
    ]


def test_forward_sends_messages_on_once_a_window_and_micro_batch_and_keeps_none() -> None:
    oracle = tumbling(every=5, emit="forward")
    assert brief(at_once(oracle, events("a7 b8")).batches) == [
        "forward [0, 10] ab",
        "forward [5, 15] ab",
    ]
    out = at_once(oracle, events("c8"))
    assert brief(out.batches) == ["forward [0, 10] c", "forward [5, 15] c"]
    assert oracle.held() == set()
    assert at_once(oracle, events("d30 e2")).dropped == [("e", "late")]
    assert ends(oracle) == []


def test_the_end_of_input_flushes_or_keeps_and_what_is_due_is_final() -> None:
    oracle = tumbling()
    out = oracle.step(MicroBatch(0, events("a3 b10"), ended=True))
    assert brief(out.batches) == ["final [0, 10] a", "flush [10, 20] b"]
    oracle = tumbling(end_of_input="keep")
    out = oracle.step(MicroBatch(0, events("a3 b10"), ended=True))
    assert brief(out.batches) == ["final [0, 10] a"]
    assert oracle.held() == {"b"}


def test_messages_of_a_window_keep_the_order_they_arrived_in() -> None:
    out = at_once(tumbling(), events("a9 b3 c5 d10"))
    assert brief(out.batches) == ["final [0, 10] abc"]
    assert out.batches[0].latest == 9
