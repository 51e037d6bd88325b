"""Streams that write to a real Kafka broker, and from one topic to another."""

import json

import pytest

from tests.servers.kafka import Record
from tests.spark.test_kafka_stream import reading

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def franz(kafka, topic: str, more: str = "") -> str:
    return f"kafka_franz: {{seed_brokers: ['{kafka.bootstrap}'], topic: {topic}{more}}}"


EVERYTHING = ", metadata: {include_patterns: ['.*']}"


def test_records_keep_key_value_time_and_headers_and_what_failed_goes_elsewhere(run_stream, kafka):
    source, results = kafka.create("out-source", 2), kafka.create("out-results")
    letters = kafka.create("out-letters")
    kafka.produce(
        source,
        Record(b'{"n":1}', b"a", (("h", b"1"), ("h", b"2")), 1, timestamp=1_000),
        Record(b"poison", b"b", (), 1, timestamp=2_000),
        Record(None, b"c", (), 0, timestamp=3_000),
        Record(b"", None, (), 0, timestamp=4_000),
    )
    run_stream(
        reading(kafka, source, more="multi_header: true")
        + f"""
pipeline:
  processors:
    - mapping: |
        root = if content() == "" {{ content() }} else {{ {{"n": this.n + 1}} }}
output:
  fallback:
    - reject_errored:
        {franz(kafka, results, ", key: '${! @kafka_key }', metadata: {include_prefixes: [h]}")}
    - {franz(kafka, letters, ", key: '${! @kafka_key }'" + EVERYTHING)}
""",
        until=lambda s: s.messages >= 4,
    )
    found = sorted(kafka.consume(results), key=lambda record: record.timestamp)
    assert [(one.value, one.key, one.timestamp) for one in found] == [
        (b'{"n":2}', b"a", 1_000),
        (None, b"c", 3_000),
        (b"", b"", 4_000),
    ]
    assert found[0].headers == (("h", b"1"), ("h", b"2"))
    [letter] = kafka.consume(letters)
    assert (letter.value, letter.key, letter.timestamp) == (b"poison", b"b", 2_000)
    headers = dict(letter.headers)
    assert b"parse" in headers["fallback_error"]
    told = {name: headers[name] for name in ("kafka_topic", "kafka_partition", "kafka_offset")}
    assert told == {
        "kafka_topic": source.encode(),
        "kafka_partition": b"1",
        "kafka_offset": b"1",
    }


def test_windows_write_once_with_their_largest_time_and_what_is_late_goes_elsewhere(
    run_stream, kafka
):
    source, results = kafka.create("win-source"), kafka.create("win-results", 2)
    letters = kafka.create("win-letters")
    times = [100, 103, 109, 112, 131, 104, 161]
    kafka.produce(source, *(Record(b'{"t":%d}' % t, timestamp=t * 10) for t in times))
    run_stream(
        reading(kafka, source)
        + f"""
buffer:
  tumbling_window:
    timestamp_mapping: root = this.t
    size: 10s
    allowed_lateness: 5s
    late_output: letters
pipeline:
  processors:
    - mapping: |
        root = if batch_index() == 0 {{ json("t").from_all() }} else {{ deleted() }}
output:
  {franz(kafka, results, ", transactional: true, dedupe_headers: true")}
output_resources:
  - label: letters
    {franz(kafka, letters, EVERYTHING)}
spark: {{master: "local[2]", shards: 2}}
""",
        until=lambda s: s.messages >= len(times) and len(kafka.consume(results)) >= 3,
    )
    found = sorted(kafka.consume(results), key=lambda record: record.timestamp)
    assert [(json.loads(one.value), one.timestamp) for one in found] == [
        ([100, 103, 109], 109_000),
        ([112], 112_000),
        ([131], 131_000),
    ]
    names = {name for one in found for name, _ in one.headers}
    assert names == {"window_id", "batch_id", "batch_sequence"}
    [letter] = kafka.consume(letters)
    assert (letter.value, letter.timestamp) == (b'{"t":104}', 1_040)
    headers = dict(letter.headers)
    assert headers["window_drop_reason"] == b"late"
    told = {name: headers[name] for name in ("kafka_topic", "kafka_partition", "kafka_offset")}
    assert told == {
        "kafka_topic": source.encode(),
        "kafka_partition": b"0",
        "kafka_offset": b"5",
    }


def test_a_stream_that_is_sent_in_transactions_has_each_message_once(run_stream, kafka, tmp_path):
    source, topic = tmp_path / "in", kafka.create("out-files", 3)
    source.write_text("".join(f'{{"n":{n}}}\n' for n in range(5_000)))
    run_stream(
        f"""
input: {{file: {{paths: ["{source}"]}}}}
output:
  {franz(kafka, topic, ", transactional: true, batching: {count: 100}")}
""",
    )
    found = kafka.consume(topic)
    assert sorted(json.loads(one.value)["n"] for one in found) == list(range(5_000))
