"""What is too large is refused, and nothing of it is kept: by requests, WebSockets and sockets."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from streamer.connectors.http_server import requests
from streamer.connectors.spool import store
from streamer.sdk.input.input_context import open_input
from streamer.sdk.input.replayable import Limit
from tests.components.inputs.reading import Said, batches_of, built
from tests.components.inputs.rooms import Lodging, lodging
from tests.security.clients import connected, is_closed

SMALL = 1000


class Taking:
    """An input that listens, and what it has taken."""

    def __init__(self, lodged: Lodging, source: Any, url: str) -> None:
        self.lodged = lodged
        self.source = source
        self.url = url

    def taken(self) -> list[bytes]:
        """Return all payloads that have landed."""
        at = self.source.initial_offset()
        end = self.source.latest_offset(at, 0, Limit()).offset
        found = batches_of(self.source, at, end, ex=Said().execution())
        return [message.raw for one in found for message in one]

    def ask(self, run: Callable[[aiohttp.ClientSession], Awaitable[Any]]) -> Any:
        async def main() -> Any:
            async with aiohttp.ClientSession(self.url) as session:
                return await run(session)

        return asyncio.run(main())

    def post(self, data: bytes, **headers: str) -> int:
        async def run(session: aiohttp.ClientSession) -> int:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            async with session.post("/post", data=data, headers=named) as found:
                return found.status

        status: int = self.ask(run)
        return status


@contextmanager
def taking(tmp_path: Path, fields: str = "") -> Iterator[Taking]:
    more = f"address: '127.0.0.1:0', max_body_size: {SMALL}, max_parts: 5{fields}"
    source = built(f"input: {{http_server: {{{more}}}}}")
    with lodging(tmp_path / "spool") as lodged:
        yield Taking(lodged, open_input(source, lodged.room), lodged.said("url"))


def test_a_body_that_is_too_large_is_answered_413_and_does_not_land(tmp_path: Path) -> None:
    with taking(tmp_path) as server:
        assert server.post(b"x" * SMALL) == 200
        assert server.post(b"y" * (SMALL + 1)) == 413

        async def chunks() -> Any:
            for _ in range(100):
                yield b"z" * 100

        async def run(session: aiohttp.ClientSession) -> int:
            async with session.post("/post", data=chunks()) as found:
                return found.status

        assert server.ask(run) == 413
        # One that says it is large is refused before it is sent.
        with connected(server.url) as client:
            client.sendall(
                b"POST /post HTTP/1.1\r\nHost: a\r\nContent-Length: 999999999999\r\n\r\n"
            )
            assert client.recv(1000).startswith(b"HTTP/1.1 413")
        assert server.taken() == [b"x" * SMALL]
        lines = [text for _, text in server.lodged.log if "refused" in text]
        # One line of a kind in a minute, whoever comes how often.
        assert len(lines) == 1 and lines[0].endswith(f"and may have {SMALL}")


def test_a_body_of_too_many_parts_is_answered_413(tmp_path: Path) -> None:
    with taking(tmp_path) as server:
        for number, status in ((5, 200), (6, 413), (100, 413)):
            body = b"".join(b"--B\r\n\r\n%d\r\n" % one for one in range(number)) + b"--B--"
            assert server.post(body, Content_Type="multipart/mixed; boundary=B") == status
        assert server.taken() == [b"0", b"1", b"2", b"3", b"4"]


def test_a_large_multipart_body_does_not_hold_the_loop(tmp_path: Path) -> None:
    fields = ", max_parts: 1000000"
    body = b"".join(b"--B\r\n\r\n\r\n" for _ in range(300_000)) + b"--B--"
    source = f"address: '127.0.0.1:0', max_body_size: 100000000{fields}"
    with lodging(tmp_path / "spool") as lodged:
        open_input(built(f"input: {{http_server: {{{source}}}}}"), lodged.room)
        url = lodged.said("url")

        async def main() -> tuple[float, float]:
            longest, start = 0.0, time.monotonic()
            async with aiohttp.ClientSession(url) as session:

                async def post() -> None:
                    kind = {"Content-Type": "multipart/mixed; boundary=B"}
                    async with session.post("/post", data=body, headers=kind):
                        pass

                posting = asyncio.ensure_future(post())
                while not posting.done():
                    began = time.monotonic()
                    async with session.get("/nothing") as found:
                        assert found.status == 404
                    longest = max(longest, time.monotonic() - began)
                    await asyncio.sleep(0.01)
            return longest, time.monotonic() - start

        longest, whole = asyncio.run(main())
        assert longest < 0.5 * whole


def test_what_is_answered_408_does_not_land(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, goes_on = threading.Event(), threading.Event()
    append = store.SpoolStore.append

    def slow(self: Any, *given: Any) -> None:
        began.set()
        goes_on.wait(10)
        append(self, *given)

    with taking(tmp_path, ", timeout: 300ms") as server:
        # A body that drips.
        with connected(server.url) as client:
            client.sendall(b"POST /post HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nsome")
            assert client.recv(1000).startswith(b"HTTP/1.1 408")
        monkeypatch.setattr(store.SpoolStore, "append", slow)

        async def post(session: aiohttp.ClientSession, data: bytes) -> int:
            async with session.post("/post", data=data) as found:
                return found.status

        async def run(session: aiohttp.ClientSession) -> tuple[int, int]:
            first = asyncio.ensure_future(post(session, b"first"))
            await asyncio.to_thread(began.wait, 10)
            # It waits for the disk that writes the first.
            second = await post(session, b"second")
            goes_on.set()
            return await first, second

        # What the disk is writing already is awaited: it lands, and is answered so.
        assert server.ask(run) == (200, 408)
        assert server.taken() == [b"first"]


def test_a_websocket_message_that_is_too_large_ends_the_connection(tmp_path: Path) -> None:
    with taking(tmp_path) as server:

        async def run(session: aiohttp.ClientSession, compress: int, data: bytes) -> int | None:
            async with session.ws_connect("/post/ws", compress=compress) as ws:
                await ws.send_bytes(b"ok")
                await ws.send_bytes(data)
                await ws.receive(10)
                return ws.close_code

        large, bomb = b"x" * (SMALL + 1), b"\0" * (50 << 20)
        assert server.ask(lambda session: run(session, 0, large)) == 1009
        # It is what it inflates to that counts: these are 50 kB.
        assert server.ask(lambda session: run(session, 15, bomb)) == 1009
        assert server.taken() == [b"ok", b"ok"]


@contextmanager
def socket_server(tmp_path: Path, fields: str) -> Iterator[Taking]:
    source = built(f"input: {{socket_server: {{network: tcp, address: '127.0.0.1:0', {fields}}}}}")
    with lodging(tmp_path / "spool") as lodged:
        made = open_input(source, lodged.room)
        yield Taking(lodged, made, f"tcp://{lodged.said('address')}")


def _until(true: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not true():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.parametrize("delimiter", ["", "custom_delimiter: 'END'"])
def test_an_endless_line_is_not_held(tmp_path: Path, delimiter: str) -> None:
    end = b"END" if delimiter else b"\n"
    scanner = f"scanner: {{lines: {{max_buffer_size: 1000{', ' if delimiter else ''}{delimiter}}}}}"
    with socket_server(tmp_path, scanner) as server:
        with connected(server.url) as client:
            client.sendall(b"good" + end)
            for _ in range(64):
                client.sendall(b"x" * (1 << 20))
            client.sendall(b"EN" if delimiter else b"y")
            client.sendall(b"x" + end + b"after" + end)
        _until(lambda: b"after" in server.taken())
        assert [raw for raw in server.taken() if raw] == [b"good", b"after"]
        size = sum(one.stat().st_size for one in (tmp_path / "spool").rglob("*") if one.is_file())
        assert size < 2 << 20


def test_a_stream_without_an_end_is_not_held(tmp_path: Path) -> None:
    with socket_server(tmp_path, "scanner: {to_the_end: {max_size: 1000000}}") as server:
        with connected(server.url) as client:
            client.sendall(b"x" * 1000)
        with connected(server.url) as client:
            try:
                for _ in range(64):
                    client.sendall(b"x" * (1 << 20))
            except OSError:
                pass
            assert is_closed(client, 10)
        _until(lambda: bool(server.taken()))
        assert server.taken() == [b"x" * 1000]
        assert any("max_size of the scanner to_the_end" in text for _, text in server.lodged.log)


def test_a_tls_handshake_that_does_not_end_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from streamer.components.inputs import socket_server as module

    monkeypatch.setattr(module, "TLS_HANDSHAKE_TIMEOUT_S", 0.3)
    fields = "network: tls, address: '127.0.0.1:0', tls: {self_signed: true}"
    with lodging(tmp_path / "spool") as lodged:
        open_input(built(f"input: {{socket_server: {{{fields}}}}}"), lodged.room)
        host, _, port = str(lodged.said("address")).rpartition(":")
        with socket.create_connection((host, int(port)), 10) as client:
            assert is_closed(client, 5)


def test_bodies_together_have_a_bound_and_one_alone_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests.BODY_MEMORY, "limit", 500)
    with taking(tmp_path, ", timeout: 20s") as server:
        assert server.post(b"x" * SMALL) == 200
        with connected(server.url) as client:
            head = b"POST /post HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\n"
            client.sendall(head + b"y" * 400)
            _until(lambda: requests.BODY_MEMORY._used == 400)
            assert server.post(b"z" * 200) == 503
            assert server.post(b"z" * 50) == 200
            client.sendall(b"y" * 500)
            assert client.recv(1000).startswith(b"HTTP/1.1 200")
        _until(lambda: requests.BODY_MEMORY._used == 0)
        assert server.taken() == [b"x" * SMALL, b"z" * 50, b"y" * 900]
