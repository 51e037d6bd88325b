"""`http_server` as an output: messages that are fetched from a real server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.sync.client import connect

from streamer.config import parse_config
from streamer.core.errors import ConfigError, StreamerError
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.engine.driver.delivery import Delivery, DeliveryStoppedError
from streamer.engine.driver.input_host import InputHost
from streamer.engine.driver.writers import make_writers, open_writers
from streamer.engine.report.result_frame import Frame, FrameKind
from streamer.plan import make_plan
from tests.components.outputs.scripted import built


@dataclass
class Served:
    """An output that is served: where, and what gives it micro-batches."""

    address: str
    house: InputHost
    delivery: Delivery
    output: Any
    number: int = 0

    def frames(self, *batches: list[bytes]) -> list[Frame]:
        made = []
        for seq, raws in enumerate(batches):
            [(route, body)] = self.output.encode([Message(raw) for raw in raws], Execution(int))
            made.append(Frame(FrameKind.DATA, 0, 0, seq, 0, route, body))
        return made

    def deliver(self, *batches: list[bytes]) -> threading.Thread:
        """Deliver a micro-batch in a thread, which ends when all of it has been fetched."""
        arguments = (self.number, self.frames(*batches))
        self.number += 1
        thread = threading.Thread(target=self.delivery.deliver, args=arguments)
        thread.start()
        return thread


@contextmanager
def served(directory: Path, fields: str = "") -> Iterator[Served]:
    plan = make_plan(
        parse_config(f"output: {{http_server: {{address: '127.0.0.1:0', {fields}}}}}\n", env={})
    )
    stopping = threading.Event()
    said: list[Any] = []
    house = InputHost(
        directory, {}, lambda *line: said.append(line), lambda *_, **__: None, stopping
    )
    writers = make_writers(plan, directory, None)
    open_writers(writers, house.root_context())
    url = next(line[2]["url"] for line in said if "url" in line[2])
    delivery = Delivery(writers, lambda *line: None, stopping.is_set)
    try:
        yield Served(url, house, delivery, plan.context().build(plan.output).output)
    finally:
        house.stop()
        for thread in house.threads:
            thread.join(60)


def test_each_who_asks_gets_a_batch_and_a_micro_batch_waits_for_all(tmp_path):
    with served(tmp_path) as server, httpx2.Client(base_url=server.address, timeout=60) as client:
        delivering = server.deliver([b"a"], [b"b"])
        first = client.get("/get")
        assert (first.status_code, first.content) == (200, b"a")
        assert first.headers["content-type"] == "application/octet-stream"
        assert delivering.is_alive()
        assert client.get("/get").content == b"b"
        delivering.join(60)
        assert server.delivery.batch == 0


def test_a_batch_of_several_messages_has_a_part_for_each(tmp_path):
    with served(tmp_path) as server:
        delivering = server.deliver([b"a", b"b"])
        response = httpx2.get(server.address + "/get", timeout=60)
        delivering.join(60)
    mark = response.headers["content-type"].rpartition("boundary=")[2].encode()
    part = b"--" + mark + b"\r\nContent-Type: application/octet-stream\r\n\r\n"
    assert response.content == part + b"a\r\n" + part + b"b\r\n--" + mark + b"--\r\n"


def test_who_waits_too_long_is_told_and_nothing_is_lost(tmp_path):
    with served(tmp_path, "timeout: 50ms") as server:
        assert httpx2.get(server.address + "/get", timeout=60).status_code == 408
        assert httpx2.post(server.address + "/get", timeout=60).status_code == 405
        assert httpx2.get(server.address + "/else", timeout=60).status_code == 404
        delivering = server.deliver([b"a"])
        while (response := httpx2.get(server.address + "/get", timeout=60)).status_code == 408:
            pass
        assert response.content == b"a"
        delivering.join(60)


def test_a_stream_has_a_line_for_each_message(tmp_path):
    with (
        served(tmp_path, "stream_path: /all, allowed_verbs: [POST]") as server,
        httpx2.stream("POST", server.address + "/all", timeout=60) as response,
    ):
        lines = response.iter_raw()
        for batch, line in (([b"a"], b"a\n"), ([b"b", b"c"], b"b\nc\n\n")):
            delivering = server.deliver(batch)
            got = b""
            while len(got) < len(line):
                got += next(lines)
            assert got == line
            delivering.join(60)


def test_a_websocket_gets_each_message(tmp_path):
    with served(tmp_path) as server:
        url = server.address.replace("http", "ws") + "/get/ws"
        with connect(url, proxy=None) as socket:
            delivering = server.deliver([b"a", b"b"], [b"c"])
            assert [socket.recv(60) for _ in range(3)] == [b"a", b"b", b"c"]
            delivering.join(60)
        # It has gone, so another one gets what comes now; maybe it has to ask again meanwhile, and
        # what went to a connection that was about to close comes again.
        delivering = server.deliver([b"d"])
        for _ in range(12):
            got = httpx2.get(server.address + "/get", timeout=60)
            if got.status_code != 408:
                break
            if not delivering.is_alive():
                delivering = server.deliver([b"d"])
        assert got.content == b"d"
        delivering.join(60)


def test_what_nobody_has_fetched_when_the_program_stops_comes_again(tmp_path):
    raised: list[BaseException] = []
    with served(tmp_path) as server:

        def deliver() -> None:
            try:
                server.delivery.deliver(0, server.frames([b"a"]))
            except DeliveryStoppedError as e:
                raised.append(e)

        thread = threading.Thread(target=deliver)
        thread.start()
        server.house.stop()
        thread.join(60)
    assert len(raised) == 1 and server.delivery.batch == -1


def test_without_an_address_there_must_be_a_server_of_the_stream(tmp_path):
    plan = make_plan(parse_config("output: {http_server: {}}\n", env={}))
    house = InputHost(tmp_path, {}, print, lambda *_, **__: None, threading.Event())
    with pytest.raises(StreamerError, match="give the output an address"):
        open_writers(make_writers(plan, tmp_path, None), house.root_context())


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ("address: here", "expected host:port"),
        ("allowed_verbs: []", "expected at least one verb"),
        ("path: '', stream_path: '', ws_path: ''", "has no path"),
        ("address: 'a:1', cert_file: x", "needs a key_file"),
        ("cors: {enabled: true, allowed_origins: [a]}", "set http.cors"),
    ],
)
def test_what_is_wrong_is_told(fields, text):
    with pytest.raises(ConfigError, match=text):
        built(f"http_server: {{{fields}}}")
