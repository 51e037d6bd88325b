"""TLS of Kafka's clients, as the field `tls` says it.

kafka-python takes Python's own context, as all other components do. librdkafka takes files and
texts as they are. Java's client takes PEM since Kafka 2.7, but keys in PKCS #8 only, and has no way
to leave a certificate unchecked: with `skip_cert_verify` it is told to trust exactly the
certificates that the brokers show when the stream starts.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

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

_CONNECT_TIMEOUT_S: Final = 5.0


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

    def java_properties(self, brokers: Iterable[str]) -> dict[str, str]:
        """Return the properties of Java's client.

        Args:
            brokers: who is asked for a certificate, when none are verified.

        Raises:
            StreamerError: a file or a key cannot be read, or no broker shows a certificate.
        """
        properties: dict[str, str] = {}
        authorities = (
            self._authorities() if self.verifies_brokers else self._fetch_certificates(brokers)
        )
        if authorities:
            properties |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": authorities}
        if not self.verifies_brokers:
            properties["ssl.endpoint.identification.algorithm"] = ""
        for cert in self.parsed[CLIENT_CERTS]:
            chain, key = _read_client_cert(cert)
            properties |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.certificate.chain": chain,
                "ssl.keystore.key": _to_pkcs8(key, cert["password"]),
            }
        return properties

    def _authorities(self) -> str:
        if self.parsed[ROOT_CAS_FILE]:
            return _read_file(self.parsed, ROOT_CAS_FILE, TLS)
        text: str = self.parsed[ROOT_CAS]
        return text

    def _fetch_certificates(self, brokers: Iterable[str]) -> str:
        context = self.ssl_context()
        shown: dict[str, None] = {}
        why = ""
        for broker in brokers:
            try:
                shown[_fetch_certificate(broker, context)] = None
            except (OSError, ValueError) as error:
                why = f"{broker}: {error}"
        if not shown:
            raise StreamerError(
                f"tls.skip_cert_verify: no broker shows a certificate ({why}); Spark trusts what "
                "they show when the stream starts, check that the addresses are of listeners with "
                "TLS"
            )
        return "".join(shown)


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


def _fetch_certificate(broker: str, context: ssl.SSLContext) -> str:
    host, port = address_of(broker)
    with (
        socket.create_connection((host, port), _CONNECT_TIMEOUT_S) as plain,
        context.wrap_socket(plain, server_hostname=host) as encrypted,
    ):
        shown = encrypted.getpeercert(binary_form=True)
    if not shown:
        raise OSError("no certificate")
    # Imported here: every command knows the fields, and few connect.
    import ssl

    return ssl.DER_cert_to_PEM_cert(shown)


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


def _to_pkcs8(key: str, password: str) -> str:
    """Return a key as Java reads it, not encrypted."""
    from cryptography.hazmat.primitives import serialization

    try:
        read = serialization.load_pem_private_key(
            key.encode(), password.encode() if password else None
        )
    except (ValueError, TypeError) as error:
        # What is wrong with a key may quote it.
        wrong = "its password is not right" if "password" in str(error).lower() else "it is no key"
        raise StreamerError(
            f"{TLS}.{CLIENT_CERTS}: the key cannot be used: {wrong}; expected PEM"
        ) from None
    return read.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
