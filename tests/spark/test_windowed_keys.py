"""Windowed keys of ksqlDB and Kafka Streams, from one topic of a real broker to another."""

import json

import pytest

from tests.servers.kafka import Record

pytestmark = [pytest.mark.spark, pytest.mark.slow]

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
# As most times, its bytes are no UTF-8.
FIRST_DAY_MS = 20_454 * DAY_MS
LAST_HOUR = 300


def time_key(name: bytes, start_ms: int) -> bytes:
    return name + start_ms.to_bytes(8, "big")


def session_key(name: bytes, start_ms: int, end_ms: int) -> bytes:
    return name + end_ms.to_bytes(8, "big") + start_ms.to_bytes(8, "big")


HOURS = [(b"ada", 1), (b"ada", 2), (b"bob", 3), (b"ada", 9), (b"ada", 30), (b"bob", 31)]
COUNTS = {1: 5, 2: 7, 3: 1, 9: 2, 30: 4, 31: 8, LAST_HOUR: 1}

EVENT_TIME = """
      key_mapping: root = @kafka_key.parse_windowed_key("time").key.string()
      timestamp_mapping: |
        root = @kafka_key.parse_windowed_key("time", "1h").window_start_unix_ms / 1000
"""
TOTAL = (
    'root = if batch_index() == 0 { {"count": json("count").from_all().sum()} } else { deleted() }'
)
DAY_KEY = '@window_key.format_windowed_key("time", @window_start_unix_ms)'
SESSION_KEY = (
    '@window_key.format_windowed_key("session", @window_start_unix_ms, @window_end_unix_ms)'
)


def buffer(label: str, window: str, kafka, topic: str, key: str) -> str:
    return f"""
  - label: {label}
    {window}
{EVENT_TIME}
    pipeline: {{processors: [{{mapping: '{TOTAL}'}}]}}
    output:
      redpanda:
        seed_brokers: ['{kafka.bootstrap}']
        topic: {topic}
        key: |-
          ${{! {key} }}
"""


@pytest.mark.parametrize("reader", ["kafka_franz", "redpanda"])
def test_hours_of_one_topic_become_days_and_sessions_of_others(run_stream, kafka, reader):
    source, days = kafka.create(f"hours-{reader}"), kafka.create(f"days-{reader}")
    sessions = kafka.create(f"sessions-{reader}")
    # The last one closes all others.
    for name, hour in (*HOURS, (b"eve", LAST_HOUR)):
        key = time_key(name, FIRST_DAY_MS + hour * HOUR_MS)
        kafka.produce(source, Record(b'{"count":%d}' % COUNTS[hour], key))
    run_stream(
        f"""
input:
  {reader}:
    seed_brokers: ['{kafka.bootstrap}']
    topics: [{source}]
    start_from_oldest: true
buffers:
"""
        + buffer("days", "tumbling_window:\n      size: 1d", kafka, days, DAY_KEY)
        + buffer("sessions", "session_window:\n      gap: 1h", kafka, sessions, SESSION_KEY),
        until=lambda s: s.messages > len(HOURS) and len(kafka.consume(sessions)) >= 5,
    )
    assert read_counts(kafka, days) == {
        time_key(b"ada", FIRST_DAY_MS): 14,
        time_key(b"ada", FIRST_DAY_MS + DAY_MS): 4,
        time_key(b"bob", FIRST_DAY_MS): 1,
        time_key(b"bob", FIRST_DAY_MS + DAY_MS): 8,
    }
    expected = [(b"ada", 1, 2, 12), (b"ada", 9, 9, 2), (b"ada", 30, 30, 4)]
    expected += [(b"bob", 3, 3, 1), (b"bob", 31, 31, 8)]
    assert read_counts(kafka, sessions) == {
        session_key(name, FIRST_DAY_MS + first * HOUR_MS, FIRST_DAY_MS + last * HOUR_MS): count
        for name, first, last, count in expected
    }


def read_counts(kafka, topic: str) -> dict[bytes, int]:
    records = kafka.consume(topic)
    assert len({one.key for one in records}) == len(records)
    return {one.key: json.loads(one.value)["count"] for one in records}
