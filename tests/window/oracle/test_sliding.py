"""Sliding windows by the oracle: KIP-450's and eKuiper's words, and the rules by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.window.oracle.events import Event, MicroBatch
from tests.window.oracle.play import at_once, brief, briefs, ends, events, one_by_one
from tests.window.oracle.sliding import Sliding, SlidingOracle
from tests.window.oracle.sliding_event import EventOracle, EventSliding
from tests.window.oracle.sliding_forward import ForwardOracle
from tests.window.oracle.sliding_kafka import MS, KafkaOracle, KafkaSliding


def forward(size: int = 10, **fields: object) -> ForwardOracle:
    return ForwardOracle(Sliding(size=size, **fields))  # type: ignore[arg-type]


def event(size: int = 10, **fields: object) -> EventOracle:
    return EventOracle(EventSliding(size=size, **fields))  # type: ignore[arg-type]


def kafka(size: int = 10, lateness: int = 0, **fields: object) -> KafkaOracle:
    return KafkaOracle(KafkaSliding(size=size * MS, allowed_lateness=lateness * MS, **fields))  # type: ignore[arg-type]


def ms(text: str) -> list[Event]:
    """Events at milliseconds."""
    return [Event(e.id, e.time * MS) for e in events(text) if isinstance(e.time, int)]


def in_ms(oracle: KafkaOracle, stream: list[Event]) -> list[str]:
    """What there is at the end, in milliseconds."""
    at_once(oracle, stream)
    out = oracle.step(MicroBatch(0, ended=True))
    return [f"[{b.start / MS:g}, {b.end / MS:g}] {''.join(b.ids)}" for b in out.batches]  # type: ignore[operator]


# forward (KIP-450)


def test_windows_are_defined_forwards_and_inclusive_at_both_ends() -> None:
    oracle = forward(allowed_lateness=100)
    at_once(oracle, events("a0 b5 c10 d16"))
    assert ends(oracle) == [
        "flush [0, 10] abc",
        "flush [5, 15] bc",
        "flush [10, 20] cd",
        "flush [16, 26] d",
    ]


def test_each_distinct_timestamp_gives_exactly_one_output() -> None:
    oracle = forward()
    outs = one_by_one(oracle, events("a0 b5 c5 d40"))
    assert briefs(outs) == [[], [], [], ["final [0, 10] abc", "final [5, 15] bc"]]
    assert ends(oracle) == ["flush [40, 50] d"]


@pytest.mark.parametrize("grace", [0, 3])
def test_a_window_is_output_when_its_end_is_before_stream_time_less_the_grace(grace: int) -> None:
    oracle = forward(allowed_lateness=grace)
    at_once(oracle, [Event("a", 0), Event("b", 10 + grace)])
    assert brief(at_once(oracle, [Event("c", 10 + grace)]).batches) == []
    out = at_once(oracle, [Event("d", 11 + grace)])
    assert [b.ids[0] for b in out.batches] == ["a"]


def test_out_of_order_data_within_the_grace_is_kept_and_triggers_nothing() -> None:
    oracle = forward(allowed_lateness=5)
    outs = one_by_one(oracle, events("a0 b12 c3 d12"))
    assert briefs(outs) == [[], [], [], []]
    # c joins a's window and opens its own, which holds b.
    assert ends(oracle) == ["flush [0, 10] ac", "flush [3, 13] bcd", "flush [12, 22] bd"]


def test_out_of_order_data_beyond_the_grace_is_dropped() -> None:
    oracle = forward(allowed_lateness=5)
    outs = one_by_one(oracle, events("a30 b15 c14"))
    assert [out.dropped for out in outs] == [[], [], [("c", "late")]]
    assert ends(oracle) == ["flush [15, 25] b", "flush [30, 40] a"]


def test_an_out_of_order_event_joins_only_those_windows_that_are_open_for_it() -> None:
    # At 12 the window [0, 10] is output; the event at 8 does not open it again.
    for outs in (
        one_by_one(forward(), events("a0 b11 c8 d19")),
        [at_once(forward(), events("a0 b11 c8 d19"))],
    ):
        assert [text for texts in briefs(outs) for text in texts] == [
            "final [0, 10] a",
            "final [8, 18] bc",
        ]


def test_an_out_of_order_event_at_a_time_that_has_a_window_opens_none() -> None:
    oracle = forward(allowed_lateness=50)
    at_once(oracle, events("a5 b9 c5"))
    assert ends(oracle) == ["flush [5, 15] abc", "flush [9, 19] b"]


def test_under_each_an_event_shows_every_window_it_changes_by_end() -> None:
    out = at_once(forward(emit="each"), events("a5 b9 c5"))
    assert brief(out.batches) == [
        "each [5, 15] a",
        "each [5, 15] ab",
        "each [9, 19] b",
        "each [5, 15] abc",
    ]


def test_a_window_that_idleness_closed_takes_nothing_more_but_others_hold_its_messages() -> None:
    oracle = forward(idle_timeout=30, allowed_lateness=50)
    oracle.step(MicroBatch(0, events("a10")))
    assert brief(oracle.step(MicroBatch(30)).batches) == ["idle [10, 20] a"]
    out = oracle.step(MicroBatch(31, events("b10 c12 d8")))
    assert out.dropped == [("b", "late")]
    assert ends(oracle, 31) == ["flush [8, 18] acd", "flush [12, 22] c"]


def test_keys_have_windows_of_their_own_and_one_clock() -> None:
    stream = [Event("a", 0, 1), Event("b", 5, 2), Event("c", 16, 1.0)]
    oracle = forward(keyed=True)
    assert brief(at_once(oracle, stream).batches) == ["final [0, 10] a", "final [5, 15] b"]


def test_counting_as_in_the_kip_counts_every_window_of_a_word() -> None:
    # groupBy(value).windowedBy(SlidingWindows.of(10 ms)).count()
    stream = [Event("w1", 1, "hello"), Event("w2", 7, "hello"), Event("w3", 12, "hello")]
    oracle = forward(keyed=True)
    at_once(oracle, stream)
    at_once(oracle, [Event("w4", 50, "world")])
    oracle = forward(keyed=True)
    out = at_once(oracle, [*stream, Event("w4", 50, "world")])
    assert [(b.start, b.end, len(b.ids)) for b in out.batches] == [(1, 11, 2), (7, 17, 2)] + [
        (12, 22, 1)
    ]


# kafka (Kafka Streams as released)


def test_a_left_window_ends_at_each_event_and_a_right_one_begins_after_it() -> None:
    # Left: [-10, 0], [-5, 5], [6, 16]. Right, where something falls in: [1, 11], [6, 16].
    assert in_ms(kafka(lateness=100), ms("a0 b5 c16")) == [
        "[-10, 0] a",
        "[-5, 5] ab",
        "[1, 11] b",
        "[6, 16] c",
    ]


def test_a_left_and_a_right_window_of_the_same_bounds_are_one() -> None:
    # The right window of a and the left one of b.
    assert in_ms(kafka(lateness=100), ms("a0 b11")) == ["[-10, 0] a", "[1, 11] b"]


def test_an_event_at_the_time_of_another_opens_nothing() -> None:
    assert in_ms(kafka(lateness=100), ms("a5 b5")) == ["[-5, 5] ab"]


def test_times_are_rounded_down_to_milliseconds() -> None:
    oracle = kafka(lateness=100)
    stream = [Event("a", 5 * MS + 999_999), Event("b", 5 * MS), Event("c", -1)]
    assert in_ms(oracle, stream) == ["[-11, -1] c", "[-5, 5] abc", "[0, 10] ab"]


def test_a_right_window_opened_over_messages_already_there_counts_as_changed() -> None:
    oracle = kafka(lateness=100, emit="changes")
    at_once(oracle, ms("a10"))
    out = at_once(oracle, ms("b5"))
    # b's left window, b's right window over a, and a's left window, which holds b.
    assert [(b.start // MS, b.end // MS, b.ids) for b in out.batches if b.start is not None] == [  # type: ignore[operator]
        (-5, 5, ("b",)),
        (0, 10, ("a", "b")),
        (6, 16, ("a",)),
    ]


def test_a_window_of_kafka_closes_when_its_end_is_before_the_clock_less_the_grace() -> None:
    oracle = kafka(lateness=3)
    outs = one_by_one(oracle, ms("a0 b3 c4"))
    assert [[b.ids for b in out.batches] for out in outs] == [[], [], [("a",)]]


def test_an_event_is_late_when_no_open_window_holds_it() -> None:
    oracle = kafka()
    # 90 is in the open [90, 100]; 89 is in none, though its right window [90, 100] is open.
    outs = one_by_one(oracle, ms("a100 b90 c89"))
    assert [out.dropped for out in outs] == [[], [], [("c", "late")]]


def test_a_late_left_window_does_not_keep_an_event_from_the_open_ones() -> None:
    oracle = kafka()
    assert in_ms(oracle, ms("a100 b95")) == ["[90, 100] ab", "[96, 106] a"]


def test_messages_of_closed_windows_are_in_windows_that_open_around_them_later() -> None:
    oracle = kafka()
    outs = one_by_one(oracle, ms("a0 b5 c9"))
    assert [[b.ids for b in out.batches] for out in outs] == [[], [("a",)], [("a", "b")]]
    assert in_ms(oracle, []) == ["[-1, 9] abc", "[1, 11] bc", "[6, 16] c"]


def test_an_event_opens_the_right_window_of_one_whose_own_windows_have_closed() -> None:
    # When y has made it 11, [-10, 0] has closed, but [1, 11] can still open, for the event at 5.
    stream = [Event("a", 0, "x"), Event("b", 11 * MS, "y"), Event("c", 5 * MS, "x")]
    oracle = kafka(keyed=True)
    outs = one_by_one(oracle, stream)
    assert outs[2].dropped == []
    assert in_ms(oracle, []) == ["[1, 11] b", "[1, 11] c"]


# event (eKuiper)


def test_every_event_gives_at_once_what_the_last_size_of_time_holds() -> None:
    outs = one_by_one(event(), events("a0 b5 c10 d16"))
    assert briefs(outs) == [
        ["event [-10, 0] a"],
        ["event [-5, 5] ab"],
        ["event [0, 10] abc"],
        ["event [6, 16] cd"],
    ]


def test_events_of_one_time_each_give_an_output_of_what_has_been_taken() -> None:
    out = at_once(event(), events("a5 b5"))
    assert brief(out.batches) == ["event [-5, 5] a", "event [-5, 5] ab"]


def test_an_out_of_order_event_repeats_no_earlier_output() -> None:
    out = at_once(event(allowed_lateness=5), events("a10 b5 c4 d11"))
    assert out.dropped == [("c", "late")]
    assert brief(out.batches) == ["event [0, 10] a", "event [-5, 5] b", "event [1, 11] abd"]
    assert at_once(event(), events("a10 b9")).dropped == [("b", "late")]


def test_outputs_of_keys_come_in_the_order_of_the_events() -> None:
    stream = [Event("a", 5, "x"), Event("b", 7, "y"), Event("c", 9, "x")]
    out = at_once(event(keyed=True), stream)
    assert [(b.ids, b.key) for b in out.batches] == [(("a",), "x"), (("b",), "y")] + [
        (("a", "c"), "x")
    ]


def test_nothing_is_left_for_the_end() -> None:
    oracle = event(idle_timeout=5, emit="final")
    oracle.step(MicroBatch(0, events("a5")))
    assert oracle.held() == set()
    assert oracle.step(MicroBatch(100, ended=True)).batches == []


# All modes


@pytest.mark.parametrize(("mode", "unit"), [(forward, 1), (event, 1), (kafka, MS)])
@pytest.mark.parametrize("emit", ["final", "each"])
def test_the_cut_into_micro_batches_does_not_matter(
    mode: Callable[..., SlidingOracle], unit: int, emit: str
) -> None:
    said = events("a0 b3 c10 d2 e11 f14 g4 h14 i25 j15 k14 l36 m26 n25")
    stream = [Event(e.id, e.time * unit) for e in said if isinstance(e.time, int)]
    whole, pieces = mode(emit=emit), mode(emit=emit)
    at_end, by_and_by = at_once(whole, stream), one_by_one(pieces, stream)
    assert at_end.dropped == [drop for out in by_and_by for drop in out.dropped] != []
    found = [text for texts in briefs(by_and_by) for text in texts]
    if emit == "final" and mode is not event:  # closes are by end within a micro-batch only
        found.sort(key=brief(at_end.batches).index)
    assert brief(at_end.batches) == found != []
    assert ends(whole) == ends(pieces)


# mode: event, waiting (Tenzir's trailing windows, eKuiper's delayed ones)


def waiting(size: int = 10, **fields: object) -> EventOracle:
    return EventOracle(EventSliding(size=size, waits=True, **fields))  # type: ignore[arg-type]


def test_events_that_wait_look_back_in_order_of_their_times() -> None:
    oracle = waiting(allowed_lateness=3)
    outs = briefs(one_by_one(oracle, events("a2 b1 c1 d4")))
    assert outs == [[], [], [], ["final [-9, 1] b", "final [-9, 1] bc"]]


def test_a_delayed_window_holds_what_comes_until_the_clock_is_at_its_end() -> None:
    oracle = waiting(size=5, delay=5)
    outs = briefs(one_by_one(oracle, events("a10 b13 c15 d15")))
    assert outs == [[], [], ["final [5, 15] abc"], []]


def test_a_cadence_begins_with_the_first_event() -> None:
    oracle = EventOracle(EventSliding(size=5, every=3))
    outs = briefs(one_by_one(oracle, events("a10 b12 c14 d16 e18")))
    assert outs == [[], [], ["event [9, 14] abc"], [], ["event [13, 18] cde"]]


@pytest.mark.parametrize(
    ("closed", "ids"), [("both", "abc"), ("right", "bc"), ("left", "ab"), ("neither", "b")]
)
def test_a_bound_that_is_not_closed_holds_no_event(closed: str, ids: str) -> None:
    oracle = waiting(size=5, delay=10, conditional=True, closed=closed)
    stream = [replace(one, emits=one.id == "b") for one in events("a0 b5 c15 d20")]
    outs = briefs(one_by_one(oracle, stream))
    assert [text for texts in outs for text in texts] == [f"final [0, 15] {ids}"]
