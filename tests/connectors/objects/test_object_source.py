"""Objects of any store as a source: micro-batches, pieces, replays, objects that change."""

from __future__ import annotations

import gc
import gzip
import io
import json
import pickle
import tarfile
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.connectors.objects import object_lines, object_pieces
from streamer.connectors.objects.object_lines import LineRange
from streamer.connectors.objects.object_offset import MAX_OBJECTS
from streamer.connectors.objects.object_source import ObjectSource
from streamer.connectors.objects.store import StoreUnavailableError
from streamer.sdk.input.replayable import Limit
from tests.components.inputs.reading import Said, batches_of, built, planned, raws_of
from tests.connectors.objects.scripted_store import NumberedStore, ScriptedStore

ALL = Limit()


def scanner_of(text: str) -> Any:
    return built(f"input: {{aws_s3: {{bucket: b, scanner: {{{text}}}}}}}\n")._scanner


def source(store: ScriptedStore, scanner: str = "lines: {}", **more: Any) -> ObjectSource:
    return ObjectSource(store, scanner_of(scanner), **more)


def everything(of: ObjectSource, limit: Limit = ALL, parts: int = 1) -> list[bytes]:
    return [
        raw
        for start, latest in planned(of, limit)
        for raw in raws_of(of, start, latest.offset, parts)
    ]


def tar(**files: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


LINES = [b"%d-%d" % (name, line) for name in range(3) for line in range(40)]
TEXTS = {f"o{name}": b"".join(b"%d-%d\n" % (name, line) for line in range(40)) for name in range(3)}


@pytest.mark.parametrize("limit", [Limit(1), Limit(7), Limit(1000), Limit(size=50), Limit()])
@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize(
    ("scanner", "pack"),
    [
        ("lines: {}", bytes),
        ("decompress: {algorithm: gzip, into: {lines: {}}}", gzip.compress),
        ("re_match: {pattern: '(?m)^'}", bytes),
    ],
)
def test_micro_batches_of_any_size_give_every_message_once_and_in_order(
    limit: Limit, parts: int, scanner: str, pack: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_pieces, "_MIN_RANGE_BYTES", 20)
    store = ScriptedStore(**{key: pack(text) for key, text in TEXTS.items()}, empty=b"")
    if "gzip" in scanner:
        store.delete(["empty"])
    found = [raw.strip() for raw in everything(source(store, scanner), limit, parts)]
    assert found == LINES


@given(
    text=st.text("ab\r\n", max_size=80),
    cuts=st.lists(st.integers(0, 80), max_size=6),
    delimiter=st.sampled_from([b"\n", b"\r\n", b"ab"]),
    block=st.integers(1, 5),
)
def test_ranges_have_each_line_once_wherever_they_are_cut(
    text: str, cuts: list[int], delimiter: bytes, block: int
) -> None:
    data = text.encode()
    store = ScriptedStore(x=data)
    listed = store.head("x")
    assert listed is not None
    bounds = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    ex = Said().execution()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(object_lines, "BLOCK_BYTES", block)
        patch.setattr(object_lines, "_TAIL_BYTES", block)
        blocks = []
        for start, end in pairwise(bounds):
            lines = LineRange(listed, start, end, delimiter)
            blocks.append(list(lines.iter_blocks(lines.open(store, ex), store, ex)))
    flat = [one for some in blocks for one in some]
    assert b"".join(flat) == data
    assert all(one.endswith(delimiter) for one in flat[:-1])
    starts = [0] + [at + len(delimiter) for at in _places(data, delimiter)]
    at = 0
    for (start, end), some in zip(pairwise(bounds), blocks, strict=True):
        if some:
            assert start <= at < end and at in starts
        at += sum(map(len, some))


def _places(data: bytes, delimiter: bytes) -> Iterator[int]:
    at = data.find(delimiter)
    while at >= 0:
        yield at
        at = data.find(delimiter, at + len(delimiter))


def test_a_large_object_of_lines_is_read_by_several_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_pieces, "_MIN_RANGE_BYTES", 1000)
    text = b"".join(b"%d\n" % number for number in range(5000))
    of = source(ScriptedStore(small=b"first\n", x=text))
    latest = of.latest_offset(of.initial_offset(), 0, Limit())
    pieces = of.split(of.initial_offset(), latest.offset, 4)
    assert 4 <= len(pieces) <= 6
    # Pieces may be read in any order, in other processes.
    per_piece = [
        [
            raw
            for chunk in of.read(pickle.loads(pickle.dumps(piece)), Said().execution())
            for raw in chunk.raws
        ]
        for piece in reversed(pieces)
    ]
    assert [raw for some in reversed(per_piece) for raw in some] == [
        b"first",
        *[b"%d" % number for number in range(5000)],
    ]


def test_a_replay_has_the_same_objects_though_others_have_come() -> None:
    store = ScriptedStore(a=b"1\n", c=b"3\n")
    of = source(store)
    start = of.initial_offset()
    end = json.loads(json.dumps(of.latest_offset(start, 0, Limit()).offset))
    store.put("b", b"2\n")
    again: ObjectSource = pickle.loads(pickle.dumps(of))
    assert raws_of(again, start, end) == [b"1", b"3"]


def test_an_object_that_cannot_be_read_does_not_stop_the_others() -> None:
    store = ScriptedStore(
        a=gzip.compress(b"1\n2\n"), b=b"no gzip", c=gzip.compress(b"3\n"), d=gzip.compress(b"4\n")
    )
    of = source(store, "decompress: {algorithm: gzip, into: {lines: {}}}")
    latest = of.latest_offset(of.initial_offset(), 0, Limit())
    store.delete(["c"])
    said = Said()
    found = [
        m.raw for [m] in batches_of(of, of.initial_offset(), latest.offset, ex=said.execution())
    ]
    assert found == [b"1", b"2", b"4"]
    assert [level for level, _ in said.log] == ["ERROR", "ERROR"]
    assert "it is not there any more" in said.log[1][1] and said.counts == {"input_error": 2}


def test_a_broken_connection_is_made_again_where_it_broke() -> None:
    store = ScriptedStore(x=b"".join(b"%d\n" % number for number in range(1000)))
    failures = [StoreUnavailableError("away")] * 3

    def fail(key: str) -> None:
        if failures:
            raise failures.pop()

    of = source(store)
    latest = of.latest_offset(of.initial_offset(), 0, Limit())
    store.before_open = fail
    ex = Said().execution()
    ex.sleep = lambda ns: None
    found = [m.raw for [m] in batches_of(of, of.initial_offset(), latest.offset, ex=ex)]
    assert found == [b"%d" % number for number in range(1000)] and not failures


@pytest.mark.parametrize("scanner", ["lines: {}", "csv: {parse_header_row: false}"])
def test_an_object_that_is_replaced_while_it_is_read_in_part_is_read_again(scanner: str) -> None:
    store = ScriptedStore(x=b"".join(b"old%d\n" % number for number in range(1000)), y=b"last\n")
    of = source(store, scanner)
    first = of.latest_offset(of.initial_offset(), 0, Limit(10))
    assert first.has_more
    planned_before = of.latest_offset(first.offset, 0, Limit(10))
    store.put("x", b"new0\nnew1\n")
    said = Said()
    # What was planned of the old one cannot be read any more.
    assert raws_of(of, first.offset, planned_before.offset) == []
    latest = of.latest_offset(planned_before.offset, 0, Limit())
    found = batches_of(of, planned_before.offset, latest.offset, ex=said.execution())
    assert [b"new" in m.raw for [m] in found] == [True, True, False]
    assert [level for level, _ in said.log] == ["WARN"]


def test_objects_are_deleted_when_they_are_safe_but_not_those_that_have_come_since() -> None:
    store = ScriptedStore(a=b"1", b=b"2", c=b"3")
    of = source(store, "to_the_end: {}", deletes=True)
    start = of.initial_offset()
    latest = of.latest_offset(start, 0, Limit(2))
    assert raws_of(of, start, latest.offset) == [b"1", b"2"]
    assert store.keys() == ["a", "b", "c"]
    store.put("b", b"new")
    of.on_committed(latest.offset)
    assert store.keys() == ["b", "c"]


def test_objects_are_tagged_when_they_are_safe() -> None:
    store = ScriptedStore(a=b"1")
    of = source(store, "to_the_end: {}", tags={"done": "yes"})
    of.on_committed(of.latest_offset(of.initial_offset(), 0, Limit()).offset)
    assert store.tags == {"a": {"done": "yes"}} and store.keys() == ["a"]


def test_a_million_keys_need_no_more_memory_than_a_few_thousand() -> None:
    store = NumberedStore(1_000_000)
    of = source(store, "to_the_end: {}")
    at, batches, sizes = of.initial_offset(), 0, []
    while not (latest := of.latest_offset(at, 0, ALL)).is_ended:
        batches += 1
        if batches % 200 == 5:
            gc.collect()
            sizes.append(len(gc.get_objects()))
            assert len(json.dumps(latest.offset)) < 60_000
            # Each key is its object's text.
            found = raws_of(of, at, latest.offset)
            first = (batches - 1) * MAX_OBJECTS
            assert found == [b"%09d" % number for number in range(first, first + MAX_OBJECTS)]
        at = latest.offset
    assert batches == store.count // MAX_OBJECTS
    assert max(sizes) < sizes[0] + 5000
