"""Clients sign in to Kafka by a ticket of Kerberos: a real KDC, a real broker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import pytest

from streamer.config import lint_config
from streamer.connectors.kafka.cluster.broker_session import BrokerSession
from streamer.connectors.kafka.cluster.connection import Connection
from streamer.connectors.kafka.input.partition_fetcher import (
    FetchSettings,
    PartitionFetcher,
    PartitionRange,
)
from streamer.connectors.kafka.input.record_batches import NeededFields
from streamer.connectors.kafka.security.kerberos import check_ticket
from streamer.core.errors import StreamerError
from tests.components.inputs.reading import built
from tests.servers import skip_without
from tests.servers.kafka.broker import Broker
from tests.servers.kerberos import LISTENER, Kdc, kdc, kerberos_broker

TOPIC = "tickets"


def _config(address: str, more: str = "") -> str:
    return f"""
input:
  redpanda:
    seed_brokers: ['{address}']
    topics: [{TOPIC}]
    consumer_group: g
    sasl: [{{mechanism: GSSAPI{more}}}]
"""


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Kdc, Broker]]:
    if find_spec("gssapi") is None:
        skip_without("gssapi", "pip install 'spark-streamer[kerberos]', which is compiled")
    with kdc(tmp_path_factory.mktemp("kdc")) as server:
        directory = tmp_path_factory.mktemp("kerberos-broker")
        with kerberos_broker(directory, server) as broker:
            broker.client().create(TOPIC)
            broker.client().produce(TOPIC, *"abcde")
            yield server, broker


@pytest.fixture
def alice(
    realm: tuple[Kdc, Broker], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """The address of the broker, for a process that has the keys of alice."""
    server, broker = realm
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path / 'tickets'}")
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(server.add_principal("alice")))
    yield broker.address(LISTENER)


def _read(connection: Connection) -> list[bytes]:
    with closing(BrokerSession(connection)) as session:
        fetcher = PartitionFetcher(session, FetchSettings())
        chunks = list(fetcher.read(PartitionRange(TOPIC, 0, 0, 5), NeededFields()))
    return [value for chunk in chunks for value in chunk.values]


@pytest.mark.slow
def test_a_worker_with_a_keytab_reads(alice: str) -> None:
    source = built(_config(alice)).source
    check_ticket()
    assert source.connection_problem() is None
    assert _read(source.connection) == [b"a", b"b", b"c", b"d", b"e"]
    source.close()


@pytest.mark.slow
def test_a_login_that_fails_says_why(
    alice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = built(_config(alice, ", kerberos_service_name: nobody")).source
    assert "nobody/localhost" in (source.connection_problem() or "")
    source.close()
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path / 'none'}")
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(tmp_path / "missing.keytab"))
    with pytest.raises(StreamerError, match="no ticket of Kerberos: .*KRB5_CLIENT_KTNAME"):
        check_ticket()


def test_an_output_names_what_its_library_lacks(tmp_path: Path) -> None:
    """The wheels of librdkafka are built without Kerberos."""
    path = tmp_path / "config.yaml"
    sasl = "sasl: [{mechanism: GSSAPI}]"
    path.write_text(f"output: {{redpanda: {{seed_brokers: ['b:9092'], topic: t, {sasl}}}}}")
    text = "\n".join(str(finding) for finding in lint_config(path, env={}))
    assert "build confluent-kafka from its source" in text
    assert ("gssapi" in text) is (find_spec("gssapi") is None)
