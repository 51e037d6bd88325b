"""The laws of joins, on random streams, against their oracle."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.window.kinds_stream import EventStream, told_of
from tests.window.oracle import streams
from tests.window.oracle.events import MicroBatch
from tests.window.oracle.join import Join, JoinOracle
from tests.window.test_event_laws import assert_counters, count

CALM = settings(
    max_examples=examples(10, 300),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@st.composite
def cases(draw: st.DrawFn, **fields: Any) -> tuple[Join, list[MicroBatch]]:
    rules = replace(draw(streams.joins()), **fields)
    if draw(st.booleans()):  # one side only before the other
        rules = replace(rules, before=-draw(st.integers(-rules.after, rules.after)))
    return rules, draw(streams.streams(rules, sides=("left", "right")))


@CALM
@given(case=cases(), shards=st.integers(1, 4), seed=st.integers(0, 1000))
def test_every_micro_batch_gives_what_the_rules_say(
    case: tuple[Join, list[MicroBatch]], shards: int, seed: int
) -> None:
    rules, batches = case
    oracle, stream = JoinOracle(rules), EventStream(rules, "", shards, random.Random(seed))
    sums: Counter[str] = Counter()
    shard_of: dict[str, int] = {}
    for batch in batches:
        expected, found = oracle.step(batch), stream.step(batch)
        assert found.failed == expected.failed
        assert sorted(found.dropped.items()) == sorted(expected.dropped)
        for shard, pairs in found.batches.items():
            for pair in pairs:
                shard_of |= {name: shard for name in pair[1:3] if name is not None}
        for shard, pairs in found.batches.items():
            joined = [
                told_of(one)
                for one in expected.joined
                if shard_of.get(one.left or one.right or "", 0) == shard
            ]
            assert pairs == joined
        count(sums, batch, expected)
        assert_counters(found, sums)
        assert sum(status.held for status in found.statuses) == len(oracle.held())


@CALM
@given(
    case=cases(type="outer", idle_timeout=None),  # messages wait anew in other shards
    shards=st.integers(1, 4),
    turns=st.lists(st.sampled_from([None, 1, 2, 3, 7]), min_size=5, max_size=5),
    seed=st.integers(0, 1000),
)
def test_every_micro_batch_gives_the_same_in_any_number_of_shards(
    case: tuple[Join, list[MicroBatch]], shards: int, turns: list[int | None], seed: int
) -> None:
    rules, batches = case
    oracle, stream = JoinOracle(rules), EventStream(rules, "", shards, random.Random(seed))
    sums: Counter[str] = Counter()
    for number, batch in enumerate(batches):
        expected, found = oracle.step(batch), stream.step(batch)
        assert sorted(found.dropped.items()) == sorted(expected.dropped)
        given = [one for of_shard in found.batches.values() for one in of_shard]
        assert Counter(map(repr, given)) == Counter(repr(told_of(one)) for one in expected.joined)
        count(sums, batch, expected)
        assert_counters(found, sums)
        assert sum(status.held for status in found.statuses) == len(oracle.held())
        stream.cut_anew(turns[number % len(turns)])


@CALM
@given(
    data=st.data(),
    case=cases(allowed_lateness=1000, end_of_input="flush", clock="stream", idle_timeout=None),
)
def test_where_nothing_is_late_the_cut_does_not_matter(
    data: st.DataObject, case: tuple[Join, list[MicroBatch]]
) -> None:
    rules, batches = case
    events = streams.one_partition(batches)
    runs = []
    for _ in range(2):
        stream = EventStream(rules, "", data.draw(st.integers(1, 16)), random.Random(1))
        found = [stream.step(batch).batches for batch in data.draw(streams.recut(events))]
        runs.append(sorted(map(repr, (p for given in found for ps in given.values() for p in ps))))
    assert runs[0] == runs[1]


@CALM
@given(case=cases(type="outer", end_of_input="keep"))
def test_a_join_knows_when_a_message_leaves_though_nothing_follows(
    case: tuple[Join, list[MicroBatch]],
) -> None:
    rules, batches = case
    stream = EventStream(rules, "")
    due = None
    for batch in batches:
        (status,) = stream.step(replace(batch, backlog=False, lag=False)).statuses
        due = status.next_due
    if status.held and (rules.clock == "system" or rules.idle_timeout is not None):
        assert due is not None
        assert stream.now is not None
        assert due > stream.now
        (before,) = stream.step(MicroBatch(due - 1)).statuses
        assert (before.held, before.next_due) == (status.held, due)
        (after,) = stream.step(MicroBatch(due)).statuses
        assert after.held < status.held
    else:
        assert due is None


@CALM
@given(case=cases(end_of_input="flush"), shards=st.integers(1, 4))
def test_nothing_stays_in_the_store_when_the_input_has_ended(
    case: tuple[Join, list[MicroBatch]], shards: int
) -> None:
    rules, batches = case
    stream = EventStream(rules, "", shards)
    for batch in batches:
        stream.step(batch)
    stream.step(MicroBatch(batches[-1].t, ended=True))
    assert {place for store in stream.stores for place in store.values} == {(0, -1)}
