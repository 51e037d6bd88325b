"""Joins by the oracle: ksqlDB's shipments, and the rules by hand."""

from __future__ import annotations

import pytest

from tests.window.oracle.events import KEY_FAILS, Event, MicroBatch
from tests.window.oracle.join import Join, Joined, JoinOracle, JoinOut, within
from tests.window.oracle.play import HOUR, MINUTE


def left(name: str, time: int, key: object = "k", **fields: object) -> Event:
    return Event(name, time, key, side="left", **fields)  # type: ignore[arg-type]


def right(name: str, time: int, key: object = "k", **fields: object) -> Event:
    return Event(name, time, key, side="right", **fields)  # type: ignore[arg-type]


def join(oracle: JoinOracle, *events: Event, ended: bool = False) -> JoinOut:
    return oracle.step(MicroBatch(0, events, ended=ended))


def said(joined: list[Joined]) -> list[str]:
    return [f"{j.reason} {j.left or '-'}{j.right or '-'}@{j.time}" for j in joined]


def test_orders_join_the_shipments_of_the_hour_around_them() -> None:
    oracle = JoinOracle(within(HOUR, keyed=True))
    out = join(
        oracle,
        left("o1", 0, 1),
        left("o2", 10 * MINUTE, 2),
        right("s1", 30 * MINUTE, 2),
        right("s2", HOUR, 1.0),
        right("s3", HOUR + 1, 1),
        right("s4", 70 * MINUTE, 2),
    )
    assert [(j.left, j.right, j.time, j.key) for j in out.joined] == [
        ("o2", "s1", 30 * MINUTE, 2),
        ("o1", "s2", HOUR, 1),
        ("o2", "s4", 70 * MINUTE, 2),
    ]
    assert {j.reason for j in out.joined} == {"event"}


def test_the_right_side_may_be_earlier_by_before_and_later_by_after() -> None:
    oracle = JoinOracle(Join(before=2, after=5, allowed_lateness=100))
    out = join(oracle, left("a", 10), *(right(f"{t}", t) for t in (7, 8, 15, 16)))
    assert [j.right for j in out.joined] == ["8", "15"]


def test_the_right_side_finds_the_left_by_the_same_bounds() -> None:
    oracle = JoinOracle(Join(before=2, after=5, allowed_lateness=100))
    out = join(oracle, right("a", 10), *(left(f"{t}", t) for t in (4, 5, 12, 13)))
    assert [j.left for j in out.joined] == ["5", "12"]
    assert [j.time for j in out.joined] == [10, 12]


def test_one_event_joins_all_that_wait_for_it_in_the_order_they_came() -> None:
    oracle = JoinOracle(within(5, allowed_lateness=100))
    out = join(oracle, left("a", 10), left("b", 8), left("c", 20), right("d", 9))
    assert said(out.joined) == ["event ad@10", "event bd@9"]


def test_null_is_a_key_and_a_failed_key_drops_the_event() -> None:
    oracle = JoinOracle(within(5, keyed=True))
    out = join(oracle, left("a", 1, None), left("b", 1, KEY_FAILS), right("c", 2, None))
    assert (said(out.joined), out.dropped) == (["event ac@2"], [("b", "key")])


def test_the_clock_is_the_maximum_of_both_sides_from_the_next_micro_batch_on() -> None:
    oracle = JoinOracle(within(50, allowed_lateness=3))
    out = join(oracle, left("a", 100), right("b", 90), left("c", 97), left("d", 96))
    assert out.dropped == [("d", "late")]
    assert join(oracle, right("e", 96), right("f", 97)).dropped == [("e", "late")]


def test_an_unmatched_left_comes_out_when_its_latest_match_would_be_late() -> None:
    oracle = JoinOracle(Join(before=2, after=5, allowed_lateness=3, type="left"))
    join(oracle, left("a", 10))
    assert join(oracle, left("b", 18)).joined == []
    assert said(join(oracle, right("c", 15)).joined) == ["event ac@15"]
    oracle = JoinOracle(Join(before=2, after=5, allowed_lateness=3, type="left"))
    join(oracle, left("a", 10))
    assert said(join(oracle, left("b", 19)).joined) == ["final a-@10"]
    assert join(oracle, right("c", 15)).dropped == [("c", "late")]


def test_an_unmatched_right_waits_for_before() -> None:
    oracle = JoinOracle(Join(before=2, after=5, type="outer"))
    join(oracle, right("a", 10))
    assert join(oracle, left("b", 12)).joined != []
    oracle = JoinOracle(Join(before=2, after=5, type="outer"))
    join(oracle, right("a", 10))
    assert said(join(oracle, left("b", 13)).joined) == ["final -a@10"]


@pytest.mark.parametrize(
    ("kind", "joined", "passed_over"),
    [
        ("inner", ["event ab@2"], ["d", "c"]),
        ("left", ["event ab@2", "final c-@20"], ["d"]),
        ("outer", ["event ab@2", "final -d@19", "final c-@20"], []),
    ],
)
def test_the_type_says_which_unmatched_sides_come_out(
    kind: str, joined: list[str], passed_over: list[str]
) -> None:
    oracle = JoinOracle(within(5, keyed=True, type=kind, allowed_lateness=2, end_of_input="keep"))
    out = join(
        oracle, left("a", 1, 1), right("b", 2, 1), left("c", 20, 2), right("d", 19, 3), ended=True
    )
    last = join(oracle, left("z", 50, 9))
    assert said(out.joined + last.joined) == joined
    assert out.passed_over + last.passed_over == passed_over
    assert oracle.held() == {"z"}


def test_the_end_of_the_input_lets_all_that_wait_go() -> None:
    oracle = JoinOracle(within(5, keyed=True, type="outer"))
    out = join(oracle, left("a", 1, 1), right("b", 10, 2), left("c", 10, 2), ended=True)
    assert said(out.joined) == ["event cb@10", "final a-@1"]
    oracle = JoinOracle(within(5, keyed=True, type="outer"))
    out = join(oracle, left("a", 9, 1), right("b", 8, 2), ended=True)
    assert said(out.joined) == ["flush -b@8", "flush a-@9"]
    assert oracle.held() == set()


def test_failed_and_filtered_events_join_nothing() -> None:
    oracle = JoinOracle(within(5, filtered=True))
    out = join(oracle, left("a", 1, failed=True), left("b", 1, filter="error"), right("c", 1))
    assert (out.failed, out.filtered, out.joined) == (["a"], ["b"], [])
