"""Where a topic has many partitions, tasks have several; each partition stays in its order."""

import json
from dataclasses import replace

import pytest

from streamer.config import parse_config
from streamer.plan import make_plan
from streamer.spark.kafka.kafka_source import (
    _coalesce_partitions,
    fetch_options,
    kafka_session_settings,
)
from tests.servers.kafka import Record
from tests.servers.kafka.jars import needs_connector

pytestmark = [pytest.mark.spark]

PARTITIONS = 40

WINDOW = """
buffer:
  tumbling_window:
    timestamp_mapping: root = this.at
    size: 10s
"""


def _tasks(session, text: str, **options: str) -> int:
    plan = make_plan(parse_config(text + '\nspark: {master: "local[2]"}\n'))
    rows = session.range(0, 1_000, 1, PARTITIONS)
    return _coalesce_partitions(rows, session, plan, options).rdd.getNumPartitions()


def test_a_core_has_a_few_tasks_where_windows_are_filled(session):
    few = 4 * session.sparkContext.defaultParallelism
    assert few < PARTITIONS
    assert _tasks(session, WINDOW) == few
    assert _tasks(session, WINDOW, minPartitions="30") == 30


def test_parts_of_a_micro_batch_that_transactions_know_stay_as_they_are(session):
    assert _tasks(session, "") == PARTITIONS


def test_a_cluster_has_a_task_for_each_partition(session):
    plan = replace(make_plan(parse_config(WINDOW)), master="spark://somewhere:7077")
    rows = session.range(0, 1_000, 1, PARTITIONS)
    assert _coalesce_partitions(rows, session, plan, {}).rdd.getNumPartitions() == PARTITIONS


@pytest.mark.parametrize("partitions", [1, 4, 16, 64, 1_000])
def test_what_waits_of_all_partitions_is_a_fraction_of_the_heap(partitions):
    heap = 1 << 30
    found = {name: int(value) for name, value in fetch_options(partitions, heap).items()}
    kept = min(partitions, 64)  # Spark keeps no more consumers
    assert found["kafka.max.partition.fetch.bytes"] * kept <= heap // 16
    # A small message takes about 300 bytes as an object.
    assert found["kafka.max.poll.records"] * 300 * kept <= heap // 10
    assert found["kafka.max.poll.records"] >= 500
    if partitions <= 4:
        assert found["kafka.max.poll.records"] > 80_000


def test_batches_of_small_messages_are_bounded_by_their_number_and_others_by_bytes():
    name = "spark.sql.execution.arrow.maxBytesPerBatch"
    # The one number with which Spark does not look at the size at every row.
    assert kafka_session_settings(100)[name] == "2147483647"
    assert kafka_session_settings(5_000)[name] == kafka_session_settings(0)[name] == str(16 << 20)


@pytest.mark.slow
def test_every_partition_of_many_stays_in_its_order(run_stream, kafka):
    needs_connector()
    topic, count = kafka.create("many", partitions=PARTITIONS), 4_000
    numbers = [Record(b'{"n":%d,"at":5}' % n, partition=n % PARTITIONS) for n in range(count)]
    kafka.produce(topic, *numbers, Record(b'{"n":-1,"at":1000}', partition=0))
    ran = run_stream(
        f"""
input:
  kafka:
    addresses: ["{kafka.bootstrap}"]
    topics: [{topic}]
    consumer_group: {topic}
    start_from_oldest: true
{WINDOW}
pipeline:
  processors:
    - mapping: |
        root = if batch_index() == 0 {{ {{"numbers": json("n").from_all()}} }} else {{ deleted() }}
spark: {{master: "local[2]", shards: 2}}
""",
        until=lambda s: s.messages >= count + 1 and s.held <= 1,
    )
    (window,) = (json.loads(line)["numbers"] for line in ran.lines)
    assert sorted(window) == list(range(count))
    for partition in range(PARTITIONS):
        own = [n for n in window if n % PARTITIONS == partition]
        assert own == sorted(own)
    assert window != sorted(window), "they are in the order of all, so that nothing is shown"
