"""One checkpoint, read by the workers and by Spark's own source in turns."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from streamer.core.errors import StreamerError
from tests.servers.kafka import Kafka, Record
from tests.servers.kafka.jars import needs_connector
from tests.spark.conftest import Runner

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CONFIG = """
input:
  broker:
    inputs:
      - file: {{paths: ["{directory}/none*.jsonl"]}}
      - redpanda: {{seed_brokers: ["{address}"], topics: [{topic}]}}
buffer:
  tumbling_window:
    timestamp_mapping: root = this.at
    size: 100s
pipeline:
  processors:
    - mapping: root = if batch_index() == 0 {{ json("n").from_all() }} else {{ deleted() }}
spark: {{master: "local[2]", shards: 2, kafka: {{reader: {reader}}}}}
"""


def test_a_checkpoint_goes_on_with_either_reader(
    run_stream: Runner, kafka: Kafka, tmp_path: Any
) -> None:
    needs_connector()
    topic = kafka.create("both-readers", 2)
    numbers = iter(range(1_000))
    got: Counter[int] = Counter()

    def add(count: int, at: int = 50) -> None:
        some = (json.dumps({"n": next(numbers), "at": at}) for _ in range(count))
        kafka.produce(topic, *(Record(one.encode(), partition=n % 2) for n, one in enumerate(some)))

    def run(reader: str, messages: int, until: Any = lambda s: True) -> None:
        text = CONFIG.format(
            address=kafka.bootstrap, topic=topic, reader=reader, directory=tmp_path
        )
        ran = run_stream(text, until=lambda s: s.messages >= messages and until(s))
        for line in ran.lines:
            got.update(json.loads(line))

    add(10)
    for reader in ("jvm", "workers", "jvm", "workers"):
        add(10)
        run(reader, 10)
    assert not got  # the window is open all the while
    add(2, at=1_000)
    run("workers", 2, until=lambda s: s.held <= 2)
    assert got == Counter(range(50))


def test_data_that_is_lost_while_a_task_reads_ends_the_stream(
    run_stream: Runner, kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = kafka.create("lost-while-read")
    kafka.produce(topic, *map(str, range(100)))
    text = f"""
input:
  redpanda:
    seed_brokers: ["{kafka.bootstrap}"]
    topics: ["{topic}:0:10"]
output: {{drop: {{}}}}
"""
    # Retention cuts what was planned, before it is read.
    from streamer.spark.query.query_run import QueryRun

    deliver = QueryRun._deliver

    def cut(self: Any, batch: Any, number: int) -> None:
        kafka.delete_records(topic, {0: 40})
        deliver(self, batch, number)

    monkeypatch.setattr(QueryRun, "_deliver", cut)
    with pytest.raises(StreamerError) as caught:
        run_stream(text, until=lambda s: s.messages >= 90)
    assert f"{topic}:0 stands at 10 and begins at 40" in str(caught.value)
