"""TLS of Kafka's clients, as the field `tls` says it.

kafka-python takes Python's own context, as all other components do. librdkafka takes files and
texts as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from streamer.connectors.tls import (
    CLIENT_CERTS,
    ENABLED,
    ROOT_CAS,
    ROOT_CAS_FILE,
    SKIP_CERT_VERIFY,
    TLS,
    tls_context,
    tls_problems,
)
from streamer.core.errors import StreamerError
from streamer.sdk.spec import ParsedFields

if TYPE_CHECKING:
    import ssl


@dataclass(frozen=True)
class Encryption:
    """Encryption of connections.

    Attributes:
        parsed: the field `tls`, enabled.
    """

    parsed: ParsedFields = field(repr=False)

    @property
    def verifies_brokers(self) -> bool:
        """Whether the brokers' certificates are looked at."""
        return not self.parsed[SKIP_CERT_VERIFY]

    def ssl_context(self) -> ssl.SSLContext:
        """Return what Python's `ssl` takes.

        Raises:
            StreamerError: a certificate or a key cannot be read.
        """
        context = tls_context(self.parsed)
        assert context is not None
        return context

    def librdkafka_settings(self) -> dict[str, Any]:
        """Return the settings of librdkafka.

        Raises:
            StreamerError: a file cannot be read.
        """
        settings: dict[str, Any] = {}
        if authorities := self._authorities():
            settings["ssl.ca.pem"] = authorities
        for cert in self.parsed[CLIENT_CERTS]:
            chain, key = _read_client_cert(cert)
            settings |= {"ssl.certificate.pem": chain, "ssl.key.pem": key}
            if cert["password"]:
                settings["ssl.key.password"] = cert["password"]
        if not self.verifies_brokers:
            settings["enable.ssl.certificate.verification"] = False
            settings["ssl.endpoint.identification.algorithm"] = "none"
        return settings

    def _authorities(self) -> str:
        if self.parsed[ROOT_CAS_FILE]:
            return _read_file(self.parsed, ROOT_CAS_FILE, TLS)
        text: str = self.parsed[ROOT_CAS]
        return text


def encryption_problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    """Return what is wrong with a field `tls`, for the `check` of a spec that has it."""
    yield from tls_problems(parsed)
    if len(parsed[TLS][CLIENT_CERTS]) > 1:
        yield f"{TLS}.{CLIENT_CERTS}", "has several certificates; Kafka's clients can show one"


def read_encryption(parsed: ParsedFields) -> Encryption | None:
    """Return what a field `tls` says; None when it is not enabled."""
    return Encryption(parsed[TLS]) if parsed[TLS][ENABLED] else None


def address_of(broker: str) -> tuple[str, int]:
    """Return host and port of a broker; 9092 when it has none.

    Raises:
        ValueError: the port is no number.
    """
    plain = broker.rsplit("://", 1)[-1]
    if plain.endswith("]") or ":" not in plain:
        return plain.strip("[]"), 9092
    host, _, port = plain.rpartition(":")
    return host.strip("[]"), int(port)


def _read_client_cert(cert: ParsedFields) -> tuple[str, str]:
    """Return the chain and the key of a client certificate."""
    if cert["cert_file"]:
        place = f"{TLS}.{CLIENT_CERTS}"
        return (
            _read_file(cert, "cert_file", place),
            _read_file(cert, "key_file", place),
        )
    return cert["cert"], cert["key"]


def _read_file(parsed: ParsedFields, field: str, place: str) -> str:
    name = parsed[field]
    try:
        return parsed.permissions.read(name).decode()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise StreamerError(f"{place}.{field}: {name!r} cannot be read: {reason}") from None
