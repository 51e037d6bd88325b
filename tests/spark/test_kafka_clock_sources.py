"""A clock that waits for the partition of a real topic that is the furthest behind."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from streamer.core.durations import SECOND
from tests.servers.kafka import Record

pytestmark = [pytest.mark.spark, pytest.mark.slow]


CONFIG = """
input:
  kafka:
    addresses: ["{bootstrap}"]
    topics: ["{topic}"]
    consumer_group: "{topic}"
    start_from_oldest: true
buffer:
  tumbling_window:
    timestamp_mapping: root = @kafka_timestamp_ms / 1000
    size: 10s
    clock_scope: partition
    source_idle_timeout: 0s
pipeline:
  processors:
    - mapping: |
        root = if batch_index() == 0 {{
          {{"start": @window_start_unix_ms / 1000, "n": batch_size()}}
        }} else {{ deleted() }}
output: {{file: {{path: "{target}"}}}}
"""


def test_a_partition_that_comes_hours_later_loses_nothing(
    run_stream: Any, kafka: Any, tmp_path: Path
) -> None:
    topic = kafka.create("hours", partitions=2)
    ahead = [Record(b"a", partition=0, timestamp=1000 * t) for t in range(7200, 7300, 2)]
    behind = [Record(b"b", partition=1, timestamp=1000 * t) for t in range(100, 200, 2)]
    kafka.produce(topic, *ahead)
    held: list[Any] = []

    def watch(stream: Any) -> None:
        snapshot = stream.snapshot()
        if snapshot.messages == len(ahead) and not held:
            held.append((snapshot.clock_source, snapshot.held))
            kafka.produce(topic, *behind)

    target = tmp_path / "out.jsonl"
    ran = run_stream(
        CONFIG.format(bootstrap=kafka.bootstrap, topic=topic, target=target),
        until=lambda s: s.messages == len(ahead) + len(behind),
        watch=watch,
    )
    # Nothing of what came first had closed: the other partition was known to be silent.
    assert held == [(f"{topic}/1", len(ahead))]
    assert ran.last.dropped == {}
    counts = Counter({one["start"]: one["n"] for one in map(json.loads, target.open())})
    assert counts == dict.fromkeys(range(100, 190, 10), 5)
    assert (ran.last.clock_source, ran.last.held) == (f"{topic}/1", len(ahead) + 5)
    assert ran.last.clock_ahead == 7100 * SECOND
