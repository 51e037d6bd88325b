"""Spark's own Kafka source gets in by every way that the config can describe."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.connectors.kafka.cluster.topic_selection import TopicSelection
from streamer.connectors.kafka.input.kafka_source import KafkaSource
from tests.connectors.kafka.secured import connection
from tests.servers.kafka.jars import needs_connector
from tests.servers.kafka.secured import Secured

pytestmark = [pytest.mark.spark, pytest.mark.slow]

UNVERIFIED = {"root_cas_file": "", "skip_cert_verify": True}


def count(session: Any, source: KafkaSource) -> int:
    for name, value in source.jvm_properties().items():
        session._jvm.java.lang.System.setProperty(name, value)
    options = source.spark_options(1000)
    del options["maxOffsetsPerTrigger"]  # which is for streams
    found: int = session.read.format("kafka").options(**options).load().count()
    return found


def topic_of(secured: Secured, name: str) -> str:
    if name not in secured.kafka.topics():
        secured.kafka.create(name, partitions=2)
        secured.kafka.produce(name, *"abcde")
    return name


@pytest.mark.parametrize(
    ("listener", "mechanism", "tls"),
    [
        ("TLS", "", {}),
        ("TLS", "", UNVERIFIED),
        ("MUTUAL", "", {}),
        ("MUTUAL", "", UNVERIFIED),
        ("SECURE", "PLAIN", {}),
        ("SECURE", "SCRAM-SHA-512", {}),
        ("SASL", "SCRAM-SHA-256", {}),
        ("SECURE", "OAUTHBEARER", {}),
    ],
)
def test_spark_is_let_in(session, kafka_secured, listener, mechanism, tls):
    needs_connector()
    topic = topic_of(kafka_secured, "security")
    found = connection(kafka_secured, listener, mechanism, tls=tls)
    source = KafkaSource("kafka", found, TopicSelection(topics=(topic,)))
    try:
        assert count(session, source) == 5
    finally:
        source.close()


def test_spark_finds_topics_by_the_same_expressions(session, kafka_secured):
    needs_connector()
    for name in ("found-one", "found-two", "found-not", "other"):
        topic_of(kafka_secured, name)
    selection = TopicSelection(
        include=("^FOUND-", "(?i)^found-(one|t[w]o)$", "not"), exclude=("not$",)
    )
    names = kafka_secured.kafka.topics()
    assert selection.select_topics(names) == ["found-one", "found-two"]
    source = KafkaSource("kafka", connection(kafka_secured, "PLAINTEXT"), selection)
    assert count(session, source) == 10
