"""The `websocket` input against a real server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aiohttp import WSMsgType, web

from tests.components.inputs.receiving import receiving


class Server:
    """Sends what it is given to each connection, then closes it."""

    def __init__(self, sends: list[str | bytes]) -> None:
        self.sends = sends
        self.greetings: list[tuple[Any, Any]] = []
        self.headers: list[str | None] = []
        self.url = ""

    async def handle(self, request: web.Request) -> web.WebSocketResponse:
        self.headers.append(request.headers.get("Authorization"))
        ws = web.WebSocketResponse()
        await ws.prepare(request)
        if request.query.get("greets"):
            message = await ws.receive()
            self.greetings.append((message.type, message.data))
        for one in self.sends:
            await (ws.send_str(one) if isinstance(one, str) else ws.send_bytes(one))
        await ws.close()
        return ws


@contextmanager
def serving(server: Server) -> Iterator[None]:
    begun, over = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def main() -> None:
        app = web.Application()
        app.router.add_get("/ws", server.handle)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        server.url = f"ws://127.0.0.1:{runner.addresses[0][1]}/ws"
        begun.set()
        await over.wait()
        await runner.cleanup()

    thread = threading.Thread(target=loop.run_until_complete, args=(main(),))
    thread.start()
    assert begun.wait(30)
    try:
        yield
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()


def test_messages_are_taken_and_the_connection_is_made_again(tmp_path):
    server = Server(["tëxt", b"\x00bytes"])
    with serving(server):
        auth = "basic_auth: {enabled: true, username: u, password: p}"
        text = f"input: {{websocket: {{url: '{server.url}?greets=1', open_message: hi, {auth}}}}}"
        with receiving(tmp_path, text) as it:
            assert it.wait(4)[:4] == ["tëxt".encode(), b"\x00bytes"] * 2
    assert server.greetings[0] == (WSMsgType.BINARY, b"hi")
    assert server.headers[0] == "Basic dTpw"


def test_the_greeting_may_be_text(tmp_path):
    server = Server(["x"])
    with serving(server):
        fields = f"url: '{server.url}?greets=1', open_message: hi, open_message_type: text"
        with receiving(tmp_path, f"input: {{websocket: {{{fields}}}}}") as it:
            it.wait(1)
    assert server.greetings[0] == (WSMsgType.TEXT, "hi")


def test_the_input_ends_when_connections_fail_too_often(tmp_path):
    server = Server([])
    with serving(server):
        pass
    fields = f"url: '{server.url}', connection: {{max_retries: 1}}"
    with receiving(tmp_path, f"input: {{websocket: {{{fields}}}}}") as it:
        assert it.wait_for_end() == []
        assert it.lodged.counts["input_connection_failed"] == 2
        assert "Failed to connect to websocket" in it.lodged.log[0][1]
