"""Sessions as columns give what the rules say, and what they give when decided key by key."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamer.bloblang import compile_mapping
from streamer.window.state.layout import SESSION_BLOCK_SEQ, SESSION_BLOCKS_HEAD_KEY
from tests.examples import examples
from tests.window.kinds_stream import told
from tests.window.oracle import streams
from tests.window.oracle.events import Event, MicroBatch
from tests.window.oracle.session import Session, SessionOracle

from .stream import FoldedSessions, batch, key_by_key, outcome

PLAIN = (1, 2, 30, 4000, -5, 0, 2**31)
ODD = (*PLAIN, *PLAIN, 0.5, 1e300, -0.0, 2**53 + 1, 2**63, "none", None, True)
LAWS = settings(
    max_examples=examples(25, 600), deadline=None, suppress_health_check=list(HealthCheck)
)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Session, list[MicroBatch]]:
    rules = replace(draw(streams.sessions()), max_duration=None, emit="final")
    rules = replace(
        rules, clock_scope="stream", idle_timeout=None, order="arrival", emit_also=frozenset()
    )
    return rules, draw(streams.streams(rules))


@LAWS
@given(case=cases(), shards=st.integers(1, 3), seed=st.integers(0, 1000))
def test_every_micro_batch_gives_the_sessions_that_the_rules_say(
    case: tuple[Session, list[MicroBatch]], shards: int, seed: int
) -> None:
    rules, batches = case
    oracle = SessionOracle(rules)
    stream = FoldedSessions(rules, PLAIN, shards, random.Random(seed))
    event_of = {event.id: event for batch in batches for event in batch.events}
    for step in batches:
        expected, found = oracle.step(step), stream.step(step)
        got = [one for of_shard in found.batches.values() for one in of_shard]
        want = []
        for emitted in expected.batches:
            numbers = [float(stream.number(event_of[name])) for name in emitted.ids]
            parts = [sum(numbers), min(numbers), max(numbers), len(numbers)]
            reason, _, key, *bounds = told(emitted)
            want.append((reason, emitted.ids[0], key, *bounds, list(map(repr, parts))))
        assert sorted(map(repr, map(_shown, got))) == sorted(map(repr, want))
        late = sum(reason == "late" for _, reason in expected.dropped)
        before = sum(s.counters.dropped.get("late", 0) for s in found.statuses)
        assert before - stream.late == late
        stream.late = before


def _shown(one: Any) -> Any:
    reason, _, _, meta, raw, size, values = one
    bounds = (meta[f"window_{name}_timestamp"] for name in ("start", "end", "max"))
    assert values[3] == repr(size)
    return reason, orjson.loads(raw)["id"], meta.get("window_key"), *bounds, values


@LAWS
@given(
    case=cases(),
    shards=st.integers(1, 2),
    seed=st.integers(0, 1000),
    ways=st.lists(st.sampled_from([True, True, False]), min_size=1, max_size=6),
)
def test_nobody_can_tell_columns_from_keys_whatever_numbers_come_and_however_they_change(
    case: tuple[Session, list[MicroBatch]], shards: int, seed: int, ways: list[bool]
) -> None:
    rules, batches = case
    some = FoldedSessions(rules, ODD, shards, random.Random(seed))
    others = FoldedSessions(rules, ODD, shards, random.Random(seed))
    for number, step in enumerate(batches):
        with key_by_key():
            expected = others.step(step)
        if ways[number % len(ways)]:
            found = some.step(step)
        else:
            with key_by_key():
                found = some.step(step)
        assert outcome(found) == outcome(expected)


@LAWS
@given(case=cases(), seed=st.integers(0, 1000))
def test_when_all_sessions_have_closed_nothing_of_them_is_stored(
    case: tuple[Session, list[MicroBatch]], seed: int
) -> None:
    rules, batches = case
    rules = replace(rules, end_of_input="flush")
    stream = FoldedSessions(rules, PLAIN, 1, random.Random(seed))
    for step in batches:
        stream.step(step)
    status = stream.step(MicroBatch(stream.now or 0, ended=True)).statuses[0]
    assert (status.held, status.open_windows) == (0, 0)
    assert set(stream.stores[0].values) == {(0, -1)}


RULES = Session(keyed=True, gap=10, allowed_lateness=5, end_of_input="keep")


def test_messages_in_order_are_put_into_sessions_as_columns() -> None:
    stream = FoldedSessions(RULES, (1,))
    found = stream.step(batch(0, 1, 5, 3, 30, 25))
    assert stream.by_columns == [5]
    assert [one[1:3] for one in found.batches[0]] == [(b'"a"', (1, 5))]
    assert SESSION_BLOCKS_HEAD_KEY in stream.stores[0].values


def test_a_message_behind_the_lateness_is_decided_key_by_key_and_so_is_what_its_key_has_open() -> (
    None
):
    stream = FoldedSessions(RULES, (1,))
    stream.step(batch(0, 100))
    other = Event("b", 100, "b")
    found = stream.step(MicroBatch(1, (other, Event("late", 80, "a"), Event("near", 94, "a"))))
    assert stream.by_columns == [1, 1]
    assert found.statuses[0].counters.dropped == {"late": 1}
    assert found.statuses[0].open_windows == 2
    # "a" goes on key by key until nothing of it is open.
    stream.step(batch(2, 105))
    found = stream.step(batch(3, 200, key="c"))
    assert [one[2] for one in found.batches[0]] == [(100, 100), (94, 105)]
    stream.step(batch(4, 201))
    assert stream.by_columns == [1, 1, 0, 1, 1]


@pytest.mark.parametrize(
    "more",
    [
        {"max_duration": 20},
        {"max_duration": 20, "from_start": True},
        {"max_count": 3},
        {"emit": "changes"},
        {"emit": "each"},
        {"idle_timeout": 5},
        {"clock_scope": "key"},
    ],
)
def test_other_sessions_are_decided_key_by_key(more: dict[str, Any]) -> None:
    stream = FoldedSessions(replace(RULES, **more), (1,))
    stream.step(batch(0, 1, 2))
    assert stream.by_columns == [0]


def test_a_mapping_that_asks_for_more_than_numbers_is_folded_key_by_key() -> None:
    text = 'root = if batch_index() == 0 { json("n").from_all().unique() } else { deleted() }'
    stream = FoldedSessions(RULES, (1,), text=text)
    stream.step(batch(0, 1, 2))
    assert stream.by_columns == [0]


def test_sessions_finish_on_the_mapping_that_they_began_with() -> None:
    old = 'root = if batch_index() == 0 { json("n").from_all().%s() } else { deleted() }'
    stream = FoldedSessions(RULES, (2,), text=old % "sum")
    stream.step(batch(0, 1, 5))
    stream.text = old % "max"
    stream.step(batch(1, 7, 8, key="b"))
    assert stream.by_columns == [2, 2]
    found = stream.step(batch(2, 100, key="c"))
    assert len(found.batches[0]) == 2
    assert [(group.text, group.aggregate_value(0)) for group in stream.groups] == [
        (old % "sum", 4.0),
        (old % "max", 2.0),
    ]


def test_a_sum_of_integers_goes_on_as_one_where_a_float_would_round_it() -> None:
    stream = FoldedSessions(RULES, (2**31,))
    stream.step(batch(0, 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("streamer.window.keyed.columns.sessions.MAX_EXACT_SUM", 2.0**31 - 1)
        stream.step(batch(1, 2))
    stream.step(batch(2, 3))
    assert stream.by_columns == [1, 1, 0]
    found = stream.step(batch(3, 100, key="b"))
    assert found.batches[0][0][-1][0] == repr(3.0 * 2**31)


def test_sessions_for_which_having_is_not_true_are_suppressed() -> None:
    stream = FoldedSessions(RULES, (1,))
    stream.having = compile_mapping('root = meta("window_key") != "b"')
    stream.step(batch(0, 1, 2))
    stream.step(batch(1, 3, 4, 5, key="b"))
    found = stream.step(batch(2, 100, key="c"))
    assert [one[1] for one in found.batches[0]] == [b'"a"']
    counters = found.statuses[0].counters
    assert (counters.suppressed, counters.emitted_messages, counters.released) == (3, 2, 5)
    assert stream.by_columns == [2, 3, 1]


def test_a_micro_batch_rewrites_the_sessions_of_few_other_keys_than_its_own() -> None:
    stream = FoldedSessions(replace(RULES, gap=10**9), (1,))
    stream.step(MicroBatch(0, tuple(Event(f"{n}", 1, f"key {n}") for n in range(10_000))))
    store = stream.stores[0]
    before = dict(store.values)
    blocks_of = [place for place in before if place[1] == SESSION_BLOCK_SEQ]
    assert len(blocks_of) == 4
    store.calls = 0
    stream.chance = random.Random(0)  # the task is not tried again
    found = stream.step(batch(1, 5, key="key 7"))
    changed = [place for place in blocks_of if store.values[place] != before[place]]
    assert len(changed) == 1
    assert (found.statuses[0].open_windows, found.statuses[0].held) == (10_000, 10_001)
    assert store.calls < 10


@pytest.mark.parametrize("times", [(1, 2, 3, 4), (4, 3, 2, 1), (2, 4, 1, 3)])
def test_floats_are_added_in_the_order_of_their_arrival(times: tuple[int, ...]) -> None:
    numbers = {1: 0.7, 2: 1e16, 3: 0.1, 4: -1e16}
    stream = FoldedSessions(RULES, ())
    stream.number = lambda event: numbers.get(event.time, 3)  # type: ignore[method-assign, arg-type]
    stream.step(batch(0, *times))
    found = stream.step(batch(1, 100, key="b"))
    expected: float = 0
    for time in times:
        expected += numbers[time]
    assert found.batches[0][0][-1][0] == repr(expected)
    assert stream.by_columns == [4, 1]
