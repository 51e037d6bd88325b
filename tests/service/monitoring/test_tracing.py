"""Traces of micro-batches, as collectors of OpenTelemetry get them over HTTP and gRPC."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from streamer.components.tracers.jaeger import find_endpoint
from streamer.config import parse_config
from streamer.core.errors import ConfigError
from streamer.core.message import Message
from streamer.engine.report.spans import BatchTrace, TaskTrace
from streamer.sdk.input.replayable import RawMessages
from streamer.service.monitoring import tracing
from streamer.service.monitoring.tracing import BatchTracer, make_tracer
from tests.engine.stream import Run, write_lines
from tests.servers.hostile import Serve, dripping, raw_server, silent
from tests.slowness import is_within

SECOND = 10**9
T = 1_700_000_000 * SECOND
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
WAY = """
input: { label: src, file: { paths: [in] } }
pipeline: { processors: [ { label: add, mapping: 'root = this' } ] }
output: { label: dst, stdout: {} }
"""
WINDOW = "buffer: { system_window: { timestamp_mapping: root = this.at, size: 10s } }\n"


class Collector:
    """What collectors have been sent."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.about: dict[str, str] = {}

    def take(self, body: bytes) -> None:
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service

        request = service.ExportTraceServiceRequest.FromString(body)
        for one in request.resource_spans:
            self.about = {each.key: each.value.string_value for each in one.resource.attributes}
            self.spans += [span for scope in one.scope_spans for span in scope.spans]

    def named(self, name: str) -> list[Any]:
        return [span for span in self.spans if span.name == name]


@contextmanager
def over_http() -> Iterator[tuple[str, Collector]]:
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                import gzip

                body = gzip.decompress(body)
            collector.take(body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http: [ {{ address: '127.0.0.1:{server.server_port}' }} ]", collector
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def over_grpc() -> Iterator[tuple[str, Collector]]:
    import grpc
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as stubs

    collector = Collector()

    class Service(stubs.TraceServiceServicer):
        def Export(self, request: Any, context: Any) -> Any:
            collector.take(request.SerializeToString())
            return service.ExportTraceServiceResponse()

    server = grpc.server(ThreadPoolExecutor(2))
    add: Any = stubs.add_TraceServiceServicer_to_server
    add(Service(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"grpc: [ {{ address: '127.0.0.1:{port}' }} ]", collector
    finally:
        server.stop(1).wait()


def traced(text: str, where: str, more: str = "") -> tuple[Run, BatchTracer]:
    tracer = f"tracer: {{ open_telemetry_collector: {{ service: cars, {where}{more} }} }}\n"
    run = Run(text + tracer)
    run.clock = T
    made = make_tracer(parse_config(text + tracer).tracer, "traffic")
    assert made is not None
    run.delivery.trace = made.trace_batch
    return run, made


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "in"
    path.touch()
    return path


def told(span: Any) -> dict[str, Any]:
    found = {}
    for each in span.attributes:
        kind = each.value.WhichOneof("value")
        found[each.key] = getattr(each.value, kind)
    return found


@pytest.mark.parametrize("collectors", [over_http, over_grpc])
def test_a_micro_batch_is_a_trace_of_what_was_done_in_it(source: Path, collectors: Any) -> None:
    write_lines(source, [{"n": n} for n in range(5)])
    with collectors() as (where, collector):
        run, tracer = traced(WAY, where, ", tags: { team: blue }")
        run.step(T)
        tracer.flush()
    assert collector.about["service.name"] == "cars" and collector.about["team"] == "blue"
    [root] = collector.named("micro_batch")
    assert told(root)["stream"] == "traffic" and told(root)["micro_batch"] == 0
    assert {span.trace_id for span in collector.spans} == {root.trace_id}
    tasks = collector.named("input")
    assert {span.parent_span_id for span in tasks} == {root.span_id}
    processors = collector.named("processor")
    assert {span.parent_span_id for span in processors} <= {span.span_id for span in tasks}
    places = {(told(span)["label"], told(span)["path"]) for span in collector.spans[:-1]}
    assert ("add", "root.pipeline.processors.0") in places and ("src", "root.input") in places
    assert sum(told(span)["messages"] for span in processors) == 5
    [output] = collector.named("output")
    assert told(output)["label"] == "dst" and told(output)["bytes"] > 0
    for span in collector.spans:
        assert span.start_time_unix_nano <= span.end_time_unix_nano


def test_windows_are_spans_of_the_shards_that_let_them_out(source: Path) -> None:
    write_lines(source, [{"at": T // SECOND + 1, "n": n} for n in range(5)])
    with over_http() as (where, collector):
        run, tracer = traced(WAY + WINDOW, where)
        run.step(T + 3 * SECOND)
        run.step(T + 11 * SECOND)
        tracer.flush()
    assert len(collector.named("micro_batch")) == 2
    assert {told(span)["path"] for span in collector.named("buffer")} == {"root.buffer"}
    released = [told(span) for span in collector.named("processor")]
    assert [one["messages"] for one in released] == [5]


def test_the_spans_that_messages_come_from_are_linked(source: Path) -> None:
    noted = TaskTrace("input", {"label": "", "path": "root.input"}, T)
    noted.add_links([[Message(b"1", {"traceparent": PARENT}), Message(b"2")]])
    noted.add_links(RawMessages([b"3"], {"traceparent": PARENT}))
    noted.add_links(RawMessages([b"4"], {"traceparent": "nonsense"}))
    from streamer.core.execution import Execution
    from streamer.engine.report.spans import BatchTrace, TaskSpan

    task = TaskSpan.from_json(noted.to_json(Execution(lambda: T), T + 5))
    with over_http() as (where, collector):
        _, tracer = traced(WAY, where)
        tracer.trace_batch(BatchTrace(7, T, T + 9, [task], [], {}))
        tracer.flush()
    [root] = collector.named("micro_batch")
    assert [(link.trace_id.hex(), link.span_id.hex()) for link in root.links] == [
        tuple(PARENT.split("-")[1:3])
    ]


def test_of_traces_a_share_is_sent(source: Path) -> None:
    write_lines(source, [{"n": 1}])
    with over_http() as (where, collector):
        run, tracer = traced(WAY, where, ", sampling: { enabled: true, ratio: 0 }")
        run.step(T)
        tracer.flush()
    assert collector.spans == []


def test_a_collector_that_is_away_holds_nobody_up(source: Path) -> None:
    write_lines(source, [{"n": 1}])
    run, _ = traced(WAY, "http: [ { address: '127.0.0.1:1' } ]")
    run.step(T)
    assert run.printed() == [{"n": 1}]


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
COLLECTORS = {
    "silent": silent,
    "with a dripping head": dripping(HEAD, 0.05),
    "with a dripping body": dripping(HEAD + b"x" * 1000, 0.05, len(HEAD)),
}


@pytest.mark.parametrize("serve", COLLECTORS.values(), ids=COLLECTORS)
def test_an_export_has_a_deadline_whatever_the_collector_sends(
    source: Path, monkeypatch: pytest.MonkeyPatch, serve: Serve
) -> None:
    write_lines(source, [{"n": 1}])
    monkeypatch.setattr(tracing, "_EXPORT_TIMEOUT_S", 0.5)
    with raw_server(serve) as address:
        run, tracer = traced(WAY, f"http: [ {{ address: '{address}' }} ]")
        run.step(T)
        began = time.monotonic()
        # Not by `flush`, which waits for two seconds only.
        tracer._provider.force_flush()
        taken = time.monotonic() - began
        assert taken > 0.4 and is_within(1.8, taken)


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_a_silent_collector_holds_neither_stop_nor_exit(tmp_path: Path, kind: str) -> None:
    program = (
        "import sys, time\n"
        "from streamer.config import parse_config\n"
        "from streamer.engine.report.spans import BatchTrace\n"
        "from streamer.service.monitoring.tracing import make_tracer\n"
        "tracer = make_tracer(parse_config(sys.argv[1]).tracer, 's')\n"
        "for number in range(2000):\n"
        "    tracer.trace_batch(BatchTrace(number, 1, 2, [], [], {}))\n"
        "began = time.monotonic()\n"
        "tracer.flush()\n"
        "print(time.monotonic() - began)\n"
    )
    with raw_server(silent) as address:
        where = f"{kind}: [ {{ address: '{address}' }} ]"
        config = f"tracer: {{ open_telemetry_collector: {{ {where} }} }}\ninput: {{ stdin: {{}} }}"
        began = time.monotonic()
        ran = subprocess.run(
            [sys.executable, "-c", program, config], capture_output=True, text=True, timeout=60
        )
        assert ran.returncode == 0, ran.stderr
        assert is_within(4, float(ran.stdout))
        assert is_within(9, time.monotonic() - began)


def test_nothing_of_it_is_loaded_or_noted_without_a_tracer(source: Path) -> None:
    program = (
        "import sys, streamer.service.run.stream_run, streamer.service.monitoring.tracing as t\n"
        "from streamer.config import parse_config\n"
        "assert t.make_tracer(parse_config('input: { stdin: {} }').tracer, 's') is None\n"
        "print([m for m in sys.modules if m.startswith(('opentelemetry', 'grpc'))])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ran.stdout, ran.stderr) == ("[]\n", "")
    write_lines(source, [{"n": 1}])
    run = Run(WAY)
    batch = run.step(T)
    assert not [frame for frame in run.frames(batch) if frame.kind == 10]


@pytest.mark.parametrize(
    ("fields", "url"),
    [
        ("collector_url: 'http://j:14268/api/traces'", "http://j:4318/v1/traces"),
        ("collector_url: 'https://j/otlp/v1/traces'", "https://j/otlp/v1/traces"),
        ("agent_address: 'j:6831'", "http://j:4318/v1/traces"),
        ("agent_address: '[::1]:6831'", "http://[::1]:4318/v1/traces"),
    ],
)
def test_spans_of_jaeger_go_to_its_port_of_otlp(fields: str, url: str) -> None:
    config = parse_config(f"tracer: {{ jaeger: {{ {fields} }} }}", env={})
    assert find_endpoint(config.tracer.config) == url


def test_jaeger_gets_a_trace() -> None:
    with over_http() as (where, collector):
        port = int(where.split(":")[-1].split("'")[0])
        url = f"http://127.0.0.1:{port}/v1/traces"
        fields = f"collector_url: '{url}', tags: {{ zone: eu }}, flush_interval: 1h"
        text = f"tracer: {{ jaeger: {{ {fields} }} }}\n"
        tracer = make_tracer(parse_config(text, env={}).tracer, "cars")
        assert tracer is not None
        tracer.trace_batch(BatchTrace(3, T, T + SECOND, [], [], {}))
        tracer.flush()
    [span] = collector.spans
    assert (
        span.name == "micro_batch" and span.end_time_unix_nano - span.start_time_unix_nano == SECOND
    )
    assert collector.about["service.name"] == "benthos" and collector.about["zone"] == "eu"


def test_jaeger_needs_a_place() -> None:
    with pytest.raises(ConfigError, match="expected a URL such as http://jaeger:4318/v1/traces"):
        parse_config("tracer: { jaeger: {} }", env={})
