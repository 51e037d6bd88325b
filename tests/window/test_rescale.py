"""A stream whose state is cut anew between micro-batches gives what the rules say all the same."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamer.core.errors import StreamerError
from streamer.window import DictStore, MicroBatchInfo, Shard
from streamer.window.aggregate.partial_aggregates import aggregation_for
from streamer.window.rescale.rescale_state import RescaleResult, rescale
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.window_types import EventTimeSettings, Join, Session, Tumbling
from tests.examples import examples
from tests.window.event_stream import EventStream as PaneStream
from tests.window.event_stream import window_of as panes_of
from tests.window.keyed.columns.stream import FoldedSessions
from tests.window.keyed.columns.test_session_laws import PLAIN
from tests.window.keyed.columns.test_session_laws import cases as session_cases
from tests.window.kinds_stream import EventStream, told
from tests.window.oracle.system import Oracle
from tests.window.stages import Stages
from tests.window.stream import Stream
from tests.window.test_event_laws import KINDS, assert_counters, cases, count
from tests.window.test_laws import assert_counters as assert_system_counters
from tests.window.test_laws import cases as system_cases
from tests.window.test_pane_laws import FOLD, summary
from tests.window.test_pane_laws import cases as pane_cases
from tests.window.test_retractions import KINDS as RETRACTED
from tests.window.test_retractions import RetractedStream, given_in_order
from tests.window.test_retractions import cases as retracted_cases

LAW = {"deadline": None, "suppress_health_check": list(HealthCheck)}
TURNS = st.lists(st.sampled_from([None, 1, 2, 3, 7]), min_size=12, max_size=12)
"""By micro-batch, how many shards there are from then on."""


def cut_anew(stream: Stages[Any, Any], shards: int | None, keyed: bool) -> RescaleResult | None:
    """Give a stream another number of shards."""
    if shards is None:
        return None
    into = [DictStore() for _ in range(shards)]
    window: Any = stream.window  # type: ignore[attr-defined]
    moved = rescale(window, keyed, stream.stores, into)
    stream.stores = into
    return moved


@settings(max_examples=examples(15, 80), **LAW)
@given(
    kind=st.sampled_from(list(KINDS)),
    data=st.data(),
    turns=TURNS,
    shards=st.integers(1, 4),
    seed=st.integers(0, 1000),
)
def test_windows_of_all_kinds_go_on_in_other_shards(
    kind: str, data: st.DataObject, turns: list[int | None], shards: int, seed: int
) -> None:
    rules, batches = data.draw(cases(kind))
    oracle = KINDS[kind][1](rules)
    mode = "event" if kind == "event" else "forward"
    stream = EventStream(rules, mode, shards, random.Random(seed))
    sums: Counter[str] = Counter()
    for number, batch in enumerate(batches):
        expected, found = oracle.step(batch), stream.step(batch)
        assert sorted(found.failed) == sorted(expected.failed)
        assert sorted(found.dropped.items()) == sorted(expected.dropped)
        given = [one for of_shard in found.batches.values() for one in of_shard]
        assert Counter(map(repr, given)) == Counter(repr(told(one)) for one in expected.batches)
        count(sums, batch, expected)
        assert_counters(found, sums)
        moved = cut_anew(stream, turns[number % len(turns)], rules.keyed)
        assert moved is None or moved.messages == sum(s.held for s in found.statuses)


@settings(max_examples=examples(12, 50), **LAW)
@given(case=system_cases(), turns=TURNS, keyed=st.booleans(), seed=st.integers(0, 1000))
def test_system_windows_do_as_well_or_are_refused(
    case: Any, turns: list[int | None], keyed: bool, seed: int
) -> None:
    rules, says, batches = case
    oracle = Oracle(rules)
    stream = Stream(rules, 2, keyed, random.Random(seed), says)
    dropped: Counter[str] = Counter()
    failed = emitted = 0
    for number, batch in enumerate(batches):
        expected, found = oracle.step(batch), stream.step(batch)
        assert found.dropped == expected.dropped
        given = Counter(
            (end, reason, name)
            for of_shard in found.batches.values()
            for end, reason, names in of_shard
            for name in names
        )
        windows = expected.windows
        assert given == Counter((end, why, name) for end, why, some in windows for name, _ in some)
        dropped.update(expected.dropped.values())
        failed += len(expected.failed)
        emitted += sum(len(inside) for _, _, inside in windows)
        assert_system_counters(found, oracle, dropped, failed, emitted)
        try:
            cut_anew(stream, turns[number % len(turns)], keyed)
        except StreamerError as e:
            assert "try again when the windows up to" in str(e)
            assert rules.slide and rules.on_expired == "drop" and keyed


@settings(max_examples=examples(8, 40), **LAW)
@given(case=pane_cases(), turns=TURNS, folds=st.booleans(), seed=st.integers(0, 1000))
def test_windows_that_are_kept_by_panes_go_on_whole_and_folded(
    case: Any, turns: list[int | None], folds: bool, seed: int
) -> None:
    rules, batches = case
    fold = aggregation_for(FOLD) if folds else None
    still, moved = (
        PaneStream(panes_of(rules), rules.filtered, 2, random.Random(seed), fold=fold)
        for _ in range(2)
    )
    for number, batch in enumerate(batches):
        expected, found = still.step(batch), moved.step(batch)
        assert shown(found) == shown(expected)
        assert found.dropped == expected.dropped
        cut_anew(moved, turns[number % len(turns)], rules.keyed)


def shown(found: Any) -> Any:
    counters: Counter[str] = Counter()
    for status in found.statuses:
        for name, value in vars_of(status.counters):
            counters[name] += value
        counters["held"] += status.held
    batches = [repr(summary(one)) for of_shard in found.batches.values() for one in of_shard]
    return sorted(batches), +counters


def vars_of(counters: Any) -> list[tuple[str, int]]:
    dropped = list(counters.dropped.items())
    names = ("taken", "failed", "released", "emitted_messages", "filtered", "suppressed")
    return [*dropped, *((name, getattr(counters, name)) for name in names)]


@settings(max_examples=examples(8, 40), **LAW)
@given(case=session_cases(), turns=TURNS, seed=st.integers(0, 1000))
def test_sessions_that_are_kept_as_columns_do_as_well(
    case: Any, turns: list[int | None], seed: int
) -> None:
    rules, batches = case
    still, moved = (FoldedSessions(rules, PLAIN, 2, random.Random(seed)) for _ in range(2))
    for number, batch in enumerate(batches):
        expected, found = still.step(batch), moved.step(batch)
        one, other = (
            sorted(repr(uncut(each)) for some in given.batches.values() for each in some)
            for given in (found, expected)
        )
        assert one == other
        assert sum(s.held for s in found.statuses) == sum(s.held for s in expected.statuses)
        cut_anew(moved, turns[number % len(turns)], rules.keyed)


@settings(max_examples=examples(12, 60), **LAW)
@given(
    kind=st.sampled_from(list(RETRACTED)),
    data=st.data(),
    turns=TURNS,
    has_having=st.booleans(),
    folds=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_results_are_retracted_in_other_shards_too(
    kind: str,
    data: st.DataObject,
    turns: list[int | None],
    has_having: bool,
    folds: bool,
    seed: int,
) -> None:
    rules, batches = data.draw(retracted_cases(kind))
    still, moved = (RetractedStream(rules, shards=2, chance=random.Random(seed)) for _ in range(2))
    for stream in (still, moved):
        stream.folds = folds and rules.order == "arrival"
        stream.has_having = has_having and not stream.folds
    for number, batch in enumerate(batches):
        one, other = (
            Counter((told.row, told.ids) for told in given_in_order(stream, batch))
            for stream in (still, moved)
        )
        assert one == other
        cut_anew(moved, turns[number % len(turns)], rules.keyed)


def uncut(session: Any) -> Any:
    """What a session says, without what its messages were told of their task."""
    reason, key, bounds, meta, *rest = session
    told = {name: value for name, value in meta.items() if name.startswith("window_")}
    return reason, key, bounds, told, *rest


@pytest.mark.parametrize("kind", [Tumbling(10, 10), Session(5), Join("left", "right", 1, 1)])
def test_shards_of_different_micro_batches_are_refused(kind: Any) -> None:
    window = EventWindow(kind, EventTimeSettings(), keyed=True)
    stores = [DictStore(), DictStore()]
    for shard, store in enumerate(stores):
        list(Shard(window, store).step([MicroBatchInfo(shard, "a").to_row(shard)]))
    with pytest.raises(StreamerError, match="clocks do not agree"):
        rescale(window, True, stores, [DictStore()])
