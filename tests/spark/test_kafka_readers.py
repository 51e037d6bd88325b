"""A checkpoint of Spark's own source of Kafka goes on; data that is lost while a task reads."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from streamer.core.errors import StreamerError
from streamer.core.json.checksums import add_checksum
from tests.servers.kafka import Kafka, Record
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
spark: {{master: "local[2]", shards: 2}}
"""


def write_as_sparks_source(spark: Path) -> None:
    """Let the log of a checkpoint be as versions have it in which Spark's source read Kafka."""
    for path in (spark / "offsets").iterdir():
        if not path.name.isdigit():
            path.unlink()
            continue
        version, settings, ours = path.read_text().split("\n")
        fields = json.loads(ours)
        ends = {topic: of for at in fields["data"].values() for topic, of in _ends(at)}
        fields["data"] = {name: {} if _ends(at) else at for name, at in fields["data"].items()}
        lines = [version, settings, json.dumps(add_checksum({**fields, "step": 7}))]
        path.write_text("\n".join([*lines, json.dumps(ends)]))


def _ends(position: dict[str, Any]) -> Any:
    return position.get("kafka:at", {}).items()


def test_a_checkpoint_of_spark_s_own_source_goes_on(
    run_stream: Runner, kafka: Kafka, tmp_path: Path
) -> None:
    topic = kafka.create("both-readers", 2)
    numbers = iter(range(1_000))
    got: Counter[int] = Counter()

    def add(count: int, at: int = 50) -> None:
        some = (json.dumps({"n": next(numbers), "at": at}) for _ in range(count))
        kafka.produce(topic, *(Record(one.encode(), partition=n % 2) for n, one in enumerate(some)))

    def run(messages: int, until: Any = lambda s: True) -> list[str]:
        text = CONFIG.format(address=kafka.bootstrap, topic=topic, directory=tmp_path)
        ran = run_stream(text, until=lambda s: s.messages >= messages and until(s))
        for line in ran.lines:
            got.update(json.loads(line))
        return ran.said("continues with the workers' reader of Kafka")

    add(20)
    assert not run(20)
    write_as_sparks_source(tmp_path / "checkpoint" / "spark")
    add(10)
    assert run(10)
    assert not got  # the window is open all the while
    add(2, at=1_000)
    assert not run(2, until=lambda s: s.held <= 2)
    assert got == Counter(range(30))


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
