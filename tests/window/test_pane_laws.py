"""The laws of tumbling and hopping windows, on random streams, against the oracle."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace

from hypothesis import given, settings, target
from hypothesis import strategies as st

from streamer.bloblang import compile_mapping
from streamer.core.execution import Execution
from streamer.core.timestamps import format_rfc3339
from streamer.window.aggregate.fire_groups import AggregatedGroup
from streamer.window.aggregate.partial_aggregates import aggregation_for
from streamer.window.settings.event_time_window import EventWindow
from tests.examples import examples
from tests.window.event_stream import Batch, EventStream, Given, window_of
from tests.window.oracle import streams
from tests.window.oracle.events import Emitted, MicroBatch, Out
from tests.window.oracle.hopping import Hopping, HoppingOracle

SHARDS = st.sampled_from([1, 2, 3, 16])
Case = tuple[Hopping, list[MicroBatch]]


def of_panes(rules: Hopping) -> Hopping:
    """The same rules where all keys share one clock and windows are emitted at their close."""
    once = replace(rules, emit="final", emit_also=frozenset())
    return replace(once, clock_scope="stream", idle_timeout=None)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    rules = of_panes(draw(streams.hoppings()))
    around = draw(st.sampled_from([(0,), (0,), streams.EXTREMES]))
    return rules, draw(streams.streams(rules, around=around))


@st.composite
def local_days(draw: st.DrawFn) -> Case:
    rules = of_panes(draw(streams.local_days()))
    return rules, draw(streams.streams(rules, unit=streams.HOUR, around=streams.CHANGES))


@settings(max_examples=examples(12, 400), deadline=None)
@given(cases(), SHARDS, st.integers(0, 1000))
def test_every_micro_batch_gives_what_the_rules_say(case: Case, shards: int, seed: int) -> None:
    hold_to_the_oracle(*case, shards, seed)


@settings(max_examples=examples(12, 200), deadline=None)
@given(local_days(), SHARDS, st.integers(0, 1000))
def test_windows_of_local_days_do_as_well(case: Case, shards: int, seed: int) -> None:
    hold_to_the_oracle(*case, shards, seed)


def hold_to_the_oracle(rules: Hopping, batches: list[MicroBatch], shards: int, seed: int) -> None:
    oracle = HoppingOracle(rules)
    stream = EventStream(window_of(rules), rules.filtered, shards, random.Random(seed))
    counted = Counted()
    for batch in batches:
        expected, found = oracle.step(batch), stream.step(batch)
        assert found.failed == expected.failed
        assert found.dropped == dict(expected.dropped)
        assert_batches(expected.batches, found)
        counted.add(expected)
        counted.assert_counters(found, oracle, batch)
        assert_open(found, oracle)


def assert_batches(expected: list[Emitted], found: Given) -> None:
    """Each shard gives its batches in the order of the rules, and together they give all."""
    wanted = [shown(batch) for batch in expected]
    given = [(shard, of_shard(batch)) for shard, got in found.batches.items() for batch in got]
    assert sorted(map(repr, wanted)) == sorted(repr(batch) for _, batch in given)
    for shard in found.batches:
        mine = [batch for of, batch in given if of == shard]
        assert mine == [batch for batch in wanted if batch in mine]


def shown(batch: Emitted) -> tuple[object, ...]:
    assert batch.start is not None and batch.end is not None and batch.latest is not None
    meta: dict[str, object] = {
        "window_start_timestamp": format_rfc3339(batch.start),
        "window_end_timestamp": format_rfc3339(batch.end),
        "window_max_timestamp": format_rfc3339(batch.latest),
        "window_start_unix_ms": batch.start // 10**6,
        "window_end_unix_ms": batch.end // 10**6,
        "window_emit": batch.reason,
    }
    key = None
    if batch.window_key is not None:
        key, meta["window_key"] = plain(batch.key), batch.window_key
    return batch.reason, batch.ids, key, batch.start, batch.end, sorted(meta.items())


def of_shard(batch: Batch) -> tuple[object, ...]:
    meta = dict(batch.meta)
    key = None
    if batch.key is not None:
        key = plain(json.loads(batch.key))
    return batch.reason, batch.ids, key, batch.start, batch.end, sorted(meta.items())


def plain(key: object) -> str:
    """Keys that are equal look the same."""
    match key:
        case bool() | str() | None:
            return json.dumps(key)
        case int() | float():
            return str(float(key))
        case list():
            return str([plain(item) for item in key])
        case dict():
            return str(sorted((name, plain(item)) for name, item in key.items()))
    raise TypeError(key)


class Counted:
    """What the oracle has given so far."""

    def __init__(self) -> None:
        self.sums: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()
        self.taken: set[str] = set()

    def add(self, out: Out) -> None:
        self.sums["failed"] += len(out.failed)
        self.sums["filtered"] += len(out.filtered)
        self.sums["windows"] += len(out.batches)
        self.sums["messages"] += sum(len(batch.ids) for batch in out.batches)
        self.dropped.update(reason for _, reason in out.dropped)
        self.taken |= {id for batch in out.batches for id in batch.ids}

    def assert_counters(self, found: Given, oracle: HoppingOracle, batch: MicroBatch) -> None:
        """What went in is what failed, was filtered, dropped, is held or was given back."""
        self.sums["in"] += len(batch.events)
        counters = [status.counters for status in found.statuses]
        dropped: Counter[str] = Counter()
        for each in counters:
            dropped.update(each.dropped)
        held = oracle.held()
        taken = sum(each.taken for each in counters)
        assert dropped == self.dropped
        assert sum(status.held for status in found.statuses) == len(held)
        assert sum(each.released for each in counters) == len(self.taken - held)
        assert taken == len(self.taken | held)
        assert sum(each.failed for each in counters) == self.sums["failed"]
        assert sum(each.filtered for each in counters) == self.sums["filtered"]
        assert sum(each.emitted_windows for each in counters) == self.sums["windows"]
        assert sum(each.emitted_messages for each in counters) == self.sums["messages"]
        sums = self.sums["failed"] + self.sums["filtered"] + dropped.total() + taken
        assert sums == self.sums["in"]


def assert_open(found: Given, oracle: HoppingOracle) -> None:
    held: Counter[tuple[int, int]] = Counter()
    for status in found.statuses:
        for window in status.open:
            held[window.start, window.end] += window.messages
    expected: Counter[tuple[int, int]] = Counter()
    for mine in oracle.open:
        expected[mine.start, mine.end] += len(mine.inside)
    if max(len(status.open) for status in found.statuses) < 16:  # a shard lists no more
        assert held == expected


@settings(max_examples=examples(12, 200), deadline=None)
@given(st.data(), SHARDS, SHARDS, st.integers(0, 1000))
def test_the_cut_and_the_shards_do_not_matter(
    data: st.DataObject, some: int, other: int, seed: int
) -> None:
    rules, batches = data.draw(cases())
    rules = streams.uncut(rules)
    events = streams.one_partition(batches)
    ended = data.draw(st.booleans())
    whole = [MicroBatch(0, tuple(events)), MicroBatch(0, ended=ended)]
    pieces = data.draw(streams.recut(events, ended))
    assert all_of(rules, whole, some, seed) == all_of(rules, pieces, other, seed + 1)


def all_of(rules: Hopping, batches: list[MicroBatch], shards: int, seed: int) -> list[object]:
    stream = EventStream(window_of(rules), rules.filtered, shards, random.Random(seed))
    outs = [stream.step(batch) for batch in batches]
    shown = [repr(of_shard(each)) for out in outs for got in out.batches.values() for each in got]
    dropped = [item for out in outs for item in out.dropped.items()]
    return [sorted(shown), sorted(dropped)]


@settings(max_examples=examples(8, 100), deadline=None)
@given(cases() | local_days(), SHARDS, st.integers(0, 1000))
def test_when_all_windows_have_closed_nothing_of_them_is_stored(
    case: Case, shards: int, seed: int
) -> None:
    rules, batches = case
    stream = EventStream(window_of(rules), rules.filtered, shards, random.Random(seed))
    for batch in batches:
        stream.step(batch)
    rules = replace(rules, end_of_input="flush")
    stream.window = window_of(rules)
    found = stream.step(MicroBatch(batches[-1].t, (), ended=True))
    assert [status.held for status in found.statuses] == [0] * shards
    assert [list(store.values) for store in stream.stores] == [[(0, -1)]] * shards


HAVING = 'root = this.id.re_match("[02468]$")'


@settings(max_examples=examples(8, 100), deadline=None)
@given(cases(), SHARDS, st.integers(0, 1000))
def test_having_suppresses_windows_whose_first_message_it_does_not_like(
    case: Case, shards: int, seed: int
) -> None:
    rules, batches = case
    oracle = HoppingOracle(rules)
    window = window_of(rules)
    having = compile_mapping(HAVING)
    stream = EventStream(window, rules.filtered, shards, random.Random(seed), having)
    suppressed = 0
    for batch in batches:
        expected, found = oracle.step(batch), stream.step(batch)
        liked = [b for b in expected.batches if int(b.ids[0][1:]) % 2 == 0]
        assert_batches(liked, found)
        suppressed += sum(len(b.ids) for b in expected.batches) - sum(len(b.ids) for b in liked)
        assert sum(s.counters.suppressed for s in found.statuses) == suppressed


FOLD = """
root = if batch_index() == 0 {
  { "ids": json("id").from_all().unique(), "count": batch_size(), "end": @window_end_timestamp }
} else { deleted() }
"""


@settings(max_examples=examples(12, 200), deadline=None)
@given(cases(), SHARDS, st.integers(0, 1000))
def test_folded_windows_say_what_whole_ones_do(case: Case, shards: int, seed: int) -> None:
    rules, batches = replace(case[0], order="arrival"), case[1]
    fold = aggregation_for(FOLD)
    whole, folded = (
        EventStream(window_of(rules), rules.filtered, shards, random.Random(seed), fold=each)
        for each in (None, fold)
    )
    met = 0
    for batch in batches:
        expected, found = whole.step(batch), folded.step(batch)
        for shard, windows in found.batches.items():
            said = [summary(each) for each in windows]
            assert said == [summary(each) for each in expected.batches[shard]]
            met += sum(isinstance(each.messages, AggregatedGroup) for each in windows)
        assert [s.counters for s in found.statuses] == [s.counters for s in expected.statuses]
    target(met)


def summary(batch: Batch) -> tuple[object, ...]:
    """What the mapping makes of a batch, which is whole where all messages came out of order."""
    folds = isinstance(batch.messages, AggregatedGroup)
    mapping = aggregation_for(FOLD).mapping if folds else compile_mapping(FOLD)
    result = mapping.query(batch.messages, 0, Execution(lambda: 0))
    return batch.reason, batch.key, batch.start, batch.end, batch.meta, result


def test_which_windows_are_emitted_by_whole_panes() -> None:
    assert isinstance(window_of(Hopping(size=10)), EventWindow)
    assert window_of(Hopping(size=10)).strategy == "panes"
