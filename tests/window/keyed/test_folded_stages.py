"""Windows that come early, on time, late and at the close: folded, they say what whole ones do."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.bloblang import compile_mapping
from streamer.core.execution import Execution
from streamer.window import DictStore, Emission, Shard
from streamer.window.aggregate.fire_groups import AggregatedGroup
from streamer.window.aggregate.partial_aggregates import aggregation_for
from tests.examples import examples
from tests.window import stages
from tests.window.kinds_stream import EventStream, Rules
from tests.window.oracle import streams
from tests.window.oracle.events import MicroBatch

FOLD = """
root = if batch_index() == 0 {
  { "ids": json("id").from_all().unique(), "count": batch_size(), "first": this.id }
} else { deleted() }
"""


@st.composite
def cases(draw: st.DrawFn) -> tuple[Rules, list[MicroBatch]]:
    kinds = (streams.hoppings(tumbling=True), streams.sessions(), streams.limited_sessions())
    rules: Any = draw(st.one_of(*kinds))
    also = draw(st.sampled_from([("on_time",), ("close",), ("on_time", "close")]))
    emit = draw(st.sampled_from(["changes", "each"]))
    rules = replace(rules, emit=emit, emit_also=frozenset(also), order="arrival")
    return rules, draw(streams.streams(rules))


class MappedStream(EventStream):
    """A stream whose batches are told by what the mapping makes of them."""

    folds = False

    def shard(self, store: DictStore) -> Shard:
        text = FOLD if self.folds else None
        return Shard(self.window, store, keep_dropped=True, aggregated_mapping=text)

    def told(self, emission: Emission) -> Any:
        assert isinstance(emission.messages, AggregatedGroup) == self.folds
        mapping = aggregation_for(FOLD).mapping if self.folds else compile_mapping(FOLD)
        made = mapping.query(emission.messages, 0, Execution(lambda: 0))
        return sorted(stages.of_window(emission).items()), made


@settings(max_examples=examples(20, 300), deadline=None)
@given(case=cases(), shards=st.integers(1, 3), seed=st.integers(0, 1000))
def test_folded_windows_say_the_same_at_every_stage(
    case: tuple[Rules, list[MicroBatch]], shards: int, seed: int
) -> None:
    rules, batches = case
    whole, folded = (MappedStream(rules, shards=shards, chance=random.Random(seed)) for _ in "ab")
    folded.folds = True
    for batch in batches:
        expected, found = whole.step(batch), folded.step(batch)
        assert found.batches == expected.batches
        assert [s.counters for s in found.statuses] == [s.counters for s in expected.statuses]
        assert [s.held for s in found.statuses] == [s.held for s in expected.statuses]
