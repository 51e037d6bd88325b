"""The store of messages: what was said to be safe is there, whatever happens to the writer."""

import os
import random

import pytest

from streamer.components.scanners.lines import LineScanner
from streamer.connectors.spool.blocks import pack_batch, pack_each, pack_uncut
from streamer.connectors.spool.pointer import read_safe
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.connectors.spool.store import SpoolStore, StoreFullError
from streamer.core.message import Failure, Message
from streamer.sdk.input.replayable import Limit
from tests.components.inputs.reading import Said, batches_of, planned, raws_of
from tests.components.inputs.rooms import lodging


def all_of(source: SpoolSource) -> list[bytes]:
    start = source.initial_offset()
    return raws_of(source, start, source.latest_offset(start, 0, Limit()).offset)


def one(text: bytes):
    return pack_each([text], {})


def test_what_is_appended_is_there_in_order_with_its_metadata(tmp_path):
    store = SpoolStore(tmp_path)
    failed = Message(b"b2", {"n": 2**70}, Failure("no", "mapping", "m", "pipeline.processors.0"))
    store.append([pack_each([b"a1", b"a2"], {"k": "v"}), pack_batch([Message(b"b1"), failed])])
    store.append([pack_uncut(b"c1\nc2\n", {"path": "/p"}, 2), pack_each([b"d"], {})])
    source = SpoolSource(tmp_path, LineScanner())
    start = source.initial_offset()
    latest = source.latest_offset(start, 0, Limit())
    found = batches_of(source, start, latest.offset)
    assert [[m.raw for m in b] for b in found] == [
        *([b"a1"], [b"a2"]),
        [b"b1", b"b2"],
        *([b"c1"], [b"c2"], [b"d"]),
    ]
    assert latest.waiting == 7 and not latest.is_ended
    assert found[1][0].meta == {"k": "v"} and found[3][0].meta == {"path": "/p"}
    failed = found[2][1]
    assert failed.meta == {"n": 2**70} and failed.error.path == "pipeline.processors.0"


def test_requests_are_noted_in_the_run_that_reads_them(tmp_path):
    SpoolStore(tmp_path).append(
        [pack_each([b"a"], {}, "r1"), pack_each([b"b"], {}), pack_batch([Message(b"c")], "r2")]
    )
    source, ex = SpoolSource(tmp_path), Said().execution()
    batches_of(source, source.initial_offset(), read_offset(source), ex=ex)
    assert ex.answers == {"r1": [], "r2": []}


def read_offset(source: SpoolSource):
    return source.latest_offset(source.initial_offset(), 0, Limit()).offset


@pytest.mark.parametrize("seed", range(5))
def test_after_a_crash_exactly_what_was_safe_is_there_and_the_newest_mark(tmp_path, seed):
    chance = random.Random(seed)
    expected: list[bytes] = []
    for start in range(4):
        store = SpoolStore(tmp_path, segment_bytes=300)
        assert store.mark == (len(expected) or None)
        for number in range(chance.randrange(1, 12)):
            group = [b"%d.%d.%d" % (start, number, n) for n in range(chance.randrange(1, 5))]
            expected += group
            store.append([one(raw) for raw in group], len(expected))
        # The machine went down in the middle of a write, and the pointer was not on disk.
        safe = read_safe(tmp_path)
        with open(tmp_path / f"{safe.segment:010d}.seg", "ab") as segment:
            whole = b"\x89SB1" + chance.randbytes(40)
            segment.write(whole[: chance.randrange(len(whole))])
        if chance.random() < 0.5:
            (tmp_path / "safe").write_bytes(b"")
            assert read_safe(tmp_path).segment == 0
    SpoolStore(tmp_path)
    assert all_of(SpoolSource(tmp_path)) == expected


def test_the_mark_outlives_the_segments_that_are_read(tmp_path):
    store = SpoolStore(tmp_path, segment_bytes=50)
    store.append([one(b"x" * 60)], {"at": 7})
    source = SpoolSource(tmp_path)
    source.on_committed(read_offset(source))
    assert len(list(tmp_path.glob("*.seg"))) == 1
    assert SpoolStore(tmp_path).mark == {"at": 7}


def test_micro_batches_are_bounded_and_the_input_ends_when_the_store_is_closed(tmp_path):
    store = SpoolStore(tmp_path, segment_bytes=200)
    for number in range(20):
        store.append([pack_each([b"%d" % number] * 10, {})])
    store.close()
    steps = list(planned(SpoolSource(tmp_path), Limit(messages=25)))
    assert [latest.waiting for _, latest in steps] == [30] * 6 + [20]
    assert [latest.has_more for _, latest in steps] == [True] * 6 + [False]
    assert [latest.is_ended for _, latest in steps] == [False] * 6 + [True]


def test_pieces_are_cut_at_blocks_and_together_have_all_in_order(tmp_path):
    store = SpoolStore(tmp_path, segment_bytes=3 << 20)
    for number in range(16):
        store.append([pack_each([b"%02d" % number + b"x" * (400 << 10)], {})])
    for inside in (False, True):
        source = SpoolSource(tmp_path, inline=inside)
        pieces = source.split(source.initial_offset(), read_offset(source), 3)
        assert 3 <= len(pieces) <= 5
        assert all((piece.data is not None) == inside for piece in pieces)
        if inside:
            for path in tmp_path.glob("*.seg"):
                path.unlink()
        found = [
            m.raw[:2] for p in pieces for c in source.read(p, Said().execution()) for (m,) in c
        ]
        assert found == [b"%02d" % number for number in range(16)]


def test_bytes_that_travel_in_tasks_are_fewer_in_a_micro_batch(tmp_path):
    store = SpoolStore(tmp_path)
    for _ in range(20):
        store.append([pack_each([b"x" * (4 << 20)], {})])
    store.close()
    for inside, expected in ((False, [20]), (True, [8, 8, 4])):
        steps = planned(SpoolSource(tmp_path, inline=inside), Limit())
        assert [latest.waiting for _, latest in steps if latest.waiting] == expected


def test_a_full_store_takes_nothing_until_something_is_read(tmp_path):
    store = SpoolStore(tmp_path, capacity=500, segment_bytes=100)
    with pytest.raises(StoreFullError, match="more than 500 bytes that are still to be read"):
        for _ in range(50):
            store.append([one(b"x" * 40)])
    source = SpoolSource(tmp_path)
    held = len(all_of(source))
    assert held < 20
    read = read_offset(source)
    source.on_committed(read)
    store.append([one(b"y")])
    assert raws_of(source, read, source.latest_offset(read, 0, Limit()).offset)[-1:] == [b"y"]


def test_a_small_store_that_was_full_has_room_again_when_all_is_read(tmp_path):
    store = SpoolStore(tmp_path, capacity=4_000)
    with pytest.raises(StoreFullError):
        for _ in range(200):
            store.append([one(b"x" * 40)])
    source = SpoolSource(tmp_path)
    source.on_committed(read_offset(source))
    # The segment that is written stays, and must not be all that the store may hold.
    for _ in range(20):
        store.append([one(b"y" * 40)])


def test_on_a_full_disk_what_is_read_can_go_though_nothing_more_is_written(tmp_path, monkeypatch):
    store = SpoolStore(tmp_path)
    store.append([one(os.urandom(100_000))])
    write, source = os.pwrite, SpoolSource(tmp_path)

    def small(file: int, data: bytes, at: int) -> int:
        if len(data) < 1_000:
            return write(file, data, at)
        write(file, data[: len(data) // 2], at)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr("streamer.connectors.spool.store.os.pwrite", small)
        for _ in range(3):
            with pytest.raises(OSError, match="No space"):
                store.append([one(os.urandom(100_000))])
    first, second = sorted(tmp_path.glob("*.seg"))
    assert first.stat().st_size < 110_000 and second.stat().st_size < 1_000
    read = source.latest_offset(source.initial_offset(), 0, Limit()).offset
    source.on_committed(read)
    assert list(tmp_path.glob("*.seg")) == [second]
    store.append([one(b"more")])
    assert raws_of(source, read, source.latest_offset(read, 0, Limit()).offset) == [b"more"]
    SpoolStore(tmp_path)
    assert raws_of(source, read, source.latest_offset(read, 0, Limit()).offset) == [b"more"]


def test_the_planner_is_woken_when_it_can_see_what_was_appended_and_the_end(tmp_path):
    seen = []
    with lodging(tmp_path) as lodged:
        context = lodged.room.child("a")
        store = SpoolStore.for_input(context)
        # Inputs outlive queries, each of which has a planner of its own.
        lodged.house.planner_waker.wake = lambda: seen.append(read_safe(context.directory))
        store.append([one(b"1")])
        store.append([one(b"2"), one(b"3")])
        store.close()
    assert [(safe.total, safe.closed) for safe in seen] == [(1, False), (3, False), (3, True)]


def test_a_disk_that_is_full_takes_nothing_by_halves(tmp_path, monkeypatch):
    store = SpoolStore(tmp_path)
    store.append([one(b"1")])
    write = os.pwrite

    def half(file: int, data: bytes, at: int) -> int:
        if len(data) > 30:
            return write(file, data[:10], at)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr("streamer.connectors.spool.store.os.pwrite", half)
        with pytest.raises(OSError, match="No space"):
            store.append([one(b"2" * 20)])
    assert all_of(SpoolSource(tmp_path)) == [b"1"]
    store.append([one(b"3")])
    assert all_of(SpoolSource(tmp_path)) == [b"1", b"3"]
    SpoolStore(tmp_path)
    assert all_of(SpoolSource(tmp_path)) == [b"1", b"3"]
