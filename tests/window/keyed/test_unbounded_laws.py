"""The laws of windows without end, on random streams, against the oracle."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.core.execution import Execution
from streamer.core.timestamps import format_rfc3339
from streamer.window import DictStore, Emission, Shard
from streamer.window.aggregate.fire_groups import AggregatedGroup
from streamer.window.aggregate.partial_aggregates import aggregation_for
from streamer.window.rescale.rescale_state import rescale
from tests.examples import examples
from tests.window import stages
from tests.window.kinds_stream import EventStream
from tests.window.oracle import streams
from tests.window.oracle.events import Emitted, MicroBatch
from tests.window.oracle.unbounded import Unbounded, UnboundedOracle

FOLD = """
root = if batch_index() == 0 {
  { "ids": json("id").from_all().unique(), "count": batch_size(), "last": this.id }
} else { deleted() }
"""


@st.composite
def unbounded(draw: st.DrawFn) -> Unbounded:
    latest = draw(st.booleans())
    order = draw(st.sampled_from(["arrival", "event_time"])) if latest else "arrival"
    return Unbounded(
        keyed=draw(st.booleans()),
        filtered=draw(st.booleans()),
        idle_timeout=draw(st.none() | st.sampled_from([1, 5, streams.SPAN])),
        emit=draw(st.sampled_from(["changes", "each"])),
        end_of_input="keep",
        latest=latest,
        deletes=latest and order == "arrival" and draw(st.booleans()),
        order=order,
    )


@st.composite
def cases(
    draw: st.DrawFn, keys: Sequence[object] = streams.KEYS
) -> tuple[Unbounded, list[MicroBatch]]:
    rules = draw(unbounded())
    return rules, draw(streams.streams(rules, keys=keys))


class GlobalStream(EventStream):
    """A stream through both stages."""

    def __init__(self, rules: Unbounded, shards: int, seed: int) -> None:
        super().__init__(rules, shards=shards, chance=random.Random(seed))

    def shard(self, store: DictStore) -> Shard:
        text = FOLD if self.window.holds_nothing else None
        return Shard(self.window, store, keep_dropped=True, aggregated_mapping=text)

    def told(self, emission: Emission) -> Any:
        messages = emission.messages
        ids = tuple(message.doc["id"] for message in messages)
        if isinstance(messages, AggregatedGroup):
            mapping = aggregation_for(FOLD).mapping
            made = mapping.query(messages, 0, Execution(lambda: 0))
            assert made["count"] == len(made["ids"]) == messages.size
            assert made["last"] == ids[0] == made["ids"][-1]
            ids = tuple(made["ids"])
        meta = stages.of_window(emission)
        assert emission.end is None and emission.start is None
        return meta["window_emit"], ids, meta.get("window_key"), meta["window_max_timestamp"]


def told(emitted: Emitted) -> tuple[object, ...]:
    assert emitted.latest is not None
    return emitted.reason, emitted.ids, emitted.window_key, format_rfc3339(emitted.latest)


@settings(max_examples=examples(60, 600), deadline=None)
@given(case=cases(), shards=st.integers(1, 3), seed=st.integers(0, 1000))
def test_every_micro_batch_gives_what_the_rules_say(
    case: tuple[Unbounded, list[MicroBatch]], shards: int, seed: int
) -> None:
    rules, batches = case
    oracle, stream = UnboundedOracle(rules), GlobalStream(rules, shards, seed)
    for batch in batches:
        expected, found = oracle.step(batch), stream.step(batch)
        assert found.failed == expected.failed
        assert sorted(found.dropped.items()) == sorted(expected.dropped)
        given = [one for of_shard in found.batches.values() for one in of_shard]
        wanted = [told(one) for one in expected.batches]
        assert Counter(given) == Counter(wanted)
        for of_shard in found.batches.values():
            assert of_shard == [one for one in wanted if one in of_shard]
        assert sum(one.open_windows for one in found.statuses) == len(oracle.held)
        kept = sum(len(held.inside) for held in oracle.held.values()) if rules.latest else 0
        assert sum(one.held for one in found.statuses) == kept
        counters = [one.counters for one in found.statuses]
        taken = sum(each.taken for each in counters)
        assert taken == kept + sum(each.released for each in counters)


@settings(max_examples=examples(30, 300), deadline=None)
@given(
    case=cases(("a", "b", "c")),
    shards=st.integers(1, 4),
    seed=st.integers(0, 1000),
    data=st.data(),
)
def test_the_cut_and_the_shards_do_not_matter(
    case: tuple[Unbounded, list[MicroBatch]], shards: int, seed: int, data: st.DataObject
) -> None:
    rules, batches = replace(case[0], idle_timeout=None), case[1]
    events = streams.one_partition(batches)
    last: list[dict[object, object]] = []
    for count in (1, shards):
        stream, results = GlobalStream(rules, count, seed), {}
        cut = data.draw(streams.recut(events))
        for number, batch in enumerate(cut):
            for of_shard in stream.step(batch).batches.values():
                results |= {one[2]: one for one in of_shard}
            if number == len(cut) // 2 and rules.keyed:
                stores = [DictStore() for _ in range(5 - count)]
                stream.stores = rescaled(stream, stores)
        last.append(results)
    if rules.emit == "each" or not rules.deletes:
        assert last[0] == last[1]
    else:
        # A key that came and went within a micro-batch may have said so, or not.
        mine = [{k: v for k, v in one.items() if v[0] != "deleted"} for one in last]
        assert mine[0] == mine[1]


def rescaled(stream: GlobalStream, into: list[DictStore]) -> list[DictStore]:
    rescale(stream.window, stream.window.keyed, stream.stores, into)
    return into
