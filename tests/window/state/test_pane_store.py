"""How the state is laid out: few calls, little that is written again, exact order."""

from __future__ import annotations

import numpy as np
import pytest

from streamer.core.durations import SECOND
from streamer.window import DictStore, MicroBatchInfo, Packer, Shard, SystemWindow
from streamer.window.aggregate.aggregate_codec import encode_aggregates
from streamer.window.aggregate.partial_aggregates import aggregation_for
from streamer.window.aggregate.pre_aggregator import PreAggregator
from streamer.window.evaluate.queries import BufferMappings
from streamer.window.pack.message_columns import SLOT_BITS
from streamer.window.pack.pack_codec import MAX_PACK_BYTES, read_header
from streamer.window.state.pane_store import IncomingPack, PaneIndex, PaneStore
from tests.window.fakes import execution, field_mapping, field_text

T = 1628330400 * SECOND


class CountingStore(DictStore):
    """Counts the bytes that are written, too."""

    def __init__(self) -> None:
        super().__init__()
        self.written = 0

    def put(self, pane: int, seq: int, value: bytes) -> None:
        self.written += len(value)
        super().put(pane, seq, value)


def feed(
    window: SystemWindow, store: DictStore, seconds: int, per_second: int, keyed: bool
) -> list[int]:
    """A micro-batch a second; returns the calls to the store in each."""
    calls = []
    for second in range(1, seconds + 1):
        t = T + second * SECOND
        mappings = BufferMappings(field_mapping("ts"), field_text("k") if keyed else None)
        packer = Packer(window, 1, mappings)
        raws = [
            b'{"ts":"2021-08-07T10:%02d:%02d.%03dZ","k":"%d"}'
            % (second // 60, second % 60, n, n % 5)
            for n in range(per_second)
        ]
        packer.add_raws(raws, {}, 0, t, execution(t))
        before = store.calls
        list(Shard(window, store).step([*packer.flush_rows(), MicroBatchInfo(t, "x").to_row(0)]))
        calls.append(store.calls - before)
    return calls


@pytest.mark.parametrize("keyed", [True, False])
def test_a_long_window_fed_every_second_costs_few_calls_and_few_rewrites(keyed: bool) -> None:
    window, store = SystemWindow(3600 * SECOND), CountingStore()
    calls = feed(window, store, 300, 10, keyed)
    assert sum(calls) / len(calls) <= 9
    assert max(calls) <= 40
    packs = sum(seq >= 0 for _, seq in store.values)
    assert packs <= 7 * 3
    assert store.written < 8 * 300 * 10 * 45


def test_a_sliding_window_of_many_panes_costs_few_calls_while_nothing_closes() -> None:
    window, store = SystemWindow(3600 * SECOND, 60 * SECOND), DictStore()
    calls = feed(window, store, 59, 10, False)
    assert max(calls) <= 40
    assert sum(calls) / len(calls) <= 12


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("slide", [None, 7 * SECOND])
def test_joined_packs_keep_the_order_of_arrival(keyed: bool, slide: int | None) -> None:
    window, store = SystemWindow(100 * SECOND, slide), DictStore()
    feed(window, store, 90, 12, keyed)
    end = window.grid.end_at_or_after(T + 95 * SECOND)
    step = Shard(window, store).step([MicroBatchInfo(end, "x").to_row(0)])
    batches = [e.messages for e in step if e.end == end]
    assert len(batches) == (5 if keyed else 1)
    for batch in batches:
        times = [message.doc["ts"] for message in batch]
        assert times == sorted(times)
    held = [s for s in range(1, 91) if T + s * SECOND > end - window.size]
    assert sum(map(len, batches)) >= 12 * (len(held) - 1)


FOLD = """
root = if batch_index() == 0 {
  {"plates": json("plate").from_all().unique().length()}
} else { deleted() }
"""


def test_folded_groups_share_their_texts_as_they_are_joined() -> None:
    chance, store = np.random.default_rng(3), DictStore()
    keep, came = PaneStore(store, PaneIndex(store, SystemWindow(3600 * SECOND))), 0
    size, known = 10_000, 30_000
    plates = [f"{number:020x}" for number in chance.integers(0, 1 << 60, known).tolist()]
    for number in range(64):
        folder = PreAggregator(aggregation_for(FOLD), None)
        columns = folder.make_columns(
            [{"plate": plates[i]} for i in chance.integers(0, known, size)]
        )
        arrivals = np.arange(size) + number * size
        folder.add([b"{}"] * size, np.full(size, 1 << SLOT_BITS), arrivals, [b""], columns)
        ((_, _, groups),) = folder.flush_groups(2, None, None)
        body = encode_aggregates(groups)[0]
        came += len(body)
        keep.put(0, [IncomingPack(body, 0, read_header(body))])
    packs = [value for (_, seq), value in store.values.items() if seq >= 0]
    assert max(map(len, packs)) < MAX_PACK_BYTES
    assert 8 * sum(map(len, packs)) < came


def test_folded_packs_of_one_micro_batch_are_kept_as_one() -> None:
    store = DictStore()
    keep, arrived = PaneStore(store, PaneIndex(store, SystemWindow(3600 * SECOND))), []
    for number in range(3):
        folder = PreAggregator(aggregation_for(FOLD), None)
        columns = folder.make_columns([{"plate": f"{plate:020}"} for plate in range(3_000)])
        arrivals, slots = np.arange(3_000) + 3_000 * number, np.full(3_000, 1 << SLOT_BITS)
        folder.add([b"{}"] * 3_000, slots, arrivals, [b""], columns)
        ((_, _, groups),) = folder.flush_groups(2, None, None)
        body = encode_aggregates(groups)[0]
        arrived.append(IncomingPack(body, 7, read_header(body)))
    assert min(pack.header.payload_bytes for pack in arrived) > 32 * 1024
    keep.put(0, arrived)
    (kept,) = [value for (_, seq), value in store.values.items() if seq >= 0]
    header = read_header(memoryview(kept)[8:])
    assert (header.messages, header.first, header.is_aggregated) == (9_000, 7, True)
    assert header.payload_bytes < 1.1 * arrived[0].header.payload_bytes
