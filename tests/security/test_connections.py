"""Connections that are opened to hold them: others are answered all the same."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from streamer.config import parse_config
from streamer.connectors.http_server import connections
from streamer.connectors.http_server.connections import (
    ConnectionGuard,
    ConnectionLimits,
    default_limit,
)
from streamer.sdk.input.input_context import open_input
from streamer.service.api import request_parsing
from streamer.service.api.stream_server import serve_stream
from streamer.service.monitoring.stream_view import StreamView
from tests.components.inputs.reading import built
from tests.components.inputs.rooms import lodging
from tests.security.clients import connected, half_open, is_closed, raw_answer
from tests.servers import free_port
from tests.service.api.asking import asking
from tests.service.serving import serving

PING = b"GET /ping HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


@pytest.fixture(autouse=True)
def limits(monkeypatch: pytest.MonkeyPatch) -> Iterator[ConnectionLimits]:
    made = ConnectionLimits(0, 0)
    monkeypatch.setattr(connections, "_limits", made)
    yield made


def test_a_head_that_does_not_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_TIMEOUT_S", 0.3)
    with serving("max_connections: 50") as server, half_open(server.url, 3) as held:
        with connected(server.url) as silent:
            assert is_closed(silent, 5)
        assert all(is_closed(one, 5) for one in held)
        # One who has asked may stay, to ask again.
        with connected(server.url) as kept:
            kept.sendall(PING.replace(b"Connection: close\r\n", b""))
            assert kept.recv(1000).startswith(b"HTTP/1.1 200")
            time.sleep(0.6)
            kept.sendall(PING)
            assert kept.recv(1000).startswith(b"HTTP/1.1 200")


def test_half_open_connections_make_room_for_others(
    limits: ConnectionLimits, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    fields = "max_connections: 40, max_connections_per_address: 20"
    with serving(fields) as server, half_open(server.url, 200) as held:
        assert len(limits) <= 20
        for _ in range(5):
            assert raw_answer(server.url, PING).startswith(b"HTTP/1.1 200")
        assert sum(is_closed(one, 0.01) for one in held) >= 180
    assert "A connection without a request was closed for another one: 20 are open" in caplog.text
    until = time.monotonic() + 5
    while len(limits) and time.monotonic() < until:
        time.sleep(0.01)
    assert not len(limits)


def test_connections_of_a_second_server_count_too(limits: ConnectionLimits) -> None:
    fields = "max_connections: 10, max_connections_per_address: 10"
    with (
        serving(fields) as one,
        serving(fields) as other,
        half_open(one.url, 10),
        half_open(other.url, 10),
    ):
        time.sleep(0.2)
        assert len(limits) <= 10
        assert raw_answer(one.url, PING).startswith(b"HTTP/1.1 200")


OWN_SERVERS = {
    "http_server": "http_server: {{address: '127.0.0.1:{0}'}}",
    "socket_server": "socket_server: {{network: tcp, address: '127.0.0.1:{0}'}}",
}


@pytest.mark.parametrize("component", OWN_SERVERS.values(), ids=OWN_SERVERS)
def test_without_a_server_of_the_program_those_of_components_keep_the_bounds(
    component: str, limits: ConnectionLimits, tmp_path: Path
) -> None:
    limits.total, limits.per_address = 100, 100
    port = free_port()
    text = f"input: {{{component.format(port)}}}\n"
    bounds = "http: {enabled: false, max_connections: 6, max_connections_per_address: 4}\n"
    view = StreamView(parse_config(bounds + text, env={}))
    with serve_stream(view, lambda *line: None), lodging(tmp_path) as lodged:
        open_input(built(text), lodged.room)
        with half_open(f"http://127.0.0.1:{port}", 20) as held:
            until = time.monotonic() + 5
            while sum(is_closed(one, 0.01) for one in held) < 16:
                assert time.monotonic() < until
            assert len(limits) <= 4


def test_a_request_that_has_come_is_answered_or_not_taken(limits: ConnectionLimits) -> None:
    limits.total, limits.per_address = 2, 2

    async def run() -> None:
        loop, taken = asyncio.get_running_loop(), list[bytes]()
        slot = limits.admit("a", lambda: None)
        assert slot is not None
        handler = Mock(_waiter=None, _request_count=0, data_received=taken.append)
        transport = Mock(spec=asyncio.Transport)
        transport.get_extra_info.return_value = SimpleNamespace(_sock=SimpleNamespace(slot=slot))
        guard = ConnectionGuard(handler)
        guard.connection_made(transport)
        assert not slot.is_busy()
        handler._waiter, handler._request_count = loop.create_future(), 1
        assert not slot.is_busy()
        # It was read; aiohttp begins with it in its next step, and with its task in one more.
        handler._waiter.set_result(None)
        assert slot.is_busy()
        handler._waiter = None
        assert slot.is_busy()
        handler._waiter = loop.create_future()
        assert not slot.is_busy()
        slot.close()
        guard.data_received(b"POST / HTTP/1.1")
        assert taken == []
        guard.connection_lost(None)

    asyncio.run(run())


def test_busy_connections_stay_and_the_newcomer_is_refused(limits: ConnectionLimits) -> None:
    limits.total, limits.per_address = 3, 2
    ended: list[int] = []
    busy = [limits.admit("a", lambda: ended.append(1), lambda: True) for _ in range(2)]
    assert limits.admit("a", lambda: ended.append(2)) is None
    idle = limits.admit("b", lambda: ended.append(3))
    assert idle is not None and len(limits) == 3
    # All are taken: the idle one goes.
    assert limits.admit("c", lambda: ended.append(4)) is not None
    assert ended == [3] and not any(one is None or one.is_closing for one in busy)
    limits.release(idle)
    limits.release(idle)
    assert len(limits) == 3 and not limits.is_clearing


def test_streams_keep_descriptors_whatever_their_number_is() -> None:
    assert [default_limit(one) for one in (64, 400, 1024, 65_536, 1 << 20)] == [
        *(32, 200, 768, 10_000, 10_000)
    ]
    for descriptors in (2, 10, 64, 400, 1024, 4096):
        assert 1 <= default_limit(descriptors) <= max(descriptors // 4 * 3, 1)


def test_an_answer_that_nobody_reads_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "WRITE_TIMEOUT_S", 0.3)
    with serving("max_connections: 5, debug_endpoints: true") as server:
        at = server.url
        with connected(at) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            ask = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"

            def send() -> None:
                try:
                    while True:
                        client.sendall(ask * 20)
                except OSError:
                    gone.set()

            gone = threading.Event()
            threading.Thread(target=send, daemon=True).start()
            assert gone.wait(20)
        assert raw_answer(at, PING).startswith(b"HTTP/1.1 200")


def test_a_body_of_the_api_that_drips_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_parsing, "_BODY_TIMEOUT_S", 0.3)
    head = b"POST /streams/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\ninput"
    with asking(tmp_path, "max_connections: 5") as asked, connected(asked.url) as client:
        client.sendall(head)
        assert client.recv(1000).startswith(b"HTTP/1.1 408")
