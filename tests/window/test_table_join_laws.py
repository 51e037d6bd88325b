"""The laws of joins with tables, on random streams, against their oracle."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamer.window.settings.event_time_window import EventWindow
from tests.examples import examples
from tests.window.kinds_stream import EventStream, told_of
from tests.window.oracle import streams
from tests.window.oracle.events import Event, MicroBatch
from tests.window.oracle.table_join import TableJoin, TableJoinOracle
from tests.window.test_event_laws import assert_counters, count

CALM = settings(
    max_examples=examples(15, 400),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TURNS = st.lists(st.sampled_from([None, None, 1, 2, 3, 7]), min_size=12, max_size=12)
"""By micro-batch, how many shards there are from then on."""


@st.composite
def cases(draw: st.DrawFn, **fields: Any) -> tuple[TableJoin, list[MicroBatch]]:
    rules = replace(draw(streams.table_joins()), **fields)
    return rules, draw(streams.streams(rules, sides=("left", "right")))


@CALM
@given(case=cases(), shards=st.integers(1, 4), turns=TURNS, seed=st.integers(0, 1000))
def test_every_micro_batch_gives_what_the_rules_say_in_any_number_of_shards(
    case: tuple[TableJoin, list[MicroBatch]], shards: int, turns: list[int | None], seed: int
) -> None:
    rules, batches = case
    oracle, stream = TableJoinOracle(rules), EventStream(rules, "", shards, random.Random(seed))
    sums: Counter[str] = Counter()
    for number, batch in enumerate(batches):
        expected, found = oracle.step(batch), stream.step(batch)
        assert sorted(found.failed) == sorted(expected.failed)
        assert sorted(found.dropped.items()) == sorted(expected.dropped)
        given = [one for of_shard in found.batches.values() for one in of_shard]
        assert Counter(map(repr, given)) == Counter(repr(told_of(one)) for one in expected.joined)
        count(sums, batch, expected)
        assert_counters(found, sums)
        assert sum(status.open_windows or 0 for status in found.statuses) == len(oracle.held())
        if rules.idle_timeout is None:  # Messages wait anew in other shards.
            stream.cut_anew(turns[number % len(turns)])


@CALM
@given(case=cases(), seed=st.integers(0, 1000))
def test_messages_come_out_in_order(case: tuple[TableJoin, list[MicroBatch]], seed: int) -> None:
    rules, batches = case
    stream = EventStream(rules, "", 1, random.Random(seed))
    order = {event.id: place for place, event in enumerate(e for b in batches for e in b.events)}
    for batch in batches:
        (given,) = stream.step(batch).batches.values()
        if rules.history is not None and rules.allowed_lateness:
            times = [one[4].removesuffix("Z") for one in given]  # a fraction comes after none
            assert times == sorted(times)
        else:
            places = [order[one[1]] for one in given]
            assert places == sorted(places)


@CALM
@given(data=st.data(), case=cases(allowed_lateness=0, ttl=None, max_ahead=None))
def test_without_a_wait_the_cut_does_not_matter(
    data: st.DataObject, case: tuple[TableJoin, list[MicroBatch]]
) -> None:
    rules, batches = case
    # The history is by the clock before a message, which other partitions move between batches.
    rules = replace(rules, history=None if rules.history is None else 10**6)
    events = streams.one_partition(batches)
    runs = []
    for _ in range(2):
        stream = EventStream(rules, "", data.draw(st.integers(1, 16)), random.Random(1))
        found = [stream.step(batch).batches for batch in data.draw(streams.recut(events))]
        runs.append(sorted(repr(p) for given in found for ps in given.values() for p in ps))
    assert runs[0] == runs[1]


@st.composite
def ordered_sides(draw: st.DrawFn) -> tuple[list[Event], list[Event]]:
    """Messages and rows, each side in the order of its event times."""
    sides: list[list[Event]] = []
    for side, first in (("left", 0), ("right", 1)):
        times = sorted(draw(st.lists(st.integers(-20, 20), max_size=15)))
        keys = [draw(st.sampled_from("ab")) for _ in times]
        sides.append(
            [
                Event(f"m{2 * n + first}", time, key, side=side)  # type: ignore[arg-type]
                for n, (time, key) in enumerate(zip(times, keys, strict=True))
            ]
        )
    return sides[0], sides[1]


@CALM
@given(data=st.data(), sides=ordered_sides(), shards=st.integers(1, 4))
def test_by_the_clock_of_both_inputs_each_message_gets_the_row_of_its_time(
    data: st.DataObject, sides: tuple[list[Event], list[Event]], shards: int
) -> None:
    rules = TableJoin(keyed=True, type="left", history=1, deletes=True)
    stream = EventStream(rules, "", shards, random.Random(data.draw(st.integers(0, 99))))
    time = replace(stream.window.time, clock_scope="input")
    stream.window = EventWindow(stream.window.kind, time, keyed=True)
    stream.sources = tuple(repr((side, 0)) for side in ("left", "right"))
    rest = [list(side) for side in sides]
    found = []
    while any(rest):
        counts = data.draw(st.sampled_from([(1, 1), (0, 2), (3, 0), (5, 2), (1, 6)]))
        some = [event for side, n in zip(rest, counts, strict=True) for event in side[:n]]
        rest = [side[n:] for side, n in zip(rest, counts, strict=True)]
        found.append(stream.step(MicroBatch(0, tuple(some))))
    found.append(stream.step(MicroBatch(0, ended=True)))
    pairs = [one[1:3] for given in found for some in given.batches.values() for one in some]
    assert sorted(pairs) == sorted((one.id, row_of(one, sides[1])) for one in sides[0])


def row_of(message: Event, rows: list[Event]) -> str | None:
    """The id of the last row of a message's key that is not after it; None for a tombstone."""
    assert isinstance(message.time, int)
    before = [row for row in rows if row.key == message.key and int(str(row.time)) <= message.time]
    return before[-1].id if before and int(before[-1].id[1:]) % 4 else None


@CALM
@given(case=cases(end_of_input="flush", history=3, allowed_lateness=0, ttl=4))
def test_rows_that_have_expired_leave_nothing_in_the_store(
    case: tuple[TableJoin, list[MicroBatch]],
) -> None:
    rules, batches = case
    stream = EventStream(rules, "", 2)
    for batch in batches:
        stream.step(batch)
    last = max(batch.t for batch in batches) + 4
    statuses = stream.step(MicroBatch(last)).statuses
    assert [(status.held, status.table_rows) for status in statuses] == [(0, 0), (0, 0)]
    places = {place for store in stream.stores for place in store.values}
    assert places <= {(0, -1), (0, -10)}


def pairs_of(rules: TableJoin, *batches: tuple[Event, ...]) -> list[tuple[str, str | None]]:
    """The pairs that come out of micro-batches, by their ids."""
    stream = EventStream(rules, "")
    given = [stream.step(MicroBatch(0, events)) for events in batches]
    return [one[1:3] for found in given for one in found.batches[0]]


def row(name: str, time: int) -> Event:
    return Event(name, time, "a", side="right")


def message(name: str, time: int) -> Event:
    return Event(name, time, "a")


PLAIN = TableJoin(keyed=True, type="left")
VERSIONED = replace(PLAIN, history=10)


def test_without_a_history_the_row_that_came_last_counts_whatever_its_time() -> None:
    events = (message("m1", 5), row("r1", 9), row("r2", 3), message("m2", 1))
    assert pairs_of(PLAIN, events) == [("m1", None), ("m2", "r2")]


def test_with_a_history_the_row_of_the_time_counts() -> None:
    events = (row("r1", 1), row("r2", 5), message("m1", 4), message("m2", 5), message("m3", 0))
    assert pairs_of(VERSIONED, events) == [("m1", "r1"), ("m2", "r2"), ("m3", None)]


def test_a_message_from_before_the_history_gets_the_newest_row_or_none() -> None:
    rules, events = VERSIONED, (row("r1", 1), row("r2", 8), message("m1", 30))
    assert pairs_of(rules, events, (message("m2", 7),))[1:] == [("m2", None)]
    assert pairs_of(rules, events, (message("m2", 9),))[1:] == [("m2", "r2")]
    assert pairs_of(replace(rules, history=25), events, (message("m2", 7),))[1:] == [("m2", "r1")]


def test_a_row_that_comes_within_the_grace_is_seen_and_a_later_one_is_not() -> None:
    rules = replace(VERSIONED, allowed_lateness=3)
    first = (message("m1", 10), message("m2", 11))
    in_time = (row("r1", 9), message("m3", 13))
    assert pairs_of(rules, first, in_time) == [("m1", "r1")]
    # m1 has waited for long enough before the row came, though in the same micro-batch.
    before = (message("m3", 13), replace(row("r1", 9), partition=1))
    assert pairs_of(rules, first, before, (message("m4", 14),)) == [("m1", "r1"), ("m2", "r1")]
    moved = (message("m3", 13),)
    assert pairs_of(rules, first, moved, (row("r1", 9), message("m4", 14))) == [
        ("m1", None),
        ("m2", "r1"),
    ]


def test_a_late_message_is_joined_at_once() -> None:
    rules = replace(VERSIONED, allowed_lateness=3)
    assert pairs_of(rules, (row("r1", 1), message("m1", 9)), (message("m2", 5),)) == [("m2", "r1")]


def test_null_keys_have_no_partner_and_null_messages_are_passed_over() -> None:
    events = (Event("r1", 1, None, side="right"), Event("m1", 2, None))
    assert pairs_of(PLAIN, events) == [("m1", None)]
    assert pairs_of(replace(PLAIN, type="inner"), events) == []
