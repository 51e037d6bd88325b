"""Connections to the secured broker, as configs describe them."""

from __future__ import annotations

from typing import Any

import yaml

from streamer.connectors.kafka.cluster.connection import Connection
from streamer.connectors.kafka.cluster.connection_fields import read_connection
from tests.connectors.kafka.parsing import connection_fields
from tests.servers.kafka.secured import KEY_PASSWORD, LISTENERS, PASSWORDS, Secured


def connection(
    secured: Secured,
    listener: str,
    mechanism: str = "",
    user: str = "alice",
    tls: dict[str, Any] | None = None,
    sasl: dict[str, Any] | None = None,
    address: str = "",
) -> Connection:
    """Return a connection to a listener; `tls` and `sasl` change what is right there."""
    protocol = LISTENERS.get(listener, "PLAINTEXT")
    fields: dict[str, Any] = {"seed_brokers": [address or secured.broker.address(listener)]}
    if protocol.endswith("SSL"):
        given = {"enabled": True, "root_cas_file": str(secured.authority)}
        if listener == "MUTUAL":
            shown = {"cert_file": str(secured.certificate), "key_file": str(secured.encrypted_key)}
            given["client_certs"] = [{**shown, "password": KEY_PASSWORD}]
        fields["tls"] = {**given, **(tls or {})}
    if mechanism:
        who = {"username": user, "password": PASSWORDS[user]}
        if mechanism == "OAUTHBEARER":
            who = {"token": secured.token(user)}
        fields["sasl"] = [{"mechanism": mechanism, **who, **(sasl or {})}]
    return read_connection(connection_fields(yaml.safe_dump(fields)))
