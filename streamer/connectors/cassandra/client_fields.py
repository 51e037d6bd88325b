"""The fields of everything that connects to Cassandra."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from streamer.connectors.tls import TLS_FIELD, tls_problems
from streamer.sdk.spec import Access, Field, Package, ParsedFields, duration_field

ADDRESSES: Final = "addresses"
LOGIN: Final = "password_authenticator"
ENABLED: Final = "enabled"
USERNAME: Final = "username"
PASSWORD: Final = "password"
ONLY_GIVEN_NODES: Final = "disable_initial_host_lookup"
MAX_RETRIES: Final = "max_retries"
BACKOFF: Final = "backoff"
INITIAL_INTERVAL: Final = "initial_interval"
MAX_INTERVAL: Final = "max_interval"
TIMEOUT: Final = "timeout"
NODE_CHOICE: Final = "host_selection_policy"
LOCAL_DC: Final = "local_dc"
LOCAL_RACK: Final = "local_rack"
RECONNECT_INTERVAL: Final = "reconnect_interval"
EXPONENTIAL_RECONNECTION: Final = "exponential_reconnection"
QUERY: Final = "query"

PACKAGES: Final = (Package("cassandra"),)

_DEFAULT_PORT: Final = 9042
_ADDRESS_TEXT: Final = "expected host and port such as localhost:9042"


def split_addresses(addresses: Any) -> list[tuple[str, int]]:
    """Return hosts and ports of a list whose items may have several, separated by commas.

    Raises:
        ValueError: one is no address.
    """
    split = []
    for text in (one.strip() for item in addresses for one in item.split(",")):
        if not text:
            continue
        host, colon, port = text.rpartition(":")
        if not colon or "]" in port or (":" in host and not host.startswith("[")):
            host, port = text, str(_DEFAULT_PORT)
        host = host.strip("[]")
        if not (
            host.isprintable()
            and host
            and port.isascii()
            and port.isdecimal()
            and 0 < int(port[:6]) < 1 << 16
        ):
            raise ValueError(f"{text!r} is no address; {_ADDRESS_TEXT}")
        split.append((host, int(port)))
    return split


def _addresses_problem(addresses: Any) -> str | None:
    try:
        return None if split_addresses(addresses) else f"is an empty list; {_ADDRESS_TEXT}"
    except ValueError as error:
        return f"has a value that cannot be: {error}"


def _positive_duration(name: str, description: str) -> Field:
    return duration_field(
        name, description, check=lambda ns: None if ns > 0 else "must be longer than 0"
    )


CLIENT_FIELDS: Final = (
    Field(
        ADDRESSES,
        "string",
        "Nodes of the cluster; an item may have several, separated by commas.",
        access=Access.ADDRESS,
        shape="array",
        check=_addresses_problem,
        examples=(["localhost:9042"], ["foo:9042,bar:9042"]),
    ),
    TLS_FIELD,
    Field(
        LOGIN,
        "object",
        "The login.",
        advanced=True,
        children=(
            Field(ENABLED, "bool", "True to log in.", default=False),
            Field(USERNAME, "string", "The user.", default=""),
            Field(PASSWORD, "string", "The password.", default="", secret=True),
        ),
    ),
    Field(
        ONLY_GIVEN_NODES,
        "bool",
        "True to use the nodes of `addresses` alone, and none that they name.",
        default=False,
        advanced=True,
    ),
    Field(
        MAX_RETRIES,
        "int",
        "How many times a request is sent again when too few replicas have answered.",
        default=3,
        advanced=True,
        check=lambda number: None if number >= 0 else f"is {number}; expected 0 or more",
    ),
    Field(
        BACKOFF,
        "object",
        "Pauses between them, each twice as long as the one before it.",
        advanced=True,
        children=(
            duration_field(INITIAL_INTERVAL, "The first pause.", default="1s"),
            duration_field(MAX_INTERVAL, "The longest pause.", default="5s"),
        ),
    ),
    duration_field(TIMEOUT, "Time for one request.", default="600ms"),
    Field(
        NODE_CHOICE,
        "object",
        "The nodes that requests go to first: replicas of the row, of all nodes in turn, or of "
        "those of a data centre and a rack.",
        advanced=True,
        children=(
            Field(LOCAL_DC, "string", "The data centre.", default=""),
            Field(LOCAL_RACK, "string", "The rack; with `local_dc`.", default=""),
        ),
    ),
    duration_field(
        RECONNECT_INTERVAL,
        "The pause before a node that was away is tried again.",
        default="60s",
        check=lambda ns: None if ns >= 0 else "must not be negative",
    ),
    Field(
        EXPONENTIAL_RECONNECTION,
        "object",
        "Pauses that grow, in place of `reconnect_interval`.",
        optional=True,
        advanced=True,
        children=(
            Field(
                MAX_RETRIES,
                "int",
                "How many times a node is tried again.",
                check=lambda number: None if number >= 1 else f"is {number}; expected 1 or more",
            ),
            _positive_duration(INITIAL_INTERVAL, "The first pause."),
            _positive_duration(MAX_INTERVAL, "The longest pause."),
        ),
    ),
)


def client_problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    """Return what is wrong with these fields together, for a spec's `check`."""
    yield from tls_problems(parsed)
    policy = parsed[NODE_CHOICE]
    if policy[LOCAL_RACK] and not policy[LOCAL_DC]:
        yield f"{NODE_CHOICE}.{LOCAL_RACK}", f"needs {LOCAL_DC}"
    if parsed[LOGIN][ENABLED] and not parsed[LOGIN][USERNAME]:
        yield f"{LOGIN}.{USERNAME}", "is empty, but the login is enabled"
