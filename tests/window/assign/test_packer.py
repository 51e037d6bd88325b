from __future__ import annotations

import zlib
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.bloblang import compile_interpolation, compile_mapping
from streamer.core.durations import SECOND
from streamer.core.errors import StreamerError
from streamer.core.message import Message
from streamer.window import Packer, RowKind, ShuffleRow, SystemWindow
from streamer.window.contract import MAX_DROPPED_SAMPLES
from streamer.window.evaluate.queries import BufferMappings, field_getter_of, is_now_mapping
from streamer.window.pack.pack_codec import MAX_PACK_BYTES, Pack, read_header
from tests.window.fakes import NOW, FakeMapping, execution, field_mapping, field_text

T = 1628330400 * SECOND
WINDOW = SystemWindow(10 * SECOND)
TS = field_mapping("ts")


def rows_of(
    raws: list[bytes],
    timestamp: FakeMapping = TS,
    key: Any = None,
    shards: int = 1,
    log: list[tuple[str, str]] | None = None,
    keep_dropped: bool = False,
) -> list[ShuffleRow]:
    packer = Packer(WINDOW, shards, BufferMappings(timestamp, key), keep_dropped=keep_dropped)
    packer.add_raws(raws, {"from": "test"}, 0, T, execution(T, log))
    return list(packer.flush_rows())


def event(ts: Any, **fields: Any) -> bytes:
    return orjson.dumps({"ts": ts, **fields})


def packed(rows: list[ShuffleRow], kind: RowKind = RowKind.PACK) -> dict[int, list[bytes]]:
    return {row.pane: Pack(row.body).payloads() for row in rows if row.kind == kind}


def test_messages_are_packed_by_pane() -> None:
    early, late = event("2021-08-07T09:59:51Z"), event("2021-08-07T10:00:00.000000001Z")
    rows = rows_of([early, late, early])
    assert packed(rows) == {T: [early, early], T + 10 * SECOND: [late]}
    assert [row.arrival for row in rows] == [0, 1]
    assert {row.shard for row in rows} == {0}


def test_a_time_of_exactly_t_and_one_that_said_now_are_left_to_the_shard() -> None:
    exact = event("2021-08-07T12:00:00+02:00")
    assert packed(rows_of([exact]), RowKind.EXACT) == {T: [exact]}
    assert packed(rows_of([b"no json"], NOW), RowKind.NOW) == {0: [b"no json"]}


@pytest.mark.parametrize(
    "raw",
    [
        event(None),
        event(True),
        event("yesterday"),
        event("2021-08-07"),
        event("2021-08-07T10:00:00"),
        event([1]),
        event({"a": 1}),
        b'{"ts": 1e400}',
        b'{"ts": 1e18}',
        b'{"ts": "9999-01-01T00:00:00Z"}',
        b"{}",
        b"[]",
        b'"text"',
        b"",
        b"{",
        b"\xff\xfe",
    ],
)
def test_a_message_without_a_time_is_dropped_and_harms_no_other(raw: bytes) -> None:
    good = event("2021-08-07T09:59:51Z")
    log: list[tuple[str, str]] = []
    rows = rows_of([good] * 100 + [raw] + [good] * 100, log=log)
    assert packed(rows) == {T: [good] * 200}
    assert Pack(rows[0].body).arrivals.tolist() == [*range(100), *range(101, 201)]
    counts = [orjson.loads(row.body) for row in rows if row.kind == RowKind.COUNT]
    assert [one["dropped"] for one in counts] == [{"timestamp": 1}]
    assert [sample[:2] for sample in counts[0]["samples"]] == [
        ["timestamp", raw.decode(errors="replace")]
    ]
    assert [level for level, _ in log] == ["WARN"]
    assert "timestamp_mapping gave no time" in log[0][1]


def test_warnings_are_few_and_summed_up() -> None:
    log: list[tuple[str, str]] = []
    rows = rows_of([event(None)] * 1000 + [b"{"] * 1000, log=log)
    assert len(log) == 11
    assert log[-1][1].startswith("1990 more messages were dropped")
    counts = orjson.loads(rows[-1].body)
    assert counts["dropped"] == {"timestamp": 2000}
    assert len(counts["samples"]) == MAX_DROPPED_SAMPLES


def test_a_dropped_message_is_handed_on_only_when_asked_for() -> None:
    assert [row.kind for row in rows_of([event(None)])] == [RowKind.COUNT]
    row, _ = rows_of([event(None)], keep_dropped=True)
    assert (row.kind, Pack(row.body).payloads()) == (RowKind.DROPPED, [event(None)])


def test_the_first_time_that_there_is_differs_from_no_time() -> None:
    first = event("1677-09-21T00:12:43.145224192Z")
    rows = rows_of([first, event(None)])
    assert [raws for raws in packed(rows).values()] == [[first]]
    assert orjson.loads(rows[-1].body)["dropped"] == {"timestamp": 1}


def test_true_is_no_time_though_python_says_that_it_is_one() -> None:
    rows = rows_of([event(1), event(True), event(1.0)])
    assert sum(len(raws) for raws in packed(rows).values()) == 2
    assert orjson.loads(rows[-1].body)["dropped"] == {"timestamp": 1}


def test_nine_decimals_of_a_number_count() -> None:
    just_after = b'{"ts": 1628330390.000000001}'
    assert packed(rows_of([just_after])) == {T: [just_after]}
    end = b'{"ts": 1628330390.000000000}'
    assert packed(rows_of([end])) == {T - 10 * SECOND: [end]}


def test_texts_that_name_one_instant_in_two_zones_share_a_pane() -> None:
    raws = [event("2021-08-07T09:59:51Z"), event("2021-08-07T11:59:51+02:00")]
    assert packed(rows_of(raws)) == {T: raws}


@pytest.mark.parametrize("fast", [True, False])
def test_a_key_chooses_shard_and_group(fast: bool) -> None:
    raws = [event("2021-08-07T09:59:51Z", k=key, n=n) for n, key in enumerate("abcabd")]
    rows = rows_of(raws, key=field_text("k", fast), shards=3)
    for row in rows:
        pack = Pack(row.body)
        assert [zlib.crc32(key) % 3 for key in pack.keys] == [row.shard] * len(pack.keys)
    groups = {
        key: p.group_payloads(i)
        for r in rows
        for p in [Pack(r.body)]
        for i, key in enumerate(p.keys)
    }
    assert groups == {
        b"a": [raws[0], raws[3]],
        b"b": [raws[1], raws[4]],
        b"c": [raws[2]],
        b"d": [raws[5]],
    }


def test_a_key_that_fails_is_the_empty_key() -> None:
    raws = [event("2021-08-07T09:59:51Z", k="a"), event("2021-08-07T09:59:51Z")]
    (row,) = rows_of(raws, key=field_text("k"))
    assert Pack(row.body).keys == [b"a", b""]


def test_keys_by_a_mapping_are_equal_as_json_values() -> None:
    raws = [
        b'{"k": 1}',
        b'{"k": 1.0}',
        b'{"k": "1"}',
        b'{"k": true}',
        b'{"k": null}',
        b'{"k": [1]}',
    ]
    (row,) = rows_of(raws, NOW, field_mapping("k"))
    pack = Pack(row.body)
    assert pack.keys == [b"1", b'"1"', b"true", b"null", b"[1]"]
    assert pack.group_payloads(0) == raws[:2]


def test_packs_are_of_four_megabytes_at_most_unless_one_message_is_bigger() -> None:
    big = event("2021-08-07T09:59:51Z", pad="x" * 10_000_000)
    small = [event("2021-08-07T09:59:51Z", k=str(n % 7), pad="y" * 5000) for n in range(4000)]
    packer = Packer(WINDOW, 2, BufferMappings(TS, field_text("k")))
    packer.add_raws([*small, big, *small], {}, 0, T, execution(T))
    assert packer.take_rows(), "rows are given before all is packed"
    packer = Packer(WINDOW, 2, BufferMappings(TS, field_text("k")))
    packer.add_raws([*small, big, *small], {}, 0, T, execution(T))
    rows = list(packer.flush_rows())
    headers = [read_header(row.body) for row in rows]
    assert all(header.payload_bytes <= MAX_PACK_BYTES or header.messages == 1 for header in headers)
    assert sum(header.messages for header in headers) == 8001
    assert max(header.payload_bytes for header in headers) == len(big)


def test_what_failed_upstream_passes_by_without_being_looked_at() -> None:
    packer = Packer(WINDOW, 2, BufferMappings(TS))
    failed = Message(b"not json", {"a": "b"}, "it failed")
    packer.add_messages([failed, Message(event("2021-08-07T09:59:51Z"))], 7, T, execution(T))
    kinds = {row.kind: row for row in packer.flush_rows()}
    assert kinds.keys() == {RowKind.FAILED, RowKind.PACK}
    assert (kinds[RowKind.FAILED].arrival, kinds[RowKind.PACK].arrival) == (7, 8)


def test_messages_keep_their_own_metadata() -> None:
    packer = Packer(WINDOW, 1, BufferMappings(NOW))
    messages = [Message(b"%d" % n, {"n": str(n % 2)}) for n in range(4)]
    packer.add_messages(messages, 0, T, execution(T))
    (row,) = packer.flush_rows()
    pack = Pack(row.body)
    assert pack.metas == [b'{"n":"0"}', b'{"n":"1"}']
    assert pack.meta_ids is not None
    assert pack.meta_ids.tolist() == [0, 1, 0, 1]


def test_a_packer_is_for_one_micro_batch() -> None:
    packer = Packer(WINDOW, 1, BufferMappings(TS))
    packer.add_raws([], {}, 0, T, execution(T))
    with pytest.raises(StreamerError, match="two micro-batches"):
        packer.add_raws([], {}, 0, T + 1, execution(T))


def test_a_flush_needs_the_newest_pane_in_every_shard() -> None:
    window = SystemWindow(10 * SECOND, end_of_input="flush")
    packer = Packer(window, 3, BufferMappings(TS))
    packer.add_raws([event("2021-08-07T09:59:51Z")], {}, 0, T, execution(T))
    newest = [row for row in packer.flush_rows() if row.kind == RowKind.NEWEST_PANE]
    assert newest == [ShuffleRow(shard, RowKind.NEWEST_PANE, T, 0, b"\0") for shard in range(3)]


@pytest.mark.parametrize(
    ("text", "is_field"),
    [
        ("root = this.created_at", True),
        (" root=this.created_at ", True),
        ("this.created_at", True),
        ('${! json("traffic_light") }', True),
        ("${!this.traffic_light}", True),
        ("root = this.a.b", False),
        ('root = this.a.catch("")', False),
        ('x${! json("a") }', False),
        ('${! json("a.b") }', False),
        ("root = now()", False),
        ("root.a = this.a", False),
    ],
)
def test_a_mapping_that_merely_names_a_field_is_known_by_its_text(
    text: str, is_field: bool
) -> None:
    mapping = FakeMapping(text, lambda doc, now: None)
    assert (field_getter_of(mapping) is not None) == is_field
    assert is_now_mapping(mapping) == (text == "root = now()")


def contents(rows: list[ShuffleRow]) -> dict[tuple[int, int, int], list[tuple[bytes, int, bytes]]]:
    """What rows hold, however it is cut into packs: payload, arrival and metadata by row."""
    found: dict[tuple[int, int, int], list[tuple[bytes, int, bytes]]] = {}
    for row in rows:
        if row.kind == RowKind.COUNT:
            found[row.shard, row.kind, 0] = [(row.body, 0, b"")]
            continue
        pack = Pack(row.body)
        metas = [pack.metas[0]] * pack.header.messages
        if pack.meta_ids is not None:
            metas = [pack.metas[i] for i in pack.meta_ids.tolist()]
        inside = zip(pack.payloads(), pack.arrivals.tolist(), metas, strict=True)
        found.setdefault((row.shard, row.kind, row.pane), []).extend(inside)
    return {place: sorted(inside, key=lambda entry: entry[1]) for place, inside in found.items()}


VALUES: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(["2021-08-07T09:59:51Z", "2021-08-07T10:00:00Z", "2021-08-07T10:00:01Z"]),
    st.sampled_from(["2021-08-07T10:00:00.000000001+00:00", "no time", "", None, True, [], {}]),
    st.integers(1628330380, 1628330420),
    st.sampled_from([1628330400.5, 1628330400.0, 1e300]),
)
KEYS = st.sampled_from(["a", "b", "", 1, 1.0, True, None, ["x"], 1.5])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(VALUES, KEYS) | st.sampled_from([b"", b"{", b"[]", b"\xff"]), max_size=30),
    st.sampled_from([None, '${! json("k") }', '${! json("k") }!']),
    st.sampled_from(["root = this.ts", "root = now()", "root = this.ts.string()"]),
)
def test_messages_taken_together_and_one_by_one_end_up_alike(
    given_events: list[Any], key: str | None, timestamp: str
) -> None:
    raws = [e if isinstance(e, bytes) else event(e[0], k=e[1]) for e in given_events]
    ways = []
    for how in range(3):
        mappings = BufferMappings(
            compile_mapping(timestamp), compile_interpolation(key) if key else None
        )
        packer = Packer(WINDOW, 3, mappings, keep_dropped=True)
        if how == 0:
            packer.add_raws(raws, {"from": "test"}, 0, T, execution(T))
        elif how == 1:
            messages = [Message(raw, {"from": "test"}) for raw in raws]
            packer.add_messages(messages, 0, T, execution(T))
        else:
            for arrival, raw in enumerate(raws):
                packer.add_messages([Message(raw, {"from": "test"})], arrival, T, execution(T))
        ways.append(contents(list(packer.flush_rows())))
    assert ways[0] == ways[2]
    assert ways[1] == ways[2]
