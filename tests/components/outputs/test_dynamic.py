"""`dynamic`: outputs that are made, changed and removed over HTTP while messages go to them."""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
from aiohttp import web
from deltalake import DeltaTable

from streamer.config import parse_config
from streamer.connectors.http_server.component_server import ServerSettings, serve_paths
from streamer.connectors.http_server.registry import EndpointRegistry
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.engine.driver.delivery import Delivery, DeliveryStoppedError
from streamer.engine.driver.input_host import InputHost
from streamer.engine.driver.writers import make_writers, open_writers
from streamer.engine.report.result_frame import Frame, FrameKind
from streamer.plan import make_plan
from tests.components.outputs.scripted import batches
from tests.servers.http import Reply, http_server


@contextmanager
def serving(endpoints: EndpointRegistry) -> Iterator[str]:
    """Serve what components add, as the stream's server does."""
    loop, ready, urls = asyncio.new_event_loop(), threading.Event(), []
    stop = asyncio.Event()

    async def answer(request: web.BaseRequest, _: Mapping[str, str]) -> web.StreamResponse:
        found = endpoints.find(request.path)
        return web.Response(status=404) if found is None else await found[0](request, found[1])

    async def listening(url: str) -> None:
        urls.append(url)
        ready.set()
        await stop.wait()

    def run() -> None:
        loop.run_until_complete(
            serve_paths(ServerSettings("127.0.0.1:0"), {"/": answer}, listening)
        )
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(60)
    endpoints.served = True
    try:
        yield urls[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(60)


@dataclass
class Dynamic:
    """A stream's dynamic output on the driver."""

    http: httpx2.Client
    delivery: Delivery
    output: Any
    stopping: threading.Event
    stdout: io.BytesIO
    said: list[Any]
    counted: dict[Any, int]
    number: int = 0
    threads: list[threading.Thread] = field(default_factory=list)
    raised: list[BaseException] = field(default_factory=list)

    def frames(self, made: list[Batch]) -> list[Frame]:
        bodies = [body for batch in made for _, body in self.output.encode(batch, Execution(int))]
        return [Frame(FrameKind.DATA, 0, 0, seq, 0, "", body) for seq, body in enumerate(bodies)]

    def deliver(self, made: list[Batch]) -> threading.Thread:
        number, self.number = self.number, self.number + 1

        def run() -> None:
            try:
                self.delivery.deliver(number, self.frames(made))
            except DeliveryStoppedError as e:
                self.raised.append(e)

        self.threads.append(threading.Thread(target=run))
        self.threads[-1].start()
        return self.threads[-1]

    def delivered(self, made: list[Batch]) -> None:
        self.deliver(made).join(60)
        assert self.delivery.batch == self.number - 1


@contextmanager
def dynamic(directory: Path, outputs: str = "{}") -> Iterator[Dynamic]:
    plan = make_plan(
        parse_config(f"output: {{dynamic: {{prefix: /on, outputs: {outputs}}}}}\n", env={})
    )
    stopping, endpoints, stdout = threading.Event(), EndpointRegistry(), io.BytesIO()
    said: list[Any] = []
    counted: dict[Any, int] = {}

    def count(name: str, by: int = 1, **labels: str) -> None:
        key = name, labels.get("path")
        counted[key] = counted.get(key, 0) + by

    house = InputHost(directory / "spool", {}, lambda *line: said.append(line), count, stopping)
    house.endpoints = endpoints
    with serving(endpoints) as url, httpx2.Client(base_url=url + "/on", timeout=60) as client:
        writers = make_writers(plan, directory, stdout)
        open_writers(writers, house.root_context())
        delivery = Delivery(writers, lambda *line: said.append(line), stopping.is_set)
        output = plan.context().build(plan.output).output
        made = Dynamic(client, delivery, output, stopping, stdout, said, counted)
        try:
            yield made
        finally:
            house.stop()
            for thread in made.threads:
                thread.join(60)


def test_all_outputs_get_all_messages_with_their_metadata(tmp_path):
    outputs = (
        f"{{a: {{file: {{path: '{tmp_path}/${{! @name }}'}}}}, "
        "b: {stdout: {}, processors: [mapping: root = content().uppercase()]}}"
    )
    with dynamic(tmp_path, outputs) as output:
        output.delivered([[Message(b"x", {"name": "one"})], [Message(b"y", {"name": "two"})]])
        assert (tmp_path / "one").read_bytes() + (tmp_path / "two").read_bytes() == b"x\ny\n"
        assert output.stdout.getvalue() == b"X\nY\n"
    assert output.counted["output_sent", "root.output.dynamic.outputs.a"] == 2


def test_a_file_is_exact_when_a_micro_batch_is_written_again(tmp_path):
    outputs = f"{{a: {{file: {{path: '{tmp_path}/f'}}}}}}"
    for _ in range(2):
        with dynamic(tmp_path, outputs) as output:
            output.delivered(batches("a", "b"))
    assert (tmp_path / "f").read_bytes() == b"a\nb\n"


def test_outputs_are_made_changed_and_removed(tmp_path):
    with dynamic(tmp_path) as output:
        waiting = output.deliver(batches("a"))
        assert output.http.get("/outputs").json() == {}
        # Nothing is delivered as long as there is no output.
        made = output.http.post("/outputs/one", content=f"file: {{path: {tmp_path}/first}}")
        assert (made.status_code, made.text) == (200, "")
        waiting.join(60)
        assert (tmp_path / "first").read_bytes() == b"a\n"
        text = f'{{"file": {{"path": "{tmp_path}/second"}}}}'
        assert output.http.post("/outputs/one", content=text).status_code == 200
        output.delivered(batches("b"))
        assert (tmp_path / "first").read_bytes() == b"a\n"
        assert (tmp_path / "second").read_bytes() == b"b\n"
        listed = output.http.get("/outputs").json()["one"]
        path = f"{tmp_path}/second"
        file = {"path": path, "base": "", "codec": "lines", "success_file": ""}
        assert listed["config"]["file"] == file
        assert "codec: lines" in output.http.get("/outputs/one").text
        assert output.http.get("/outputs/one/uptime").text.endswith("s")
        assert output.http.delete("/outputs/one").status_code == 200
        assert output.http.get("/outputs/one").status_code == 404
        assert output.http.get("/outputs/one/uptime").status_code == 404


def test_an_output_that_fails_is_tried_again_until_it_is_removed(tmp_path):
    with http_server(lambda asked: Reply(500)) as bad, dynamic(tmp_path) as output:
        client = f"http_client: {{url: '{bad.url}', retries: 0}}"
        output.http.post("/outputs/good", content="stdout: {}")
        output.http.post("/outputs/bad", content=client)
        waiting = output.deliver(batches("a"))
        asked = threading.Event()
        while not bad.asked:
            asked.wait(0.01)
        assert waiting.is_alive()
        output.http.delete("/outputs/bad")
        waiting.join(60)
        assert output.delivery.batch == 0
        assert output.stdout.getvalue() == b"a\n"
    assert any("removed before" in line[1] for line in output.said)


def test_what_is_not_delivered_when_the_program_stops_comes_again(tmp_path):
    with dynamic(tmp_path) as output:
        waiting = output.deliver(batches("a"))
        output.stopping.set()
        waiting.join(60)
        assert len(output.raised) == 1 and output.delivery.batch == -1


def test_secrets_are_not_shown(tmp_path):
    with dynamic(tmp_path) as output:
        auth = "basic_auth: {enabled: true, password: wordpass}"
        text = f"http_client: {{url: 'http://u:wordpass@x', {auth}}}"
        assert output.http.post("/outputs/a", content=text).status_code == 200
        shown = output.http.get("/outputs/a").text + output.http.get("/outputs").text
    assert "basic_auth" in shown and "wordpass" not in shown


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a", "nope: {}", "output 'nope' is not known"),
        ("a", "[", "the config is not YAML"),
        ("a", "resource: x", "x"),
        ("a", "http_server: {address: 'localhost:0'}", "cannot be inside of a dynamic"),
        ("%20", "drop: {}", "has other characters"),
    ],
)
def test_what_is_wrong_is_told_and_changes_nothing(tmp_path, name, text, said):
    with dynamic(tmp_path) as output:
        answer = output.http.post(f"/outputs/{name}", content=text)
        assert answer.status_code == 502 and said in answer.text
        assert output.http.get("/outputs").json() == {}
        assert output.http.put("/outputs/a").status_code == 502


def test_a_message_that_an_output_rejects_is_dropped_and_keeps_nobody_waiting(tmp_path):
    with http_server(lambda asked: Reply(400 if asked.body == b"b" else 200)) as server:
        outputs = f"{{a: {{http_client: {{url: '{server.url}'}}}}, b: {{stdout: {{}}}}}}"
        with dynamic(tmp_path, outputs) as output:
            output.delivered([[Message(b"a")], [Message(b"b")], [Message(b"c")]])
    assert sorted(server.bodies) == [b"a", b"b", b"c"]
    assert output.stdout.getvalue() == b"a\nb\nc\n"
    assert output.counted["output_dropped", None] == 1
    assert any("Messages dropped, since an output rejects them" in line[1] for line in output.said)


def test_a_table_has_each_row_once_when_its_output_was_replaced_before_a_crash(tmp_path):
    table = f"delta: {{path: '{tmp_path}/table', columns: {{n: bigint}}}}"
    row = [[Message(b'{"n":1}')], [Message(b'{"n":2}')]]
    with dynamic(tmp_path, f"{{a: {{{table}}}}}") as output:
        output.delivered(row[:1])
        assert output.http.post("/outputs/a", content=table).status_code == 200
        output.delivered(row[1:])
    # The program ended before Spark knew of the second micro-batch; the config's output writes it.
    with dynamic(tmp_path, f"{{a: {{{table}}}}}") as output:
        output.number = 1
        output.delivered(row[1:])
    rows = DeltaTable(tmp_path / "table").to_pyarrow_table().to_pylist()
    assert sorted(one["n"] for one in rows) == [1, 2]
