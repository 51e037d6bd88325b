"""Messages of Kafka as stage 1 reads them: in order, with the metadata that somebody reads."""

import datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.config import parse_config
from streamer.connectors.kafka.input.opened_input import MetadataSettings
from streamer.core.execution import Execution
from streamer.engine.planner.kafka_inputs import KafkaInputRef
from streamer.engine.planner.offset_log import PlannedBatch
from streamer.engine.planner.planner_channels import MicroBatchOffset
from streamer.engine.report.result_frame import Frame
from streamer.engine.stage.kafka_messages import (
    FIRST_PIECE_NUMBER,
    KafkaMessageReader,
    NeededColumns,
    split_partition_runs,
)
from streamer.engine.stage.stateless_stage import StatelessStage
from streamer.engine.stage.task_input import SourcePiece, TaskPlan
from streamer.plan import make_plan
from streamer.plan.metadata_read import find_read_metadata
from streamer.sdk.input.replayable import RawMessages

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
PLACE = KafkaInputRef(0, (), (), MetadataSettings())
EX = Execution(lambda: 0)

Message = tuple[str, int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]


def columns(
    messages: list[Message], wanted: NeededColumns, cut: int = 1000
) -> list[pa.RecordBatch]:
    """The batches that Spark gives for messages: topic, partition, offset, key, value, headers."""
    made: dict[str, Any] = {
        "topic": pa.array([m[0] for m in messages], pa.string()),
        "partition": pa.array([m[1] for m in messages], pa.int32()),
        "offset": pa.array([m[2] for m in messages], pa.int64()),
        "key": pa.array([m[3] for m in messages], pa.binary()),
        "value": pa.array([m[4] for m in messages], pa.binary()),
        "timestamp": pa.array(
            [datetime.datetime.fromtimestamp(m[2], datetime.UTC) for m in messages],
            pa.timestamp("us", "UTC"),
        ),
        "headers": pa.array(
            [[{"key": k, "value": v} for k, v in m[5]] or None for m in messages], HEADERS
        ),
    }
    table = pa.table({name: made[name] for name in wanted.columns})
    return table.to_batches(cut)


def planned(messages: list[Message], start: str = "a") -> PlannedBatch:
    ends: dict[str, dict[str, int]] = {}
    for topic, partition, offset, *_ in messages:
        ends.setdefault(topic, {})[str(partition)] = offset + 1
    return PlannedBatch(0, MicroBatchOffset({}, start_id=start), [ends])


def read(
    messages: list[Message],
    wanted: NeededColumns,
    place: KafkaInputRef = PLACE,
    cut: int = 1000,
    ends: list[Any] | None = None,
) -> list[tuple[int, int, str, list[tuple[bytes, dict[str, Any]]]]]:
    """Return each stretch's number, first arrival, partition and messages."""
    at = planned(messages)
    rows = KafkaMessageReader(place, at if ends is None else at._replace(ends=ends), wanted)
    found = []
    for stretch in split_partition_runs(columns(messages, wanted, cut), wanted.topic):
        piece = rows.piece(stretch)
        got: list[tuple[bytes, dict[str, Any]]] = []
        for chunk in rows.read(piece, EX):
            if isinstance(chunk, RawMessages):
                got += [(raw, dict(chunk.meta)) for raw in chunk.raws]
            else:
                got += [(m.raw, dict(m.meta)) for [m] in chunk]
        found.append((rows.number(stretch), rows.arrival(stretch), rows.partition_of(piece), got))
    return found


def plain(topic: str, partition: int, offset: int, value: bytes = b"x") -> Message:
    return (topic, partition, offset, b"k", value, [])


@pytest.mark.parametrize("cut", [1, 2, 3, 1000])
def test_a_task_with_several_partitions_is_cut_where_another_begins(cut):
    messages = [
        *(plain("a", 0, n, b"a0%d" % n) for n in range(5, 8)),
        *(plain("a", 1, n, b"a1%d" % n) for n in range(2)),
        *(plain("b", 1, n, b"b1%d" % n) for n in range(2)),
    ]
    found = read(messages, NeededColumns(frozenset()), cut=cut)
    assert [(place, [raw for raw, _ in got]) for _, _, place, got in found] == [
        ("a/0", [b"a05", b"a06", b"a07"]),
        ("a/1", [b"a10", b"a11"]),
        ("b/1", [b"b10", b"b11"]),
    ]


def test_numbers_do_not_depend_on_what_a_task_has():
    """A task that is run again may find its messages in other company."""
    all_ = [plain("a", 0, 5), plain("a", 1, 7), plain("b", 0, 1)]
    ends = list(planned(all_).ends)
    together = {place: number for number, _, place, _ in read(all_, NeededColumns(), ends=ends)}
    alone = {
        place: number
        for one in all_
        for number, _, place, _ in read([one], NeededColumns(), ends=ends)
    }
    assert together == alone == {
        "a/0": FIRST_PIECE_NUMBER, "a/1": FIRST_PIECE_NUMBER + 1, "b/0": FIRST_PIECE_NUMBER + 2
    }  # fmt: skip


def test_parts_of_one_partition_keep_its_order():
    early = read([plain("a", 0, 5), plain("a", 0, 6)], NeededColumns())
    late = read([plain("a", 0, 7)], NeededColumns())
    assert early[0][1] + 2 == late[0][1]


def test_an_input_in_brokers_knows_its_way_and_its_processors():
    plan = make_plan(
        parse_config(
            "input:\n  broker:\n    inputs:\n"
            "      - stdin: {}\n"
            "      - label: q\n"
            "        kafka: {addresses: ['localhost:9092'], topics: [a], consumer_group: g}\n"
            "        processors: [{mapping: root = 1}]\n",
            "test.yaml",
        )
    )
    place = KafkaInputRef(0, (1,), ("q",), MetadataSettings())
    rows = KafkaMessageReader(place, planned([plain("a", 0, 1)]), NeededColumns())
    [stretch] = split_partition_runs(columns([plain("a", 0, 1)], NeededColumns()))
    piece = rows.piece(stretch)
    assert TaskPlan.of(plan).input_of(SourcePiece(rows, 0, piece)).component.label == "q"
    assert rows.partition_of(piece) == "q:a/0"


BATCHED = """
input:
  broker:
    inputs:
      - stdin: {}
      - redpanda:
          seed_brokers: ["localhost:9092"]
          topics: [a]
          unordered_processing:
            enabled: %s
            batching:
              count: 3
              check: 'content() == "end"'
              processors: [{mapping: 'root = "%%v/%%s".format(batch_size(), content())'}]
        processors: [{archive: {format: lines}}]
pipeline:
  processors: [{mapping: 'root = "%%s|%%v".format(content(), batch_size())'}]
output: {stdout: {}}
"""


@pytest.mark.parametrize("cut", [1, 2, 1000])
def test_the_messages_of_a_partition_become_batches(cut):
    texts = [[b"a", b"b", b"end", b"c", b"d", b"e", b"f"], [b"g", b"end"]]
    found = [plain("a", p, at, raw) for p, raws in enumerate(texts) for at, raw in enumerate(raws)]
    place = KafkaInputRef(0, (1,), ("1",), MetadataSettings())
    given = {"place": place, "cut": cut}
    on, off = (
        b"".join(one.body for one in frames(BATCHED % on, found, NeededColumns(), **given))
        for on in ("true", "false")
    )
    assert on.split() == b"3/a 3/b 3/end|1 3/c 3/d 3/e|1 1/f|1 2/g 2/end|1".split()
    assert off.split() == [b"%s|1" % text for texts_of in texts for text in texts_of]


META = [
    ("a", 3, 10, None, None, [("h", b"1"), ("h", b"2"), ("kafka_key", b"mine"), ("n", None)]),
    ("a", 3, 12, b"\xffkey", b"v", []),
]


def test_metadata_are_those_of_redpanda_connect():
    at = planned(META)
    [(_, _, _, got)] = read(
        META, NeededColumns(), KafkaInputRef(0, (), (), MetadataSettings(named_first=True))
    )
    assert got[0] == (
        b"",
        {
            "kafka_key": "",
            "kafka_topic": "a",
            "kafka_partition": 3,
            "kafka_offset": 10,
            "kafka_lag": 2,
            "kafka_timestamp_ms": 10_000,
            "kafka_timestamp_unix": 10,
            "kafka_tombstone_message": True,
            "h": "2",
            "n": "",
        },
    )
    assert got[1][1]["kafka_key"] == "\udcffkey" and got[1][1]["kafka_lag"] == 0
    assert at.ends[0] == {"a": {"3": 13}}


def test_keys_are_bytes_and_headers_lists_and_hide_names_where_connect_does_so():
    how = MetadataSettings(key_bytes=True, multi_header=True)
    [(_, _, _, got)] = read(META, NeededColumns(), KafkaInputRef(0, (), (), how))
    assert got[0][1]["kafka_key"] == ["mine"] and got[0][1]["h"] == ["1", "2"]
    assert got[1][1]["kafka_key"] == b"\xffkey"


KEYS = ("kafka_key", "kafka_offset", "kafka_lag", "kafka_timestamp_ms", "kafka_topic", "h", "g")

offsets = st.integers(0, 10**6)
bodies = st.none() | st.binary(max_size=4)
headers = st.lists(st.tuples(st.sampled_from(["h", "g", "kafka_key"]), bodies), max_size=3)
messages = st.lists(st.tuples(st.just("a"), st.integers(0, 2), offsets, bodies, bodies, headers))
mappings = st.lists(st.sampled_from(KEYS), max_size=3, unique=True).map(
    lambda keys: "root = [" + ", ".join(["content().string()", *(f"@{k}" for k in keys)]) + "]"
)


def frames(
    text: str,
    found: list[Message],
    wanted: NeededColumns,
    place: KafkaInputRef = PLACE,
    cut: int = 1000,
) -> list[Frame]:
    stage = StatelessStage(TaskPlan.of(make_plan(parse_config(text, "test.yaml"))), now=lambda: 0)
    rows = KafkaMessageReader(place, planned(found), wanted)
    return [
        frame
        for stretch in split_partition_runs(columns(found, wanted, cut), wanted.topic)
        for frame in stage.frames(SourcePiece(rows, rows.number(stretch), rows.piece(stretch)))
        if frame.kind == 0
    ]


@settings(max_examples=60, deadline=None)
@given(mapping=mappings, found=messages, named_first=st.booleans(), multi=st.booleans())
def test_what_nobody_reads_is_missed_by_nobody(mapping, found, named_first, multi):
    text = f"pipeline: {{processors: [{{mapping: '{mapping}'}}]}}\noutput: {{stdout: {{}}}}"
    settings = MetadataSettings(named_first=named_first, multi_header=multi)
    how = KafkaInputRef(0, (), (), settings)
    keys = find_read_metadata(make_plan(parse_config(text, "test.yaml")))
    assert keys is not None
    pruned = frames(text, found, NeededColumns(keys, topic="a", is_split=False), how)
    assert pruned == frames(text, found, NeededColumns(), how)
