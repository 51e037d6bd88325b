"""Folded groups, as packs and merged."""

from __future__ import annotations

import gc
import hashlib
import time
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from streamer.bloblang.analysis.aggregates import AggregateKind
from streamer.bloblang.errors import QueryError
from streamer.window.aggregate.aggregate_codec import decode_aggregates, encode_aggregates
from streamer.window.aggregate.fire_groups import CollectedGroups, fire_groups
from streamer.window.aggregate.partial_aggregates import (
    PartialAggregates,
    aggregation_for,
    merge_partial_aggregates,
)
from streamer.window.aggregate.pre_aggregator import PreAggregator
from streamer.window.aggregate.registry import ACCUMULATORS
from streamer.window.pack.message_columns import SLOT_BITS, FiredGroup
from streamer.window.pack.pack_codec import PackColumns, PackError, StoredPack, lengths_of
from streamer.window.pack.pack_codec import encode_pack as encode_whole
from streamer.window.pack.window_metadata import WindowMetadata
from streamer.window.panes.pane_step import EventWindowMetadata
from streamer.window.settings.int_codec import Ints

FOLD = 'root = if batch_index() == 0 { {"sum": json("v").from_all().sum()} } else { deleted() }'
KEYS = [b"a", b"b"]


def folded(
    groups: list[int], times: list[int] | None, first: int = 0, text: str = FOLD
) -> PartialAggregates:
    """Messages of one slot, by the number of their group."""
    folder = PreAggregator(aggregation_for(text), 7)
    raws = [b'{"v":%d}' % group for group in groups]
    codes = np.array(groups, np.int64) + (1 << SLOT_BITS)
    columns = folder.make_columns([{"v": group} for group in groups])
    arrivals: Ints = np.arange(first, first + len(groups))
    of = None if times is None else np.array(times, np.int64)
    folder.add(raws, codes, arrivals, [b""], columns, of)
    ((_, _, found),) = folder.flush_groups(2, KEYS, None)
    return found


def test_a_group_knows_the_largest_event_time_of_its_messages() -> None:
    found = folded([0, 1, 0, 1], [5, -3, 4, -2])
    assert found.max_times is not None
    assert found.max_times.tolist() == [5, -2]


def test_merged_groups_know_it_too_whichever_packs_they_are_in() -> None:
    both = merge_partial_aggregates(
        [folded([0, 1], [5, -3]), folded([1], [9], 2), folded([1, 0], [-9, 6], 3)]
    )
    assert both.max_times is not None
    assert dict(zip(both.keys, both.max_times.tolist(), strict=True)) == {b"a": 6, b"b": 9}


@pytest.mark.parametrize("times", [None, [5, -3]])
def test_a_pack_keeps_what_its_groups_know(times: list[int] | None) -> None:
    groups = folded([0, 1], times)
    found = decode_aggregates(encode_aggregates(groups)[0])
    assert (found.keys, found.counts.tolist()) == (KEYS, [1, 1])
    assert (None if found.max_times is None else found.max_times.tolist()) == times


def test_groups_that_another_version_folded_otherwise_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    body = encode_aggregates(folded([0, 1], None))[0]
    fold = aggregation_for(FOLD)
    more = replace(fold, aggregates=fold.aggregates * 3)
    module = "streamer.window.aggregate.partial_aggregates"
    monkeypatch.setattr(f"{module}.aggregation_for", lambda text: more)
    with pytest.raises(PackError, match="holds 1 things.*finds 3 in the mapping"):
        decode_aggregates(body)


def test_every_kind_of_part_has_what_keeps_it_up_to_date() -> None:
    assert set(ACCUMULATORS) == set(get_args(AggregateKind))


def released(keys: list[bytes], each: int, spoiled: bytes = b"") -> list[FiredGroup]:
    """Release a window that holds a folded group, and messages of keys that were kept whole."""
    raws = [
        b"no JSON" if key == spoiled and number else b'{"v":%d}' % number
        for key in keys
        for number in range(each)
    ]
    told = EventWindowMetadata(WindowMetadata(0, 10, "final"), True, {})
    return list(fire_groups(CollectedGroups([folded([0], [5])], [whole(keys, raws, 10)]), told))


def whole(keys: list[bytes], raws: list[bytes], first: int) -> StoredPack:
    """A pack of messages, of each key as many."""
    arrivals: Ints = np.arange(first, first + len(raws))
    counts, newest = np.full(len(keys), len(raws) // len(keys)), np.arange(len(keys))
    columns = raws, lengths_of(raws), arrivals, [b""]
    pack = PackColumns(*columns, keys=keys, counts=counts, key_id=7, max_times=newest)
    return encode_whole(pack), 0


def test_what_was_kept_whole_is_folded_key_by_key() -> None:
    found = released([b"", b"b", b"c", b"d"], 3000, spoiled=b"c")
    assert [one.key for one in found] == [b"a", b"", b"b", b"c", b"d"]
    batches = {one.key: one.messages for one in found}
    assert len(batches[b""]) == 3000
    for key in (b"b", b"d"):
        assert batches[key].size == 3000
        assert batches[key].aggregate_value(0) == sum(range(3000))
    with pytest.raises(QueryError):
        batches[b"c"].aggregate_value(0)


@pytest.mark.parametrize(("between", "last"), [(0, 5), (15, 5), (30, 1)])
def test_messages_that_were_kept_whole_stay_in_order_with_what_was_folded(
    between: int, last: int
) -> None:
    text = FOLD.replace("sum()", "index(-1)")
    packs = [
        whole([b"b", b"c"], [b'{"v":7}', b'{"v":8}', b'{"v":9}', b'{"v":6}'], 10),
        whole([b"d", b"b"], [b'{"v":3}', b'{"v":5}'], 20),
    ]
    told = EventWindowMetadata(WindowMetadata(0, 10, "final"), True, {})
    # A folded message of the key b, whose value is 1.
    found = list(fire_groups(CollectedGroups([folded([1], [5], between, text)], packs[::-1]), told))
    batches = {one.key: one.messages for one in found}
    assert {key: batch.size for key, batch in batches.items()} == {b"b": 4, b"c": 2, b"d": 1}
    assert [batches[key].aggregate_value(0) for key in (b"b", b"c", b"d")] == [last, 6, 3]
    assert [one.first for one in found] == [min(between, 10), 12, 20]
    assert batches[b"b"][0].raw == (b'{"v":1}' if between < 10 else b'{"v":7}')


def test_packs_that_arrived_at_the_same_time_are_counted_in_their_groups() -> None:
    packs = [whole([b"b"], [b'{"v":1}'] * 8, 10), whole([b"c", b"b"], [b'{"v":2}'] * 4, 14)]
    told = EventWindowMetadata(WindowMetadata(0, 10, "final"), True, {})
    found = list(fire_groups(CollectedGroups([folded([0], [5])], packs), told))
    assert [(one.key, one.messages.size) for one in found] == [(b"a", 1), (b"b", 10), (b"c", 2)]
    assert [one.messages.aggregate_value(0) for one in found] == [0, 12, 4]


def test_a_window_of_many_keys_that_were_kept_whole_does_not_go_through_all_for_each() -> None:
    def seconds_of(count: int) -> float:
        keys = [b"%06d" % number for number in range(count)]
        begin = time.process_time()
        assert len(released(keys, 1)) == count + 1
        return time.process_time() - begin

    # Four times as many take four times as long; it was sixteen times. The first run compiles, the
    # garbage collector goes through what other tests left, and a busy machine slows one of the two.
    gc.collect()
    gc.disable()
    try:
        seconds_of(100)
        for _ in range(5):
            small, large = (min(seconds_of(count) for _ in range(2)) for count in (8_000, 32_000))
            if large <= 8 * small:
                return
    finally:
        gc.enable()
    raise AssertionError(f"{large} s for four times what takes {small} s")


@pytest.mark.parametrize(("groups", "version"), [(199, 2), (200, 4), (3_000, 4)])
def test_many_groups_have_their_keys_before_their_payloads(groups: int, version: int) -> None:
    folder = PreAggregator(aggregation_for(FOLD), 7)
    keys = [hashlib.sha256(b"%d" % number).hexdigest().encode() for number in range(groups)]
    raws = [b'{"v":%d,"key":"%b"}' % (number, key) for number, key in enumerate(keys)]
    columns = folder.make_columns([{"v": number} for number in range(groups)])
    codes = np.arange(groups)
    folder.add(raws, codes, codes, [b""], columns)
    ((_, _, made),) = folder.flush_groups(1, keys, None)
    body, _ = encode_aggregates(made)
    assert body[0] == version  # so that earlier programs read what they can, and refuse the rest
    found = decode_aggregates(body, 3)
    assert (found.keys, found.payloads) == (keys, raws)
    assert found.arrivals.tolist() == (codes + 3).tolist()
    if groups == 3_000:
        assert len(body) < 48 * groups  # a key of 64 digits takes 32 to 37 bytes, once
