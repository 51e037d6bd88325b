"""Workers are let in by every way that the config can describe."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from streamer.connectors.kafka.cluster.broker_session import BrokerSession
from streamer.connectors.kafka.input.partition_fetcher import (
    FetchSettings,
    PartitionFetcher,
    PartitionRange,
)
from streamer.connectors.kafka.input.record_batches import NeededFields
from tests.components.inputs.reading import built
from tests.connectors.kafka.secured import connection
from tests.servers.kafka.secured import Secured

pytestmark = pytest.mark.slow

TOPIC = "read-by-workers"
UNVERIFIED = {"root_cas_file": "", "skip_cert_verify": True}


def _have_topic(secured: Secured) -> None:
    if TOPIC not in secured.kafka.topics():
        secured.kafka.create(TOPIC)
        secured.kafka.produce(TOPIC, *"abcde")


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
    _have_topic(kafka_secured)
    session = BrokerSession(connection(kafka_secured, listener, mechanism, tls=tls))
    try:
        fetcher = PartitionFetcher(session, FetchSettings())
        chunks = list(fetcher.read(PartitionRange(TOPIC, 0, 0, 5), NeededFields()))
    finally:
        session.close()
    assert [value for chunk in chunks for value in chunk.values] == [b"a", b"b", b"c", b"d", b"e"]


def test_a_token_that_is_replaced_lets_a_worker_in_that_connects_anew(
    kafka_secured: Secured, tmp_path: Path
) -> None:
    _have_topic(kafka_secured)
    config = f"""
cache_resources: [{{label: tokens, file: {{directory: '{tmp_path}'}}}}]
input:
  kafka:
    addresses: ['{kafka_secured.broker.address("SASL")}']
    topics: [{TOPIC}]
    consumer_group: g
    sasl: {{mechanism: OAUTHBEARER, token_cache: tokens, token_key: kafka}}
"""
    source = pickle.loads(pickle.dumps(built(config).source))
    for token, is_let_in in (("stale", False), (kafka_secured.token("alice"), True)):
        (tmp_path / "kafka").write_text(token)
        problem = source.connection_problem() or ""
        assert ("OAUTHBEARER" in problem) is not is_let_in, problem
        source.close()
    session = BrokerSession(source.connection)
    try:
        fetcher = PartitionFetcher(session, FetchSettings())
        chunks = list(fetcher.read(PartitionRange(TOPIC, 0, 0, 5), NeededFields()))
    finally:
        session.close()
    assert sum(len(chunk.values) for chunk in chunks) == 5
