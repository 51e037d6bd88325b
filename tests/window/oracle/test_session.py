"""Sessions by the oracle: the seeds' words, and the rules by hand."""

from __future__ import annotations

import pytest

from tests.window.oracle.events import Event, MicroBatch, Out
from tests.window.oracle.play import MINUTE, S, at_once, brief, briefs, ends, events, one_by_one
from tests.window.oracle.session import Session, SessionOracle


def session(gap: int = 5, max_duration: int | None = None, **fields: object) -> SessionOracle:
    return SessionOracle(Session(gap=gap, max_duration=max_duration, **fields))  # type: ignore[arg-type]


def dropped(outs: list[Out]) -> list[tuple[str, str]]:
    return [drop for out in outs for drop in out.dropped]


# ksqlDB


def test_pageviews_a_minute_apart_are_one_session_of_their_region() -> None:
    stream = [
        Event("a", 0, "Region_1"),
        Event("b", 10 * S, "Region_2"),
        Event("c", MINUTE, "Region_1"),
        Event("d", 2 * MINUTE + 1, "Region_1"),
    ]
    oracle = session(MINUTE, keyed=True)
    out = at_once(oracle, stream)
    assert [(b.ids, b.key, b.start, b.end) for b in out.batches] == [
        (("b",), "Region_2", 10 * S, 10 * S),
        (("a", "c"), "Region_1", 0, MINUTE),
    ]
    assert ends(oracle) == [f"flush [{2 * MINUTE + 1}, {2 * MINUTE + 1}] d"]


def test_a_session_of_one_record_starts_and_ends_with_it() -> None:
    oracle = session()
    at_once(oracle, events("a7"))
    out = oracle.step(MicroBatch(0, ended=True))
    assert [(b.start, b.end, b.latest) for b in out.batches] == [(7, 7, 7)]


def test_under_each_every_pageview_shows_its_session_so_far() -> None:
    out = at_once(session(emit="each"), events("a0 b5 c20 d15"))
    assert brief(out.batches) == ["each [0, 0] a", "each [0, 5] ab", "each [20, 20] c"] + [
        "each [15, 20] cd"
    ]


# The rules


def test_an_event_just_within_the_gap_joins_on_either_side() -> None:
    oracle = session(allowed_lateness=100)
    at_once(oracle, events("a10 b15 c5 d-1 e21"))
    assert ends(oracle) == ["flush [-1, -1] d", "flush [5, 15] abc", "flush [21, 21] e"]


def test_an_event_may_join_two_sessions_which_keep_the_order_of_arrival() -> None:
    oracle = session(allowed_lateness=100)
    at_once(oracle, events("a10 b20 c12 d21"))
    assert brief(at_once(oracle, events("e16")).batches) == []
    assert ends(oracle) == ["flush [10, 21] abcde"]


def test_under_changes_the_joined_session_is_emitted_and_nothing_is_taken_back() -> None:
    oracle = session(allowed_lateness=100, emit="changes")
    assert briefs(one_by_one(oracle, events("a10 b20 c15"))) == [
        ["changes [10, 10] a"],
        ["changes [20, 20] b"],
        ["changes [10, 20] abc"],
    ]


def test_a_session_closes_when_the_clock_passes_its_end_gap_and_lateness() -> None:
    oracle = session(allowed_lateness=3, keyed=True)
    stream = [Event("a", 10, "x"), Event("b", 18, "y"), Event("c", 19, "y")]
    assert briefs(one_by_one(oracle, stream)) == [[], [], ["final [10, 10] a"]]


@pytest.mark.parametrize("cut", [True, False])
def test_near_a_closed_session_an_event_starts_a_new_one_until_it_is_late_itself(
    cut: bool,
) -> None:
    stream = events("a10 b16 c14 d20 e15 f14")
    # Closed sessions give nothing back: c at 14 is near both a's session, closed at 16, and b's.
    oracle = session()
    outs = one_by_one(oracle, stream) if cut else [at_once(oracle, stream)]
    assert [b for out in outs for b in brief(out.batches)] == ["final [10, 10] a"]
    assert dropped(outs) == []
    assert ends(oracle) == ["flush [14, 20] bcdef"]


def test_a_lone_event_is_late_when_the_clock_is_past_its_time_gap_and_lateness() -> None:
    oracle = session(allowed_lateness=2, keyed=True)
    clock = Event("a", 100, "x")
    outs = one_by_one(oracle, [clock, Event("b", 93, "y"), Event("c", 92, "z")])
    assert dropped(outs) == [("c", "late")]


def test_an_event_near_an_open_session_is_not_late() -> None:
    oracle = session(allowed_lateness=2)
    outs = one_by_one(oracle, events("a100 b95 c90 d88 e86"))
    # d and e are older than 100 - 5 - 2, but the session they are near is open.
    assert dropped(outs) == []
    assert ends(oracle) == ["flush [86, 100] abcde"]


def test_an_event_near_a_closed_session_only_starts_a_new_one() -> None:
    oracle = session(keyed=True)
    stream = [Event("a", 10, "x"), Event("b", 16, "y"), Event("c", 12, "x")]
    assert briefs(one_by_one(oracle, stream)) == [[], ["final [10, 10] a"], []]
    out = at_once(oracle, [Event("d", 18, "y")])
    assert brief(out.batches) == ["final [12, 12] c"]


def test_nothing_is_remembered_of_a_session_that_idleness_closed() -> None:
    oracle = session(idle_timeout=30)
    oracle.step(MicroBatch(0, events("a10")))
    assert brief(oracle.step(MicroBatch(30)).batches) == ["idle [10, 10] a"]
    assert oracle.step(MicroBatch(31, events("b10"))).dropped == []
    assert ends(oracle, 31) == ["flush [10, 10] b"]


def test_a_joined_session_is_as_awake_as_its_last_event() -> None:
    oracle = session(idle_timeout=30, allowed_lateness=100)
    oracle.step(MicroBatch(0, events("a10 b20")))
    oracle.step(MicroBatch(20, events("c15")))
    assert oracle.step(MicroBatch(49)).batches == []
    assert brief(oracle.step(MicroBatch(50)).batches) == ["idle [10, 20] abc"]


def test_forward_tells_the_bounds_of_the_session_so_far() -> None:
    oracle = session(emit="forward")
    assert briefs(one_by_one(oracle, events("a10 b15 c12"))) == [
        ["forward [10, 10] a"],
        ["forward [10, 15] b"],
        ["forward [10, 15] c"],
    ]


# max_count, and max_duration from the start (Tenzir)


def test_the_event_that_reaches_the_largest_number_closes_its_session() -> None:
    oracle = session(max_count=2)
    assert briefs(one_by_one(oracle, events("a0 b1 c2"))) == [[], ["count [0, 1] ab"], []]
    assert ends(oracle) == ["flush [2, 2] c"]


def test_sessions_that_would_be_too_large_together_do_not_merge() -> None:
    oracle = session(max_count=4, allowed_lateness=100)
    at_once(oracle, events("a10 b12 c20 d21"))
    assert brief(at_once(oracle, events("e16")).batches) == ["count [10, 12] ab"]
    assert brief(at_once(oracle, events("f18")).batches) == ["count [16, 21] cdef"]
    assert brief(at_once(oracle, events("g16")).batches) == []
    assert ends(oracle) == ["flush [16, 16] g"]


def test_a_full_session_is_emitted_once_whatever_else_is_emitted() -> None:
    stream = events("a0 b1 c2")
    each = session(max_count=2, emit="each")
    assert briefs(one_by_one(each, stream)) == [
        ["each [0, 0] a"],
        ["each [0, 1] ab"],
        ["each [2, 2] c"],
    ]
    changes = session(max_count=2, emit="changes")
    assert brief(at_once(changes, stream).batches) == ["changes [0, 1] ab", "changes [2, 2] c"]
    both = session(max_count=2, emit="changes", emit_also=frozenset({"close"}))
    assert brief(at_once(both, stream).batches) == ["count [0, 1] ab", "changes [2, 2] c"]


def test_a_duration_from_the_start_includes_its_last_instant() -> None:
    oracle = session(gap=5, max_duration=8, from_start=True)
    assert briefs(one_by_one(oracle, events("a0 b4 c8 d12"))) == [[], [], [], ["final [0, 8] abc"]]
    assert ends(oracle) == ["flush [12, 12] d"]


def test_a_duration_from_the_start_may_be_shorter_than_the_gap() -> None:
    oracle = session(gap=60, max_duration=5, from_start=True)
    assert briefs(one_by_one(oracle, events("a0 b30 c31"))) == [[], ["final [0, 0] a"], []]
    assert ends(oracle) == ["flush [30, 31] bc"]


def test_an_event_is_late_when_the_session_of_it_alone_would_be_closed_by_its_duration() -> None:
    oracle = session(gap=60, max_duration=5, from_start=True, keyed=True)
    stream = [Event("a", 30, "x"), Event("b", 25, "y"), Event("c", 24, "z")]
    assert dropped(one_by_one(oracle, stream)) == [("c", "late")]


# max_duration (eKuiper)


@pytest.mark.parametrize(
    ("start", "cut"), [(0, 20), (1, 20), (9, 20), (10, 30), (11, 30), (-1, 10), (-10, 10)]
)
def test_a_session_is_cut_at_the_first_check_that_finds_it_too_long(start: int, cut: int) -> None:
    # Checks happen at 0, 10, 20, 30, …
    assert session(5, 10).cut(start) == cut


def test_events_after_the_cut_start_a_new_session_even_inside_the_gap() -> None:
    oracle = session(5, 10)
    out = at_once(oracle, events("a3 b8 c12 d16 e20 f21 g24"))
    assert brief(out.batches) == ["final [3, 20] abcde"]
    assert ends(oracle) == ["flush [21, 24] fg"]


def test_a_cut_session_closes_when_the_clock_passes_the_cut() -> None:
    oracle = session(5, 10, keyed=True, allowed_lateness=2)
    stream = [Event(n, t, "x") for n, t in (("a", 9), ("b", 14), ("c", 19))]
    at_once(oracle, stream)
    assert at_once(oracle, [Event("d", 22, "y")]).batches == []
    assert brief(at_once(oracle, [Event("e", 23, "y")]).batches) == ["final [9, 19] abc"]


def test_sessions_on_two_sides_of_a_cut_never_join() -> None:
    oracle = session(5, 10, allowed_lateness=100)
    at_once(oracle, events("a9 b14 c19 d21 e20"))
    assert ends(oracle) == ["flush [9, 20] abce", "flush [21, 21] d"]


def test_an_event_that_moves_the_start_moves_the_cut() -> None:
    # c(11) is 30, c(8) is 20: after the event at 8, one at 21 starts a new session.
    oracle = session(5, 10, allowed_lateness=100)
    at_once(oracle, events("a11 b16 c8 d20 e21"))
    assert ends(oracle) == ["flush [8, 20] abcd", "flush [21, 21] e"]


def test_the_old_cut_stays_when_the_session_reaches_past_the_new_one() -> None:
    oracle = session(5, 10, allowed_lateness=100)
    at_once(oracle, events("a11 b16 c21 d8 e26 f30 g31"))
    assert ends(oracle) == ["flush [8, 30] abcdef", "flush [31, 31] g"]


@pytest.mark.parametrize(("clock", "sessions"), [(20, 2), (21, 1)])
def test_the_old_cut_stays_when_the_clock_is_past_the_new_one(clock: int, sessions: int) -> None:
    oracle = session(5, 10, keyed=True, allowed_lateness=100)
    stream = [("a", 11, "x"), ("b", 16, "x"), ("c", clock, "y"), ("d", 8, "x"), ("e", 21, "x")]
    at_once(oracle, [Event(*said) for said in stream])
    found = [text for text in ends(oracle) if "c" not in text]
    assert len(found) == sessions


def test_two_sessions_join_where_the_later_starts_at_the_earliers_cut() -> None:
    oracle = session(5, 10, allowed_lateness=100)
    # c(5) is 20: the session that starts at 20 joins by the event at 15, the one at 21 does not.
    at_once(oracle, events("a5 b10 c20 d15"))
    assert ends(oracle) == ["flush [5, 20] abcd"]
    oracle = session(6, 10, allowed_lateness=100)
    at_once(oracle, events("a5 b10 c21 d15"))
    assert ends(oracle) == ["flush [5, 15] abd", "flush [21, 21] c"]


def test_a_joined_session_keeps_the_later_cut_when_it_reaches_past_the_earlier_one() -> None:
    oracle = session(5, 10, allowed_lateness=100)
    at_once(oracle, events("a8 b18 c22 d13 e26 f30 g31"))
    assert ends(oracle) == ["flush [8, 30] abcdef", "flush [31, 31] g"]


def test_a_joined_session_takes_the_earlier_cut_when_it_ends_before() -> None:
    oracle = session(5, 10, allowed_lateness=100)
    at_once(oracle, events("a8 b18 c13 d20 e21"))
    assert ends(oracle) == ["flush [8, 20] abcd", "flush [21, 21] e"]


def test_a_closed_cut_session_leaves_what_is_before_its_cut_to_the_next() -> None:
    oracle = session(5, 10)
    outs = one_by_one(oracle, events("a9 b14 c19 d21 e20"))
    assert briefs(outs) == [[], [], [], ["final [9, 19] abc"], []]
    assert ends(oracle) == ["flush [20, 21] de"]


def test_the_cut_into_micro_batches_does_not_matter() -> None:
    stream = events("a3 b8 c12 d5 e16 f20 g21 h19 i24 j60 k40 l56")
    whole = at_once(session(5, 10), stream)
    pieces = one_by_one(session(5, 10), stream)
    assert brief(whole.batches) == [text for texts in briefs(pieces) for text in texts]
    assert whole.dropped == dropped(pieces)
