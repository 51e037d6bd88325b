"""Sockets of a session whose brokers are away: none stays open, though errors are kept."""

from __future__ import annotations

import gc
import os
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from streamer.connectors.kafka.cluster.broker_session import BrokerSession
from streamer.connectors.kafka.cluster.connection_fields import read_connection
from streamer.connectors.kafka.cluster.errors import OutOfTimeError
from streamer.connectors.kafka.cluster.requests import fetch_metadata
from tests.connectors.kafka.parsing import connection_fields


def count_sockets() -> int:
    found = 0
    for number in os.listdir("/proc/self/fd"):
        try:
            found += os.readlink(f"/proc/self/fd/{number}").startswith("socket:")
        except OSError:  # that of the listing itself
            continue
    return found


@pytest.fixture(params=["nobody listens", "no TLS", "silent"])
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    """A port where nobody is, or one whose handshakes fail at once or after the time for it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        if request.param == "nobody listens":
            server.close()
        if request.param == "no TLS":
            threading.Thread(target=_answer_plainly, args=(server,), daemon=True).start()
        yield address
        if request.param == "no TLS":
            server.shutdown(socket.SHUT_RDWR)


def _answer_plainly(server: socket.socket) -> None:
    while True:
        try:
            accepted, _ = server.accept()
        except OSError:
            return
        with accepted:
            accepted.sendall(b"x" * 100)


def test_what_does_not_connect_is_closed(address: str) -> None:
    fields = f"seed_brokers: ['{address}'], tls: {{enabled: true, skip_cert_verify: true}}"
    # A broker has a second for TLS.
    connection = replace(read_connection(connection_fields(f"{{{fields}}}")), connect_timeout=10**9)
    session = BrokerSession(connection)
    own = count_sockets()  # its loop wakes by a pair of them
    gc.disable()
    try:
        until = time.monotonic() + 60
        while len(session.failures) < 3:
            assert time.monotonic() < until
            with pytest.raises(OutOfTimeError):
                session.query(lambda requests: fetch_metadata(requests, ()), 0.5)
        # One may be under way, and one accepted by the other side.
        while count_sockets() > own + 2:
            assert time.monotonic() < until
    finally:
        gc.enable()
        session.close()
