"""Where a topic has many partitions, tasks have several; each partition stays in its order."""

import json

import pytest

from tests.servers.kafka import Record

pytestmark = [pytest.mark.spark]

PARTITIONS = 40

WINDOW = """
buffer:
  tumbling_window:
    timestamp_mapping: root = this.at
    size: 10s
"""


@pytest.mark.slow
def test_every_partition_of_many_stays_in_its_order(run_stream, kafka):
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
