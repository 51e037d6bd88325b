"""The fields of a connection to Kafka: of `kafka`, and of the components with `seed_brokers`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from streamer.connectors.kafka.cluster.connection import Connection
from streamer.connectors.kafka.security.encryption import (
    address_of,
    encryption_problems,
    read_encryption,
)
from streamer.connectors.kafka.security.sasl import (
    AWS_MSK_IAM,
    GSSAPI,
    SASL,
    SASL_FIELD,
    SASL_LIST_FIELD,
    read_sasl,
    sasl_problems,
    uses_kerberos,
    uses_msk,
)
from streamer.connectors.tls import TLS_FIELD
from streamer.core.urls import address_problem, host_problem
from streamer.sdk.spec import Access, BuildContext, Field, Package, ParsedFields, duration_field

ADDRESSES: Final = "addresses"
SEED_BROKERS: Final = "seed_brokers"
CLIENT_ID: Final = "client_id"
TARGET_VERSION: Final = "target_version"
RACK_ID: Final = "rack_id"
METADATA_MAX_AGE: Final = "metadata_max_age"
REQUEST_TIMEOUT: Final = "request_timeout_overhead"
IDLE_TIMEOUT: Final = "conn_idle_timeout"
TCP: Final = "tcp"
CONNECT_TIMEOUT: Final = "connect_timeout"
KEEP_ALIVE: Final = "keep_alive"
USER_TIMEOUT: Final = "tcp_user_timeout"

READER_PACKAGES: Final = (Package("kafka"),)
PACKAGES: Final = (*READER_PACKAGES, Package("confluent_kafka"))
"""What inputs need, and what all others do: outputs, and those with a section `redpanda`."""

_KERBEROS_PACKAGE: Final = Package(
    "gssapi", SASL, is_needed_by=uses_kerberos, setting=f"sasl.mechanism: {GSSAPI}"
)
_MSK_PACKAGE: Final = Package(
    "boto3", SASL, is_needed_by=uses_msk, setting=f"sasl.mechanism: {AWS_MSK_IAM}"
)
ADDRESSED_READER_PACKAGES: Final = (*READER_PACKAGES, _KERBEROS_PACKAGE)
ADDRESSED_PACKAGES: Final = (*PACKAGES, _KERBEROS_PACKAGE)
"""The same of those that have `addresses`, and a field `sasl`."""

SEED_READER_PACKAGES: Final = (*ADDRESSED_READER_PACKAGES, _MSK_PACKAGE)
SEED_PACKAGES: Final = (*ADDRESSED_PACKAGES, _MSK_PACKAGE)
"""The same of those that have `seed_brokers`."""


def brokers_of(addresses: Iterable[str]) -> tuple[str, ...]:
    """Return the brokers that a list names; an item may hold several, separated by commas."""
    items = (item.strip() for address in addresses for item in address.split(","))
    return tuple(dict.fromkeys(item for item in items if item))


def _brokers_problem(addresses: Any) -> str | None:
    brokers = brokers_of(addresses)
    if not brokers:
        return "has no broker; expected an address such as localhost:9092"
    for broker in brokers:
        try:
            host, port = address_of(broker)
        except ValueError:
            host, port = "", 0
        bad = host_problem(host) or ("[" in broker and address_problem(broker.rpartition("/")[2]))
        if not host or not 0 < port < 65536 or bad:
            return f"has {broker!r}; expected host and port, such as localhost:9092"
    return None


def _optional_brokers_problem(addresses: Any) -> str | None:
    return _brokers_problem(addresses) if brokers_of(addresses) else None


def _brokers_field(name: str, description: str = "", *, optional: bool = False) -> Field:
    return Field(
        name,
        "string",
        "Initial brokers as host:port; an item may have several, separated by commas. One "
        f"reachable broker is enough.{description}",
        optional=optional,
        access=Access.ADDRESS,
        shape="array",
        check=_optional_brokers_problem if optional else _brokers_problem,
        examples=(["localhost:9092"], ["foo:9092,bar:9092"]),
    )


KAFKA_CONNECTION: Final = (
    _brokers_field(ADDRESSES),
    TLS_FIELD,
    SASL_FIELD,
    Field(
        TARGET_VERSION,
        "string",
        "Has no effect: the clients ask the brokers which versions they speak.",
        optional=True,
        advanced=True,
        examples=("2.1.0", "3.1.0"),
    ),
    Field(
        CLIENT_ID,
        "string",
        "The name of the client, as brokers log it and quotas know it.",
        default="benthos",
        advanced=True,
    ),
)
"""The connection of `kafka`; `rack_id` is each component's own."""


def _positive_problem(age: int) -> str | None:
    return None if age > 0 else "must be longer than 0s"


def _duration_field(
    name: str, description: str, default: str, positive: bool = False, advanced: bool = True
) -> Field:
    return duration_field(
        name,
        description,
        default=default,
        advanced=advanced,
        check=_positive_problem if positive else None,
    )


def seed_connection(metadata_max_age: str, *, shared: bool = False) -> tuple[Field, ...]:
    """Return the connection of the components with `seed_brokers`.

    Args:
        metadata_max_age: the default of that field, which differs between components.
        shared: whether the section `redpanda` stands in for brokers that are left out.
    """
    brokers = _brokers_field(SEED_BROKERS)
    if shared:
        more = " Without it, the connection is that of the section `redpanda`."
        brokers = _brokers_field(SEED_BROKERS, more, optional=True)
    return (
        brokers,
        Field(
            CLIENT_ID,
            "string",
            "The name of the client, as brokers log it and quotas know it.",
            default="redpanda-connect",
            advanced=True,
        ),
        TLS_FIELD,
        SASL_LIST_FIELD,
        _duration_field(
            METADATA_MAX_AGE,
            "Maximum age of the metadata of topics and partitions.",
            metadata_max_age,
            positive=True,
        ),
        _duration_field(
            REQUEST_TIMEOUT, "Maximum time of a broker to answer a request.", "10s", positive=True
        ),
        _duration_field(
            IDLE_TIMEOUT,
            "Approximate time for which an unused connection stays open.",
            "20s",
            positive=True,
        ),
    )


def _user_timeout_problem(ns: int) -> str | None:
    if ns:
        return (
            "is set; neither of the Kafka clients has such a setting, use "
            "request_timeout_overhead for a broker that does not answer"
        )
    return None


_NO_EFFECT: Final = "Has no effect: the clients leave it to the system's net.ipv4.tcp_keepalive_*."

TCP_FIELD: Final = Field(
    TCP,
    "object",
    "The sockets.",
    advanced=True,
    children=(
        _duration_field(
            CONNECT_TIMEOUT, "Maximum time to connect; 0s for the client's default.", "0s"
        ),
        Field(
            KEEP_ALIVE,
            "object",
            _NO_EFFECT,
            children=(
                _duration_field("idle", _NO_EFFECT, "15s"),
                _duration_field("interval", _NO_EFFECT, "15s"),
                Field("count", "int", _NO_EFFECT, default=9, advanced=True),
            ),
        ),
        duration_field(
            USER_TIMEOUT,
            "Must be left at 0s: the clients have no such setting.",
            default="0s",
            check=_user_timeout_problem,
        ),
    ),
)
"""The field of components that have one."""


def connection_problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    """Return what is wrong with these fields together, for a spec's `check`."""
    yield from encryption_problems(parsed)
    yield from sasl_problems(parsed)


def read_connection(parsed: ParsedFields, context: BuildContext | None = None) -> Connection:
    """Return the connection that these fields describe; nothing is connected, no file is read.

    Args:
        parsed: the fields.
        context: has the cache of a token; without it, the connection is only described.
    """
    tcp = parsed.get(TCP)
    return Connection(
        brokers=brokers_of(parsed.get(ADDRESSES) or parsed.get(SEED_BROKERS) or ()),
        client_id=parsed[CLIENT_ID],
        encryption=read_encryption(parsed),
        sasl=read_sasl(parsed, context),
        metadata_max_age=parsed.get(METADATA_MAX_AGE),
        request_timeout=parsed.get(REQUEST_TIMEOUT),
        idle_timeout=parsed.get(IDLE_TIMEOUT),
        connect_timeout=(tcp[CONNECT_TIMEOUT] or None) if tcp else None,
    )
