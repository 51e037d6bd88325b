"""The laws of windows that follow event times, on random streams, against the oracles."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamer.window import MicroBatchInfo, Shard
from streamer.window.assign.packer import Packer
from streamer.window.evaluate.queries import BufferMappings
from tests.examples import examples
from tests.window.fakes import execution
from tests.window.kinds_stream import FAST_KEY, PLAIN_TIME, EventStream, Given, raw_of, told
from tests.window.oracle import streams
from tests.window.oracle.count import CountOracle
from tests.window.oracle.events import Event, MicroBatch, Out
from tests.window.oracle.hopping import Hopping, HoppingOracle
from tests.window.oracle.session import Session, SessionOracle
from tests.window.oracle.sliding_event import EventOracle
from tests.window.oracle.sliding_forward import ForwardOracle
from tests.window.oracle.sliding_kafka import MS, KafkaOracle, KafkaSliding
from tests.window.oracle.state import StateOracle

KINDS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "tumbling": (streams.hoppings(tumbling=True), HoppingOracle, {}),
    "hopping": (streams.hoppings(), HoppingOracle, {}),
    "days": (
        streams.local_days(),
        HoppingOracle,
        {"unit": streams.HOUR, "around": streams.CHANGES},
    ),
    "session": (streams.sessions(), SessionOracle, {}),
    "limited": (streams.limited_sessions(), SessionOracle, {}),
    "gaps": (streams.message_gaps(), SessionOracle, {}),
    "forward": (streams.slidings(), ForwardOracle, {}),
    "event": (streams.event_slidings(), EventOracle, {}),
    "waiting": (streams.waiting_slidings(), EventOracle, {}),
    "kafka": (streams.kafka_slidings(), KafkaOracle, {"unit": MS}),
    "count": (streams.counts(), CountOracle, {}),
    "state": (streams.states(), StateOracle, {}),
}


TIMELESS = ("count", "state")


@st.composite
def cases(draw: st.DrawFn, kind: str) -> tuple[Any, list[MicroBatch]]:
    strategy, _, more = KINDS[kind]
    rules = draw(strategy)
    return rules, draw(streams.streams(rules, **more))


@pytest.mark.parametrize("kind", KINDS)
@settings(
    max_examples=examples(10, 150),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data(), shards=st.integers(1, 4), seed=st.integers(0, 1000))
def test_every_micro_batch_gives_what_the_rules_say(
    kind: str, data: st.DataObject, shards: int, seed: int
) -> None:
    rules, batches = data.draw(cases(kind))
    oracle = KINDS[kind][1](rules)
    stream = EventStream(
        rules, "event" if kind == "event" else "forward", shards, random.Random(seed)
    )
    sums: Counter[str] = Counter()
    shard_of: dict[str, int] = {}
    for batch in batches:
        expected, found = oracle.step(batch), stream.step(batch)
        assert found.failed == expected.failed
        assert sorted(found.dropped.items()) == sorted(expected.dropped)
        assert_batches(expected, found, shard_of)
        count(sums, batch, expected)
        assert_counters(found, sums)


def assert_batches(expected: Out, found: Given, shard_of: dict[str, int]) -> None:
    """Each shard gives the batches of its keys, in the oracle's order."""
    for shard, batches in found.batches.items():
        for batch in batches:
            for name in batch[1]:
                assert shard_of.setdefault(name, shard) == shard
    for shard, batches in found.batches.items():
        mine = [one for one in expected.batches if shard_of.get(one.ids[0], 0) == shard]
        assert batches == list(map(told, mine))


def count(sums: Counter[str], batch: MicroBatch, out: Out) -> None:
    sums["came"] += len(batch.events)
    sums["failed"] += len(out.failed)
    sums["filtered"] += len(out.filtered)
    sums["passed_over"] += len(out.passed_over)
    for _, reason in out.dropped:
        sums[f"dropped {reason}"] += 1


def assert_counters(found: Given, sums: Counter[str]) -> None:
    """What went in is what failed, was filtered or dropped, is held or was given back."""
    counters = [status.counters for status in found.statuses]
    assert sum(each.failed for each in counters) == sums["failed"]
    assert sum(each.filtered for each in counters) == sums["filtered"]
    assert sum(each.passed_over for each in counters) == sums["passed_over"]
    dropped: Counter[str] = Counter()
    for each in counters:
        dropped.update({f"dropped {reason}": n for reason, n in each.dropped.items()})
    assert dropped == Counter({k: v for k, v in sums.items() if k.startswith("dropped") and v})
    taken = sum(each.taken for each in counters)
    before = (
        sums["failed"] + sums["filtered"] + sum(dropped.values()) - dropped["dropped incomplete"]
    )
    assert sums["came"] == before + taken
    held = sum(status.held for status in found.statuses)
    released = sum(each.released for each in counters)
    assert taken == held + released + sums["passed_over"] + dropped["dropped incomplete"]


@pytest.mark.parametrize("kind", KINDS)
@settings(
    max_examples=examples(4, 60),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data(), shards=st.integers(1, 16), seed=st.integers(0, 1000))
def test_the_cut_into_micro_batches_does_not_matter(
    kind: str, data: st.DataObject, shards: int, seed: int
) -> None:
    rules, batches = data.draw(cases(kind))
    if kind not in TIMELESS:
        rules = replace(streams.uncut(rules), end_of_input="flush")
    events = streams.one_partition(batches)
    one_cut = data.draw(streams.recut(events))
    another = data.draw(streams.recut(events))
    assert emitted(kind, rules, one_cut, 1, seed) == emitted(kind, rules, another, shards, seed)


def emitted(
    kind: str, rules: Any, batches: list[MicroBatch], shards: int, seed: int
) -> Counter[Any]:
    """All batches of all micro-batches, whatever their order."""
    mode = "event" if kind == "event" else "forward"
    stream = EventStream(rules, mode, shards, random.Random(seed))
    return Counter(
        batch
        for step in batches
        for given in [stream.step(step)]
        for of_shard in given.batches.values()
        for batch in of_shard
    )


@pytest.mark.parametrize("kind", KINDS)
@settings(
    max_examples=examples(4, 60),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data(), shards=st.integers(1, 3), seed=st.integers(0, 1000))
def test_when_all_windows_have_closed_nothing_of_them_is_stored(
    kind: str, data: st.DataObject, shards: int, seed: int
) -> None:
    rules, batches = data.draw(cases(kind))
    batches = [replace(batch, ended=False) for batch in batches]
    rules = replace(rules, end_of_input="flush")
    if kind not in TIMELESS:
        # What a key's own clock, and what closed early, are remembered for ends with time.
        rules = replace(rules, clock_scope="stream", idle_timeout=None)
    mode = "event" if kind == "event" else "forward"
    stream = EventStream(rules, mode, shards, random.Random(seed))
    for batch in batches:
        stream.step(batch)
    stream.step(MicroBatch(stream.now or 0, ended=True))
    far = (stream.now or 0) + 1_000_000 * streams.HOUR
    # An event of every key, so far on that all clocks pass what is remembered, closes the rest.
    last = Event("last", far, "another key")
    if kind not in TIMELESS:
        stream.step(MicroBatch(far, (replace(last, filter=True),)))
        stream.step(MicroBatch(far, ended=True))
        stream.step(MicroBatch(far + streams.HOUR, (replace(last, time=2 * far),)))
    held = sum(status.held for status in stream.step(MicroBatch(far, ended=True)).statuses)
    left = sum(len(store.values) for store in stream.stores)
    allowed = 0 if kind in TIMELESS else 6
    assert held <= 1 and left <= shards + allowed


def test_a_key_costs_no_call_to_the_store() -> None:
    rules = Session(keyed=True, gap=10**12)
    stream = EventStream(rules, chance=random.Random(1))
    window = stream.window
    calls = []
    for number in range(4):
        store = stream.stores[0]
        store.calls = 0
        packer = Packer(window, 1, BufferMappings(PLAIN_TIME, FAST_KEY))
        raws = [raw_of(Event(f"{n}", n, f"key {n}")) for n in range(20_000)]
        packer.add_raws(raws, {}, 0, 10**9, execution(10**9))
        rows = [*packer.flush_rows(), MicroBatchInfo(10**9 + number, "start").to_row(0)]
        list(Shard(window, store).step(rows))
        calls.append(store.calls)
    assert max(calls) < 100


@pytest.mark.parametrize("emit", ["changes", "final"])
def test_what_was_late_for_a_window_stays_out_when_another_partition_opens_it(emit: str) -> None:
    # "late" comes when its own partition's clock has closed [0, 20); the other partition, which
    # knows nothing of that within a micro-batch, opens that window with "opens".
    rules = Hopping(keyed=True, size=20, every=10, emit=emit, end_of_input="keep")  # type: ignore[arg-type]
    events = (
        Event("ahead", 20, "k", 0),
        Event("late", 15, "k", 0),
        Event("opens", 15, "k", 1),
    )
    batch = MicroBatch(0, events)
    for rules_ in (rules, replace(rules, idle_timeout=1000)):
        expected = HoppingOracle(rules_).step(batch)
        assert ("opens",) in [one.ids for one in expected.batches]
        found = EventStream(rules_, chance=random.Random(0)).step(batch)
        assert_batches(expected, found, {})


@pytest.mark.parametrize(("late", "emit"), [(0, "final"), (0, "each"), (1, "final")])
def test_a_right_window_may_be_opened_as_long_as_its_last_millisecond_is(
    late: int, emit: str
) -> None:
    # The window [-3 ms, -1 ms] after "first" is open until the clock is at 12 ms, rounded down.
    rules = KafkaSliding(size=2 * MS, allowed_lateness=12 * MS, emit=emit, end_of_input="keep")  # type: ignore[arg-type]
    batches = [
        MicroBatch(0, (Event("first", -4 * MS),)),
        MicroBatch(0, (Event("ahead", (11 + late) * MS + 999_999),)),
        MicroBatch(0, (Event("second", -2 * MS - 1),)),
    ]
    oracle, stream = KafkaOracle(rules), EventStream(rules, chance=random.Random(0))
    for batch in batches:
        expected, found = oracle.step(batch), stream.step(batch)
        assert_batches(expected, found, {})
        assert found.dropped == dict(expected.dropped)
    assert found.dropped == ({"second": "late"} if late else {})


@pytest.mark.parametrize("scope", ["stream", "key"])
def test_what_is_late_for_a_window_that_idleness_closed_moves_the_clock_that_keys_share(
    scope: str,
) -> None:
    # Key "a" has lost [20, 50) to idleness, so "late" is; the stream has seen its time all the
    # same, and [0, 30) has closed for the key "b".
    rules = Hopping(
        keyed=True,
        clock_scope=scope,  # type: ignore[arg-type]
        idle_timeout=5,
        size=30,
        every=20,
        end_of_input="flush",
    )
    batches = [
        MicroBatch(0, (Event("opens", 25, "a", 0),)),
        MicroBatch(10),
        MicroBatch(10, (Event("late", 35, "a", 1), Event("new", 25, "b", 1)), ended=True),
    ]
    for shards in (1, 3):
        oracle = HoppingOracle(rules)
        stream = EventStream(rules, shards=shards, chance=random.Random(0))
        shard_of: dict[str, int] = {}
        for batch in batches:
            expected, found = oracle.step(batch), stream.step(batch)
            assert found.dropped == dict(expected.dropped)
            assert_batches(expected, found, shard_of)
        starts = {"stream": [20], "key": [0, 20]}[scope]
        assert found.dropped == {"late": "late"}
        assert [batch.start for batch in expected.batches] == starts
