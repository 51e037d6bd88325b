"""Settings of a connection to Kafka, for its clients: kafka-python and librdkafka."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any, Final

from streamer import __version__
from streamer.connectors.kafka.security.encryption import Encryption
from streamer.connectors.kafka.security.kerberos import check_ticket
from streamer.connectors.kafka.security.oauth_tokens import token_end
from streamer.connectors.kafka.security.sasl import GSSAPI, OAUTHBEARER, Sasl
from streamer.core.durations import MILLISECOND

_REQUEST_TIMEOUT_NS: Final = 10_000_000_000

# What librdkafka takes, ms.
_SOCKET_TIMEOUT_MS: Final = (10, 300_000)
_SETUP_TIMEOUT_MS: Final = (1_000, 2**31 - 1)
_METADATA_AGE_MS: Final = (1, 86_400_000)

# What kafka-python takes.
_MAX_ANSWER_BYTES: Final = 100_000_000
_MIN_CONNECT_MS: Final = 1_000

_SILENT_LOGGER: Final = logging.Logger("librdkafka", logging.CRITICAL + 1)


@dataclass(frozen=True)
class Connection:
    """Settings of a connection to Kafka. They can be pickled; their text shows no secret.

    Attributes:
        brokers: those that are asked first, host:port.
        client_id: the name of the client.
        encryption: how connections are encrypted; None for not at all.
        sasl: who asks; None for nobody in particular.
        metadata_max_age: how old may be what is known of topics, ns; None for the client's default.
        request_timeout: how long an answer may take, ns.
        idle_timeout: how long an unused connection stays open, ns.
        connect_timeout: how long connecting may take, ns.
    """

    brokers: tuple[str, ...]
    client_id: str = ""
    encryption: Encryption | None = field(default=None, repr=False)
    sasl: Sasl | None = field(default=None, repr=False)
    metadata_max_age: int | None = None
    request_timeout: int | None = None
    idle_timeout: int | None = None
    connect_timeout: int | None = None

    @property
    def protocol(self) -> str:
        """The security protocol, by the name that both clients give it."""
        kind = "SSL" if self.encryption else "PLAINTEXT"
        return f"SASL_{kind}" if self.sasl else kind

    @property
    def user_text(self) -> str:
        """To whom something is refused, in words that follow what is: " to the user 'bob'"."""
        return f" to the user {self.sasl.user!r}" if self.sasl and self.sasl.user else ""

    @property
    def answer_timeout_s(self) -> float:
        """Seconds that an answer is waited for."""
        return (self.request_timeout or _REQUEST_TIMEOUT_NS) / 1e9

    def check_token(self) -> None:
        """Check that a token or a ticket can be had, where one comes from elsewhere.

        Raises:
            StreamerError: it cannot.
        """
        if self.sasl is not None and self.sasl.mechanism == GSSAPI:
            check_ticket()
        if self.sasl is not None and self.sasl.tokens is not None:
            self.sasl.current_token()

    def librdkafka_settings(self) -> dict[str, Any]:
        """Return the settings of librdkafka, whose own log is silent. They hold secrets.

        Raises:
            StreamerError: a file of the certificates cannot be read.
        """
        settings: dict[str, Any] = {
            "bootstrap.servers": ",".join(self.brokers),
            "client.id": self.client_id,
            "security.protocol": self.protocol,
            "socket.keepalive.enable": True,
            # It would write to the standard error, what ends a client in spite of the level; what
            # goes wrong is told by exceptions.
            "log_level": 0,
            "logger": _SILENT_LOGGER,
            "log.connection.close": False,
            # A client that asks for a topic makes it where brokers let it, with their defaults: one
            # that was deleted under a stream would come back with one partition and no messages.
            "allow.auto.create.topics": False,
        }
        if self.encryption:
            settings |= self.encryption.librdkafka_settings()
        if self.sasl:
            settings |= _librdkafka_sasl(self.sasl)
        if self.metadata_max_age is not None:
            age = _clamp_ms(self.metadata_max_age, _METADATA_AGE_MS)
            settings |= {"metadata.max.age.ms": age, "topic.metadata.refresh.interval.ms": age}
        if self.request_timeout is not None:
            settings["socket.timeout.ms"] = _clamp_ms(self.request_timeout, _SOCKET_TIMEOUT_MS)
        if self.idle_timeout is not None:
            settings["connections.max.idle.ms"] = _clamp_ms(self.idle_timeout, (1, 2**31 - 1))
        if self.connect_timeout is not None:
            settings["socket.connection.setup.timeout.ms"] = _clamp_ms(
                self.connect_timeout, _SETUP_TIMEOUT_MS
            )
        return settings

    def kafka_python_settings(self) -> dict[str, Any]:
        """Return the settings of kafka-python, but for the token of OAUTHBEARER. They hold secrets.

        Raises:
            StreamerError: a file of the certificates cannot be read.
        """
        settings: dict[str, Any] = {
            "bootstrap_servers": list(self.brokers),
            "client_id": self.client_id,
            # By these, brokers tell in their metrics which programs they serve.
            "client_software_name": "spark-streamer",
            "client_software_version": __version__,
            "security_protocol": self.protocol,
            "request_timeout_ms": int(self.answer_timeout_s * 1000),
            "reconnect_backoff_max_ms": 1_000,
            "receive_message_max_bytes": _MAX_ANSWER_BYTES,
            # As many threads may ask at once.
            "max_in_flight_requests_per_connection": 100,
        }
        if self.encryption:
            settings["ssl_context"] = self.encryption.ssl_context()
        if self.sasl:
            settings["sasl_mechanism"] = self.sasl.wire_mechanism
            settings["sasl_plain_username"] = self.sasl.user
            settings["sasl_plain_password"] = self.sasl.password
            settings["sasl_kerberos_service_name"] = self.sasl.service
        if self.metadata_max_age is not None:
            settings["metadata_max_age_ms"] = _clamp_ms(self.metadata_max_age, _METADATA_AGE_MS)
        if self.idle_timeout is not None:
            settings["connections_max_idle_ms"] = _clamp_ms(self.idle_timeout, (1, 2**31 - 1))
        # Another broker is tried after a part of the time.
        connect_ms = max(int(self.answer_timeout_s * 1000) // 3, _MIN_CONNECT_MS)
        if self.connect_timeout is not None:
            connect_ms = _clamp_ms(self.connect_timeout, _SETUP_TIMEOUT_MS)
        settings["socket_connection_setup_timeout_ms"] = connect_ms
        settings["socket_connection_setup_timeout_max_ms"] = connect_ms
        return settings


def _clamp_ms(ns: int, allowed: tuple[int, int]) -> int:
    low, high = allowed
    return max(low, min(high, ns // MILLISECOND))


def _librdkafka_sasl(sasl: Sasl) -> dict[str, Any]:
    settings: dict[str, Any] = {"sasl.mechanisms": sasl.wire_mechanism}
    if sasl.wire_mechanism == GSSAPI:
        return {**settings, "sasl.kerberos.service.name": sasl.service}
    if sasl.wire_mechanism != OAUTHBEARER:
        return {**settings, "sasl.username": sasl.user, "sasl.password": sasl.password}

    def current_token(_: Any) -> tuple[str, float, str, dict[str, str]]:
        text = sasl.current_token()
        return text, token_end(text), "", dict(sasl.extensions)

    return {**settings, "oauth_cb": current_token}
