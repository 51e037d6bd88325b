"""Workers are let in by every way that the config can describe."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.connectors.kafka.cluster.broker_session import BrokerSession
from streamer.connectors.kafka.input.partition_fetcher import (
    FetchSettings,
    PartitionFetcher,
    PartitionRange,
)
from streamer.connectors.kafka.input.record_batches import NeededFields
from tests.connectors.kafka.secured import connection
from tests.servers.kafka.secured import Secured

pytestmark = pytest.mark.slow

UNVERIFIED = {"root_cas_file": "", "skip_cert_verify": True}


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
def test_a_worker_is_let_in(
    kafka_secured: Secured, listener: str, mechanism: str, tls: dict[str, Any]
) -> None:
    topic = "read-by-workers"
    if topic not in kafka_secured.kafka.topics():
        kafka_secured.kafka.create(topic)
        kafka_secured.kafka.produce(topic, *"abcde")
    session = BrokerSession(connection(kafka_secured, listener, mechanism, tls=tls))
    try:
        fetcher = PartitionFetcher(session, FetchSettings())
        chunks = list(fetcher.read(PartitionRange(topic, 0, 0, 5), NeededFields()))
    finally:
        session.close()
    assert [value for chunk in chunks for value in chunk.values] == [b"a", b"b", b"c", b"d", b"e"]
