"""Connections that fail: by the types of what kafka-python and `ssl` raise."""

from __future__ import annotations

import ssl

import pytest
from kafka import errors as kafka_errors

from streamer.connectors.kafka.cluster.connection import Connection
from streamer.connectors.kafka.cluster.connection_errors import (
    ConnectionFailure,
    connection_error,
)
from streamer.connectors.kafka.security.sasl import Sasl
from streamer.core.errors import StreamerError

CONNECTION = Connection(("a:1", "b:2"), sasl=Sasl("PLAIN", "bob", "secret"))


def handshake(error: Exception) -> ConnectionFailure:
    """Return a failure as kafka-python makes it of an error in a handshake."""
    outer = kafka_errors.KafkaConnectionError(f"Handshake failed: {error}")
    outer.__context__ = error
    return failure(outer)


def failure(error: Exception, after_answers: bool = False) -> ConnectionFailure:
    return ConnectionFailure(0.0, "a:1", error, after_answers)


def reasoned(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, "x")
    error.reason = reason
    return error


@pytest.mark.parametrize(
    ("failed", "text", "final"),
    [
        (
            failure(kafka_errors.KafkaConnectionError("111 ECONNREFUSED")),
            "no broker answers at a:1, b:2: Connection refused; expected",
            False,
        ),
        (
            failure(kafka_errors.KafkaTimeoutError("setup")),
            "answers in SASL_PLAINTEXT, which the config says: nothing has come back in time",
            False,
        ),
        (
            failure(kafka_errors.KafkaConnectionError("socket disconnected")),
            "which the config says: it ends the connection; check that",
            False,
        ),
        (
            failure(kafka_errors.InvalidReceiveError("Invalid frame length: 3")),
            "what comes back is not of Kafka's protocol",
            False,
        ),
        (
            failure(
                kafka_errors.SaslAuthenticationFailedError(
                    "SaslAuthenticationFailedError: Authentication failed: Invalid password"
                )
            ),
            "the broker a:1 refuses PLAIN of user 'bob': Authentication failed: Invalid password; ",
            True,
        ),
        (
            failure(kafka_errors.UnsupportedSaslMechanismError("no PLAIN here")),
            "the broker a:1 refuses PLAIN of user 'bob': no PLAIN here; ",
            True,
        ),
        (handshake(reasoned("WRONG_VERSION_NUMBER")), "wrong version number; the listener", True),
        (handshake(ssl.SSLEOFError(8, "EOF")), "ends the connection; the listener may be", True),
        (handshake(ConnectionResetError()), "ends the connection; the listener may be", True),
        (
            failure(
                kafka_errors.KafkaConnectionError(reasoned("TLSV13_ALERT_CERTIFICATE_REQUIRED"))
            ),
            "certificate of the client that it knows: tls.client_certs",
            True,
        ),
        (failure(StreamerError("the cache has no token")), "the cache has no token", False),
    ],
)
def test_each_kind_has_its_reason_and_its_remedy(
    failed: ConnectionFailure, text: str, final: bool
) -> None:
    error = connection_error(CONNECTION, [failed])
    assert text in str(error)
    assert error.is_final is final
    assert "secret" not in str(error)


def test_the_broker_that_fails_is_named_when_it_is_none_of_the_config() -> None:
    lost = kafka_errors.KafkaConnectionError("socket disconnected")
    failed = ConnectionFailure(0.0, "c:3", lost, True)
    text = str(connection_error(CONNECTION, [failed], answered=True))
    assert text.startswith("no broker answers at a:1, b:2: c:3: socket disconnected; expected")


def test_a_refusal_outweighs_what_came_after_it() -> None:
    refused = failure(kafka_errors.SaslAuthenticationFailedError("no"))
    later = failure(kafka_errors.KafkaConnectionError("111 ECONNREFUSED"))
    assert "refuses PLAIN" in str(connection_error(CONNECTION, [refused, later]))


def test_what_kafka_python_keeps_to_itself_is_still_there() -> None:
    # `BrokerSession` uses these, which its documentation does not name.
    from kafka.net.manager import KafkaConnectionManager
    from kafka.net.selector import NetworkSelector
    from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport

    for name in ("_build_transport", "get_connection", "bootstrap_async", "send", "call_soon"):
        assert callable(getattr(KafkaConnectionManager, name))
    for name in ("start", "run", "sleep", "wait_read", "wait_write", "close"):
        assert callable(getattr(NetworkSelector, name))
    assert callable(KafkaTCPTransport._sock_recv) and callable(KafkaSSLTransport._sock_recv)
