"""Count windows by the oracle: eKuiper's pages step by step, and the rules by hand."""

from __future__ import annotations

from dataclasses import replace

from tests.window.oracle.count import Count, CountOracle
from tests.window.oracle.events import KEY_FAILS, Event, MicroBatch, Out
from tests.window.oracle.play import at_once, one_by_one
from tests.window.oracle.state import State, StateOracle


def numbered(count: int, **fields: object) -> list[Event]:
    return [Event(str(n), None, **fields) for n in range(1, count + 1)]  # type: ignore[arg-type]


def outputs(oracle: CountOracle, stream: list[Event]) -> dict[str, list[str]]:
    """What each event makes come out, as "2-6"."""
    found = {}
    for event, out in zip(stream, one_by_one(oracle, stream), strict=True):
        found[event.id] = [f"{b.ids[0]}-{b.ids[-1]}/{len(b.ids)}" for b in out.batches]
    return {name: texts for name, texts in found.items() if texts}


def test_five_events_are_a_tumbling_count_window() -> None:
    found = outputs(CountOracle(Count(count=5)), numbered(12))
    assert found == {"5": ["1-5/5"], "10": ["6-10/5"]}


def test_countwindow_5_1_is_triggered_by_every_event_once_there_are_five() -> None:
    found = outputs(CountOracle(Count(count=5, every=1)), numbered(8))
    assert found == {"5": ["1-5/5"], "6": ["2-6/5"], "7": ["3-7/5"], "8": ["4-8/5"]}


def test_countwindow_5_2_is_triggered_by_every_second_event_from_the_sixth_on() -> None:
    # Events 2 and 4 trigger nothing, event 6 gives the latest five and ignores the first.
    found = outputs(CountOracle(Count(count=5, every=2)), numbered(11))
    assert found == {"6": ["2-6/5"], "8": ["4-8/5"], "10": ["6-10/5"]}


def test_a_window_may_begin_with_the_events_that_there_are() -> None:
    # Tenzir's trailing windows: one for each event, of it and up to `count` - 1 before it.
    found = outputs(CountOracle(Count(count=2, every=1, min_count=1)), numbered(4))
    assert found == {"1": ["1-1/1"], "2": ["1-2/2"], "3": ["2-3/2"], "4": ["3-4/2"]}
    # Its cadence may be longer than the window, which then samples.
    oracle = CountOracle(Count(count=2, every=3, min_count=1, end_of_input="flush"))
    assert outputs(oracle, numbered(7)) == {"3": ["2-3/2"], "6": ["5-6/2"]}
    assert oracle.step(MicroBatch(0, ended=True)) == Out()


def test_a_window_may_begin_with_every_second_event_and_be_flushed() -> None:
    # Tenzir's windows of events: they begin before each `every`, none before the first event.
    oracle = CountOracle(Count(count=3, every=2, align="start", end_of_input="flush"))
    assert outputs(oracle, numbered(5)) == {"3": ["1-3/3"], "5": ["3-5/3"]}
    out = oracle.step(MicroBatch(0, ended=True))
    assert [(one.reason, one.ids) for one in out.batches] == [("flush", ("5",))]
    oracle = CountOracle(Count(count=2, end_of_input="flush"))
    assert outputs(oracle, numbered(5)) == {"2": ["1-2/2"], "4": ["3-4/2"]}
    assert [one.ids for one in oracle.step(MicroBatch(0, ended=True)).batches] == [("5",)]


def test_a_due_window_waits_for_the_condition() -> None:
    # Tenzir's trailing windows with `every` and `trigger`.
    oracle = CountOracle(Count(count=4, every=2, min_count=1, conditional=True))
    stream = [replace(event, emits=event.id in "346") for event in numbered(6)]
    assert outputs(oracle, stream) == {"3": ["1-3/3"], "6": ["3-6/4"]}


def test_what_no_conditional_window_can_hold_is_incomplete() -> None:
    oracle = CountOracle(Count(count=2, every=2, conditional=True))
    outs = one_by_one(oracle, numbered(5))
    assert [one for out in outs for one in out.dropped] == [(name, "incomplete") for name in "1234"]


def test_a_state_window_goes_from_one_condition_to_another() -> None:
    # eKuiper's TestStateWindow: statewindow(a > 1, a > 5).
    oracle = StateOracle(State())
    stream = [Event("1", 0), Event("2", 0, begins=True), Event("6", 0, begins=True, emits=True)]
    outs = one_by_one(oracle, stream)
    assert [one.ids for out in outs for one in out.batches] == [("2", "6")]
    single = StateOracle(State(single=True))
    stream = [Event(name, 0, begins=name in "bd") for name in "abcde"]
    assert [b.ids for out in one_by_one(single, stream) for b in out.batches] == [("b", "c")]
    assert single.held() == {"d", "e"}


def test_what_the_first_output_leaves_out_is_incomplete() -> None:
    oracle = CountOracle(Count(count=5, every=2))
    outs = one_by_one(oracle, numbered(6))
    assert [out.dropped for out in outs] == [[("1", "incomplete")], [], [], [], [], []]
    oracle = CountOracle(Count(count=5, every=4))
    dropped = [(name, "incomplete") for name in "123"]
    assert at_once(oracle, numbered(3)).dropped == dropped
    assert oracle.held() == set()
    assert oracle.step(MicroBatch(0, ended=True)).dropped == []


def test_a_filtered_count_window_always_holds_its_count() -> None:
    # COUNTWINDOW(3,1) FILTER(where revenue > 100)
    revenues = [150, 90, 120, 101, 100, 300]
    stream = [Event(str(r), None, filter=r > 100) for r in revenues]
    out = at_once(CountOracle(Count(count=3, every=1, filtered=True)), stream)
    assert [b.ids for b in out.batches] == [("150", "120", "101"), ("120", "101", "300")]
    assert out.filtered == ["90", "100"]


def test_without_the_filter_every_event_counts() -> None:
    stream = [Event("a", None, filter=False), Event("b", None)]
    out = at_once(CountOracle(Count(count=2)), stream)
    assert [b.ids for b in out.batches] == [("a", "b")]


def test_errors_and_failed_keys_do_not_count() -> None:
    stream = [
        Event("a", None, 1),
        Event("b", None, 1, failed=True),
        Event("c", None, KEY_FAILS),
        Event("d", None, KEY_FAILS, filter="error"),
        Event("e", None, 1.0),
    ]
    out = at_once(CountOracle(Count(count=2, keyed=True, filtered=True)), stream)
    assert (out.failed, out.filtered, out.dropped) == (["b"], ["d"], [("c", "key")])
    assert [(b.reason, b.ids, b.window_key) for b in out.batches] == [("count", ("a", "e"), "1")]


def test_keys_count_for_themselves_and_come_out_in_the_order_of_events() -> None:
    stream = [Event("a", None, "x"), Event("b", None, "y"), Event("c", None, "y")]
    out = at_once(CountOracle(Count(count=2, keyed=True)), [*stream, Event("d", None, "x")])
    assert [(b.ids, b.key) for b in out.batches] == [(("b", "c"), "y"), (("a", "d"), "x")]


def test_what_is_left_at_the_end_is_incomplete_but_for_what_came_out() -> None:
    oracle = CountOracle(Count(count=3, every=2))
    at_once(oracle, numbered(5))  # 2-4 came out, 4 and 5 wait for 6
    assert oracle.held() == {"4", "5"}
    assert oracle.step(MicroBatch(0, ended=True)).dropped == [("5", "incomplete")]
    assert oracle.held() == set()


def test_the_end_drops_all_of_a_tumbling_rest() -> None:
    oracle = CountOracle(Count(count=3))
    out = oracle.step(MicroBatch(0, tuple(numbered(5)), ended=True))
    assert [b.ids for b in out.batches] == [("1", "2", "3")]
    assert out.dropped == [("4", "incomplete"), ("5", "incomplete")]
