"""Tokens of Amazon MSK: signed as a stand-in expects them, by the client that reads and the other.

The stand-in checks the signature by itself. No cluster of Amazon's was asked.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from streamer.connectors.kafka.cluster.cluster_client import ClusterClient
from streamer.connectors.kafka.cluster.connection import Connection
from streamer.connectors.kafka.cluster.connection_fields import read_connection
from streamer.connectors.kafka.cluster.errors import KafkaError
from streamer.connectors.kafka.output.producer import WorkerProducer
from streamer.connectors.kafka.security.oauth_tokens import token_end
from streamer.core.errors import StreamerError
from tests.connectors.kafka.parsing import connection_fields
from tests.servers.kafka.msk import KEY_ID, REGION, SECRET, Msk, msk, token_problem

KEYS = {"id": KEY_ID, "secret": SECRET}


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture(scope="module")
def server() -> Iterator[Msk]:
    with msk() as running:
        yield running


def connected(address: str, **aws: Any) -> Connection:
    sasl = {"mechanism": "AWS_MSK_IAM", "aws": {"region": REGION, "credentials": KEYS, **aws}}
    return read_connection(
        connection_fields(yaml.safe_dump({"seed_brokers": [address], "sasl": [sasl]}))
    )


def test_a_token_is_signed_says_when_it_ends_and_shows_no_secret() -> None:
    connection = pickle.loads(pickle.dumps(connected("a:1")))
    token = connection.sasl.current_token()
    assert token_problem(token) == ""
    assert 800 < token_end(token) - time.time() <= 900
    assert SECRET not in repr(connection) + repr(connection.sasl) + repr(connection.sasl.tokens)
    settings = connection.librdkafka_settings()
    assert settings["sasl.mechanisms"] == "OAUTHBEARER"
    assert settings["oauth_cb"]("")[1] == pytest.approx(token_end(token), abs=60)


def test_questions_and_reading_are_let_in(server: Msk) -> None:
    client = ClusterClient(connected(server.address))
    try:
        assert client.cluster_id(30) == "msk-1"
    finally:
        client.close()
    other = ClusterClient(connected(server.address, credentials={**KEYS, "secret": "wrong"}))
    try:
        with pytest.raises(KafkaError, match="another signature"):
            other.cluster_id(30)
    finally:
        other.close()


def test_producers_are_let_in(server: Msk) -> None:
    before = len(server.tokens)
    producer = WorkerProducer(connected(server.address).librdkafka_settings)
    producer.connect(30)
    assert len(server.tokens) > before


def test_what_is_missing_is_said_before_anything_is_sent() -> None:
    with pytest.raises(StreamerError, match="cannot be signed: the region is not known; set sasl"):
        connected("a:1", region="").check_token()
    with pytest.raises(StreamerError, match="there are no credentials; set sasl.aws.credentials"):
        connected("a:1", credentials={}).check_token()
