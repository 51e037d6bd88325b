"""Secrets in AWS Secrets Manager (simulated by moto) and in Redis."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from streamer.connectors.secrets.lookup import parse_urns
from tests.servers.aws import KEY, REGION, SECRET, Aws, aws_server

pytestmark = pytest.mark.slow


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Aws]:
    with aws_server() as made:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", made.url)
        yield made


def test_a_secret_of_aws_is_a_text_or_a_field_of_it(aws: Aws) -> None:
    client = aws.client("secretsmanager")
    client.create_secret(Name="streamer-test/plain", SecretString="plain-text")
    client.create_secret(Name="streamer-test/db", SecretString='{"user": "ann", "n": 1}')
    client.create_secret(Name="streamer-test/binary", SecretBinary=b"binary-text")
    client.create_secret(Name="streamer-test/bytes", SecretBinary=b"\xff")
    for place in (REGION, f"secretsmanager.{REGION}.amazonaws.com"):
        for scheme in ("aws-secretsmanager", "aws"):
            lookup = parse_urns([f"{scheme}://{place}/streamer-test/"], {})
            assert lookup.find("secrets.plain", {}).value == "plain-text"
            assert lookup.find("secrets.db.user", {}).value == "ann"
    assert lookup.find("secrets.db.n", {}) == ("1", True, ())
    assert lookup.find("secrets.binary", {}).value == "binary-text"
    assert lookup.find("secrets.unknown", {}) == (None, False, ())
    assert lookup.find("plain", {}) == (None, False, ())
    (failure,) = lookup.find("secrets.bytes", {}).failures
    assert failure == "the secret streamer-test/bytes is not UTF-8"
    client.put_secret_value(SecretId="streamer-test/plain", SecretString="rotated-text")
    assert lookup.find("secrets.plain", {}).value == "rotated-text"


def test_aws_that_is_away_or_refuses_is_named(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    lookup = parse_urns([f"aws-secretsmanager://{REGION}/"], {})
    (failure,) = lookup.find("secrets.plain", {}).failures
    assert failure.startswith("AWS Secrets Manager cannot be asked for plain: Endpoint")
    assert SECRET not in failure


def test_a_secret_of_redis_is_a_key_of_its_name(redis_url: str) -> None:
    import redis

    client = redis.Redis.from_url(redis_url)
    client.set("STREAMER_SECRET_TEST", "redis-value")
    client.set("STREAMER_SECRET_BYTES", b"\xff")
    lookup = parse_urns([redis_url, "env:"], {})
    try:
        assert lookup.find("STREAMER_SECRET_TEST", {}) == ("redis-value", True, ())
        assert lookup.find("OTHER", {"OTHER": "of-env"}) == ("of-env", False, ())
        assert lookup.find("NONE", {}).value is None
        (failure,) = lookup.find("STREAMER_SECRET_BYTES", {}).failures
        assert failure == "the value of STREAMER_SECRET_BYTES in Redis is not UTF-8"
    finally:
        client.delete("STREAMER_SECRET_TEST", "STREAMER_SECRET_BYTES")
    away = parse_urns(["redis://u:pw-canary@127.0.0.1:1"], {})
    (failure,) = away.find("X", {}).failures
    assert failure == "Redis does not give X: ConnectionError"
