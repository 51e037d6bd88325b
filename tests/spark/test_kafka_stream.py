"""Streams that read a real Kafka broker."""

import json
import os
import random
from collections import defaultdict
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from streamer.cli.main import invoke
from tests.bench.jobs import GROUPS
from tests.bench.traffic import chunks
from tests.servers.kafka import Record
from tests.spark.query.test_stream import soon, stamp

# A million are for a run by hand: STREAMER_EVENTS=1000000 pytest tests/spark/test_kafka_stream.py
EVENTS = int(os.environ.get("STREAMER_EVENTS", "200000"))

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def reading(kafka, *topics: str, group: str = "", more: str = "") -> str:
    return f"""
input:
  label: source
  kafka:
    addresses: ["{kafka.bootstrap}"]
    topics: {json.dumps(topics)}
    consumer_group: "{group or topics[0]}"
    start_from_oldest: true
    {more}
"""


def told(target: Path) -> list[dict]:
    return [json.loads(line) for line in target.read_bytes().splitlines()]


ALL = """
pipeline:
  processors:
    - mapping: |
        root.meta = @
        root.size = content().length()
        root.start = content().slice(0, 10).encode("hex")
        root.batch = [batch_index(), batch_size()]
"""


def test_messages_are_described_as_redpanda_connect_does(run_stream, kafka, tmp_path):
    topic = kafka.create("described", partitions=2, max_message_bytes=2_000_000)
    large = os.urandom(1 << 20)
    kafka.produce(
        topic,
        Record(b"a", b"key", (("h", b"1"), ("h", b"2"), ("kafka_key", b"x")), 0, timestamp=1_500),
        Record(b"", None, (("empty", b""), ("none", None), ("raw", b"\xff")), 0, timestamp=2_999),
        Record(None, b"\xff", (), 1, timestamp=3_000),
        Record(large, b"", (), 1, timestamp=4_000),
        message_max_bytes=2_000_000,
    )
    target = tmp_path / "out.jsonl"
    run_stream(
        reading(kafka, topic, more="multi_header: true\n    batching: {count: 2}")
        + ALL
        + f"output: {{file: {{path: '{target}'}}}}",
        until=lambda s: s.messages >= 4,
    )
    assert sorted(one["batch"] for one in told(target)) == [[0, 2], [0, 2], [1, 2], [1, 2]]
    common = {"kafka_topic": topic, "kafka_tombstone_message": False}
    first, second, third, fourth = sorted(
        told(target), key=lambda one: one["meta"]["kafka_timestamp_ms"]
    )
    assert first["meta"] == {
        **common,
        "kafka_key": "key",
        "kafka_partition": 0,
        "kafka_offset": 0,
        "kafka_lag": 1,
        "kafka_timestamp_unix": 1,
        "kafka_timestamp_ms": 1_500,
        "h": ["1", "2"],
    }
    assert second["meta"]["kafka_key"] == "" and second["size"] == 0
    assert second["meta"]["empty"] == [""] and second["meta"]["none"] == [""]
    assert second["meta"]["kafka_timestamp_unix"] == 2 and second["meta"]["kafka_lag"] == 0
    assert third["meta"]["kafka_tombstone_message"] is True and third["size"] == 0
    assert fourth["size"] == 1 << 20 and fourth["start"] == large[:10].hex()
    assert not fourth["meta"]["kafka_tombstone_message"]


def test_records_go_from_topic_to_topic_as_they_are(run_stream, kafka):
    source = kafka.create("as-they-are", 2, max_message_bytes=2_000_000)
    target = kafka.create("as-they-were", 2, max_message_bytes=2_000_000)
    large = random.Random(7).randbytes(1 << 20)
    many = (("h", b"\xff\x00"), ("h", b"2"), ("h", b"\xff\x00"), ("e", b""), ("\u00e9", b"\xc3"))
    # Neither partition is in the order of its times.
    given = [
        Record(b"\x00\xff\xfe", b"\x80key", many, 0, timestamp=9_000),
        Record(None, b"gone", (), 0, timestamp=5_000),
        Record(b"", b"k", (), 0, timestamp=7_000),
        Record(b"twice", b"k", (("h", b"x"),), 0, timestamp=7_000),
        Record(large, b"\x00", (), 1, timestamp=4_000),
        Record(b"keyless", None, (), 1, timestamp=1),
        Record(None, None, (("e", b""),), 1, timestamp=2),
    ]
    kafka.produce(source, *given, message_max_bytes=2_000_000)
    run_stream(
        reading(kafka, source, more="multi_header: true")
        + f"""
output:
  redpanda:
    seed_brokers: ["{kafka.bootstrap}"]
    topic: {target}
    key: ${{! @kafka_key }}
    partitioner: manual
    partition: ${{! @kafka_partition }}
    metadata: {{include_patterns: ["^[he\u00e9]$"]}}
    max_message_bytes: 2MB
""",
        until=lambda s: s.messages >= len(given),
    )
    # As in Connect what has no key has an empty one, and the names of metadata have no order.
    assert [replace(one, offset=None) for one in kafka.consume(target)] == [
        replace(one, key=one.key or b"", headers=tuple(sorted(one.headers, key=lambda h: h[0])))
        for one in given
    ]


def tumbled(lines: list[bytes], size: int) -> dict[tuple[str, str], tuple[int, int]]:
    """Cars and passengers per window, from its start up to but not at its end, and light."""
    plates, passengers = defaultdict(set), defaultdict(int)
    ends: dict[str, str] = {}
    for line in lines:
        event = json.loads(line)
        at = event["created_at"]
        if at not in ends:
            second = int(datetime.fromisoformat(at).timestamp())
            ends[at] = stamp((second // size + 1) * size)
        key = (ends[at], event["traffic_light"])
        plates[key].add(event["registration_plate"])
        passengers[key] += event["passengers"]
    return {key: (len(plates[key]), passengers[key]) for key in plates}


def test_very_many_messages_are_windowed_exactly_and_the_group_knows(
    run_stream, kafka, kafka_broker, tmp_path
):
    events, size, pace, origin = EVENTS, 10, EVENTS // 20, soon(-3600)
    topic = kafka.create("lights", partitions=4)
    body = b"".join(chunks(events, origin, pace=pace, seed=random.randrange(10**6)))
    lines = body.splitlines()
    last = stamp(origin + events / pace + 1_000).encode()
    closing = [b'{"traffic_light":"last","created_at":"%s"}' % last] * 4
    kafka.produce(
        topic,
        *(Record(line, partition=n % 4) for n, line in enumerate([*lines, *closing])),
        linger_ms=50,
        queue_buffering_max_messages=2_000_000,
        queue_buffering_max_kbytes=1_000_000,
    )
    ran = run_stream(
        reading(kafka, topic, group="counters")
        + f"""
buffer:
  tumbling_window:
    timestamp_mapping: root = this.created_at
    size: {size}s
{GROUPS}
spark: {{master: "local[2]", shards: 2}}
""",
        until=lambda s: s.messages >= events + 4 and s.held <= 4,
    )
    found = {}
    for line in ran.lines:
        result = json.loads(line)
        key = (result["created_at"], result["traffic_light"])
        assert key not in found
        found[key] = (result["total_cars"], result["passengers"])
    assert found == tumbled(lines, size)
    assert not ran.last.dropped
    lag = kafka_broker.lag("counters")
    assert {place: lag for place, (_, _, lag) in lag.items()} == {
        (topic, partition): 0 for partition in range(4)
    }
    gauges = {
        dict(labels)["partition"]: value
        for (name, labels), value in ran.counts.items()
        if name == "kafka_lag"
    }
    assert gauges == {str(partition): 0 for partition in range(4)}


def test_a_file_and_two_topics_flow_together(run_stream, kafka, tmp_path):
    one, two = kafka.create("one"), kafka.create("two")
    kafka.produce(one, *(f"one {n}" for n in range(1_000)))
    kafka.produce(two, *(f"two {n}" for n in range(1_000)))
    source = tmp_path / "in.txt"
    source.write_bytes(b"".join(b"file %d\n" % n for n in range(1_000)))
    target, config = tmp_path / "out.txt", tmp_path / "flow.yaml"
    child = "kafka: {{addresses: ['{0}'], topics: [{1}], consumer_group: three}}"
    config.write_text(
        f"""
input:
  broker:
    inputs:
      - label: first
        {child.format(kafka.bootstrap, one)}
        processors: [{{mapping: 'root = content().uppercase()'}}]
      - label: second
        file: {{paths: ['{source}']}}
      - label: third
        {child.format(kafka.bootstrap, two)}
        processors: [{{mapping: 'root = content().string() + " " + @kafka_topic'}}]
output: {{file: {{path: '{target}'}}}}
""".replace("consumer_group: three", "consumer_group: three, start_from_oldest: true")
    )
    run_stream(config.read_text(), until=lambda s: s.messages >= 3_000)
    lines = target.read_text().splitlines()
    assert [line for line in lines if line[0] == "O"] == [f"ONE {n}" for n in range(1_000)]
    assert [line for line in lines if line[0] == "f"] == [f"file {n}" for n in range(1_000)]
    assert [line for line in lines if line[0] == "t"] == [f"two {n} {two}" for n in range(1_000)]
    # What is moved back in one topic is read again, and nothing else.
    moved = ["--checkpoint", str(tmp_path / "checkpoint"), "--topic", two, "--shift-by", "-3"]
    assert invoke(["kafka-offsets", str(config), *moved, "--apply"]) == 0
    run_stream(config.read_text(), until=lambda s: s.messages >= 3)
    again = target.read_text().splitlines()[3_000:]
    assert again == [f"two {n} {two}" for n in range(997, 1_000)]


def test_a_stream_goes_on_where_it_was_and_takes_partitions_that_came(run_stream, kafka, tmp_path):
    topic, target = kafka.create("growing", partitions=1), tmp_path / "out.txt"
    text = reading(kafka, topic) + f"output: {{file: {{path: '{target}'}}}}"
    kafka.produce(topic, *(f"a{n}" for n in range(100)))
    run_stream(text, until=lambda s: s.messages >= 100)
    kafka.produce(topic, *(f"b{n}" for n in range(100)))
    grown: list[int] = []

    def grow(stream) -> None:
        if stream.snapshot().messages >= 100 and not grown:
            kafka.grow(topic, 3)
            grown.append(3)
            kafka.produce(topic, *(Record(b"c%d" % n, partition=n % 3) for n in range(99)))

    run_stream(text, until=lambda s: s.messages >= 199, watch=grow)
    lines = target.read_text().split()
    assert len(lines) == len(set(lines)) == 299
    assert lines[:200] == [f"a{n}" for n in range(100)] + [f"b{n}" for n in range(100)]
