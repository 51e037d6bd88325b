"""The four jars of the connector are enough: what else they need is among Spark's own."""

from __future__ import annotations

from typing import Any

import pytest

from tests.servers.kafka import Kafka
from tests.servers.kafka.jars import needs_connector

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_spark_reads_every_compression_and_what_is_committed(session: Any, kafka: Kafka) -> None:
    needs_connector()
    topic = kafka.create("connector-compressed")
    codecs = ["none", "gzip", "snappy", "lz4", "zstd"]
    for codec in codecs:
        kafka.produce(topic, *[codec * 100] * 5, compression_type=codec)
    kafka.produce(topic, "in a transaction", transaction="connector")
    options = {"kafka.bootstrap.servers": kafka.bootstrap, "subscribe": topic}
    found = session.read.format("kafka").options(**options).load().orderBy("offset").collect()
    values = [row.value.decode() for row in found]
    assert values == [codec * 100 for codec in codecs for _ in range(5)] + ["in a transaction"]
