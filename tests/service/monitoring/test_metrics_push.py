"""Metrics that are sent: to StatsD and InfluxDB in this process, and to collectors of OTLP."""

from __future__ import annotations

import gzip
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from streamer.config import parse_config
from streamer.core.component_stats import bucket_of
from streamer.core.errors import ConfigError
from streamer.core.log_format import LogLine
from streamer.engine.report.latency import LatencySnapshot
from streamer.engine.report.stream_metrics import Snapshot
from streamer.service.monitoring.influxdb_push import InfluxExporter
from streamer.service.monitoring.metric_samples import Sample
from streamer.service.monitoring.metrics_export import export_metrics
from streamer.service.monitoring.otlp_push import OtlpExporter, make_metrics
from streamer.service.monitoring.sample_deltas import SampleDeltas
from streamer.service.monitoring.statsd_push import StatsdExporter, format_lines
from streamer.service.monitoring.stream_view import StreamState, StreamView
from tests.servers import free_port
from tests.servers.hostile import raw_server, silent
from tests.servers.http import Asked, Reply, Server, http_server

TIMES = LatencySnapshot(3, 9_000_000, {bucket_of(2_000_000): 1, bucket_of(3_500_000): 2})
STATE = StreamState(
    Snapshot(7),
    {("input_received", ()): 7},
    times={("processor_latency_ns", ()): TIMES},
)
LABELS = {"label": "a b", "path": "root.x"}


class Exported:
    """A stream whose metrics are exported, and what is logged."""

    def __init__(self, metrics: str) -> None:
        text = f"input: {{ label: in, stdin: {{}} }}\nmetrics: {{ {metrics} }}"
        self.view = StreamView(parse_config(text, env={}))
        self.state = STATE
        self.view.set_running(lambda: self.state)
        self.lines: list[str] = []

    @property
    def log(self) -> LogLine:
        return lambda level, text, fields: self.lines.append(text)

    def exporter(self, kind: Any) -> Any:
        return kind(self.view.config.metrics, lambda: {"": self.view}, self.log)


@pytest.fixture
def receiver() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as bound:
        bound.bind(("127.0.0.1", 0))
        bound.settimeout(10)
        yield bound


def received(receiver: socket.socket, end: str) -> list[str]:
    """Return lines up to one that begins so."""
    lines: list[str] = []
    while not any(line.startswith(end) for line in lines):
        datagram = receiver.recv(65_536)
        assert len(datagram) <= 1400
        lines += datagram.decode().splitlines()
    return lines


class TestStatsd:
    @pytest.mark.parametrize(
        ("tag_format", "line"),
        [
            ("none", "input_received:7|c"),
            ("datadog", "input_received:7|c|#zone:eu,label:a_b,path:root.x"),
            ("influxdb", "input_received,zone=eu,label=a_b,path=root.x:7|c"),
        ],
    )
    def test_labels_are_tags(self, tag_format: str, line: str) -> None:
        sample = Sample.create("input_received", LABELS, 7)
        assert format_lines([sample], SampleDeltas(), tag_format, {"zone": "eu"}) == [line]

    def test_counters_are_sent_as_what_they_have_grown_by(self) -> None:
        deltas = SampleDeltas()
        for value, lines in ((7, ["input_received:7|c"]), (7, []), (9, ["input_received:2|c"])):
            sample = Sample.create("input_received", LABELS, value)
            assert format_lines([sample], deltas, "none", {}) == lines

    def test_timings_are_their_number_and_value(self) -> None:
        deltas = SampleDeltas()
        sample = Sample.create("processor_latency_ns", {}, TIMES)
        one, two = format_lines([sample], deltas, "datadog", {"a": "b"})
        name, _, rest = one.partition(":")
        assert name == "processor_latency_ns" and rest.endswith("|ms|#a:b")
        assert float(rest.split("|")[0]) == pytest.approx(2_000_000, rel=0.05)
        assert two.endswith("|ms|@0.5|#a:b")
        assert format_lines([sample], deltas, "datadog", {}) == []

    def test_gauges_below_zero_and_without_tags(self) -> None:
        samples = [
            Sample.create("backlog", {"stream": name}, value)
            for name, value in (("a", -3), ("b", 1))
        ]
        assert format_lines(samples, SampleDeltas(), "none", {}) == ["backlog:0|g", "backlog:-2|g"]
        a, b = format_lines(samples, SampleDeltas(), "influxdb", {})[1:]
        assert (a, b) == ("backlog,stream=a:-3|g", "backlog,stream=b:1|g")

    def test_datagrams_are_sent_until_the_end(self, receiver: socket.socket) -> None:
        address = f"127.0.0.1:{receiver.getsockname()[1]}"
        made = Exported(f"statsd: {{ address: '{address}', tag_format: datadog }}")
        with export_metrics(made.view.config.metrics, lambda: {"": made.view}, made.log):
            pass
        lines = received(receiver, "stream_running")
        assert "input_received:7|c|#label:in,path:root.input" in lines
        assert any(line.startswith("stream_running:1|g") for line in lines)
        assert made.lines == []

    def test_a_server_that_is_away_costs_nothing_and_a_bad_name_is_logged_once(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        away = Exported(f"statsd: {{ address: '127.0.0.1:{free_port()}' }}")
        exporter = away.exporter(StatsdExporter)
        exporter.export(False)
        exporter.export(True)
        assert away.lines == []

        def fail(*arguments: Any, **named: Any) -> None:
            raise OSError("no such name")

        monkeypatch.setattr(socket, "getaddrinfo", fail)
        nowhere = Exported("statsd: { address: 'nowhere:8125' }")
        exporter = nowhere.exporter(StatsdExporter)
        exporter.export(False)
        exporter.export(False)
        assert nowhere.lines == ["Failed to send metrics to nowhere:8125: no such name"]


class TestInfluxDb:
    def test_metrics_are_posted(self) -> None:
        with http_server() as server:
            made = Exported(
                f"influxdb: {{ url: '{server.url}', db: d b, username: me, password: sesame, "
                "tags: { zone: eu }, precision: ms, retention_policy: week, "
                "write_consistency: one }"
            )
            made.exporter(InfluxExporter).export(True)
        [asked] = server.asked
        assert asked.path == "/write?db=d+b&precision=ms&rp=week&consistency=one"
        assert asked.headers["authorization"] == "Basic bWU6c2VzYW1l"
        lines = asked.body.decode().splitlines()
        [line] = [line for line in lines if line.startswith("input_received")]
        head, fields, time = line.rsplit(" ", 2)
        assert (head, fields) == ("input_received,label=in,path=root.input,zone=eu", "count=7i")
        assert len(time) == 13
        [line] = [line for line in lines if line.startswith("processor_latency_ns")]
        values = dict(field.split("=") for field in line.rsplit(" ", 2)[1].split(","))
        assert values["count"] == "3i" and float(values["mean"]) == 3_000_000
        assert any(" value=1.0 " in line for line in lines if line.startswith("stream_running"))
        assert made.lines == []

    def test_datagrams(self, receiver: socket.socket) -> None:
        port = receiver.getsockname()[1]
        made = Exported(f"influxdb: {{ url: 'udp://127.0.0.1:{port}', db: d }}")
        made.exporter(InfluxExporter).export(True)
        lines = received(receiver, "stream_running")
        assert any(
            line.startswith("input_received,label=in,path=root.input count=7i ") for line in lines
        )

    def test_what_goes_wrong_is_logged_without_secrets(self) -> None:
        refusal = Reply(401, b'{"error":"authorization failed"}')
        with http_server(lambda asked: refusal) as server, raw_server(silent) as address:
            for url in (server.url, f"http://127.0.0.1:{free_port()}", f"http://{address}"):
                fields = f"url: '{url}', db: d, username: me, password: sesame, timeout: 200ms"
                made = Exported(f"influxdb: {{ {fields} }}")
                made.exporter(InfluxExporter).export(False)
                [line] = made.lines
                assert line.startswith(f"Failed to send metrics to {url}: ")
                assert "sesame" not in line and "bWU6" not in line
                if url == server.url:
                    assert line.endswith('status 401: {"error":"authorization failed"}')

    @pytest.mark.parametrize(
        ("fields", "problem"),
        [
            ("url: 'ftp://x', db: d", "url"),
            ("url: 'http://x', db: d, include: { runtime: 1m }", "there is no Go runtime here"),
        ],
    )
    def test_what_is_wrong_is_found_beforehand(self, fields: str, problem: str) -> None:
        with pytest.raises(ConfigError, match=problem):
            Exported(f"influxdb: {{ {fields} }}")


@contextmanager
def collectors(taken: list[Any]) -> Iterator[tuple[str, Server]]:
    """Run a collector over HTTP and one over gRPC; what they get is added."""
    import grpc
    from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as service
    from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2_grpc as stubs

    def answers(asked: Asked) -> Reply:
        packed = asked.headers.get("content-encoding") == "gzip"
        body = gzip.decompress(asked.body) if packed else asked.body
        taken.append(service.ExportMetricsServiceRequest.FromString(body))
        return Reply()

    class Service(stubs.MetricsServiceServicer):
        def Export(self, request: Any, context: Any) -> Any:
            taken.append(request)
            return service.ExportMetricsServiceResponse()

    server = grpc.server(ThreadPoolExecutor(2))
    add: Any = stubs.add_MetricsServiceServicer_to_server
    add(Service(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        with http_server(answers) as http:
            address = http.url.removeprefix("http://")
            yield f"http: [{{ url: '{address}' }}], grpc: [{{ address: '127.0.0.1:{port}' }}]", http
    finally:
        server.stop(1).wait()


class TestOpenTelemetry:
    def test_metrics_are_sent_over_http_and_grpc(self) -> None:
        taken: list[Any] = []
        with collectors(taken) as (where, http):
            made = Exported(
                f"open_telemetry_collector: {{ service: cars, tags: {{ zone: eu }}, {where} }}"
            )
            with export_metrics(made.view.config.metrics, lambda: {"": made.view}, made.log):
                pass
        assert [asked.path for asked in http.asked] == ["/v1/metrics"] and made.lines == []
        assert len(taken) == 2
        for request in taken:
            [resource] = request.resource_metrics
            about = {one.key: one.value.string_value for one in resource.resource.attributes}
            assert about["service.name"] == "cars" and about["zone"] == "eu"
            by_name = {metric.name: metric for metric in resource.scope_metrics[0].metrics}
            [point] = by_name["input_received"].sum.data_points
            assert point.as_int == 7 and by_name["input_received"].sum.is_monotonic
            assert {one.key: one.value.string_value for one in point.attributes} == {
                "label": "in",
                "path": "root.input",
            }
            assert by_name["stream_running"].gauge.data_points[0].as_int == 1
            [times] = by_name["processor_latency_ns"].histogram.data_points
            assert (times.count, times.sum, sum(times.bucket_counts)) == (3, 9_000_000, 3)
            assert not times.HasField("min")

    def test_a_histogram_in_seconds(self) -> None:
        sample = Sample.create("batch_duration_seconds", {}, TIMES)
        [metric] = make_metrics([sample], 1, 2)
        [point] = metric.data.data_points
        assert point.sum == pytest.approx(0.009) and point.explicit_bounds[-1] < 100_000
        assert (
            sum(point.bucket_counts) == 3
            and len(point.bucket_counts) == len(point.explicit_bounds) + 1
        )

    def test_a_collector_that_takes_nothing_is_logged_once_and_holds_nobody(self) -> None:
        with http_server(lambda asked: Reply(400)) as server:
            address = server.url.removeprefix("http://")
            made = Exported(f"open_telemetry_collector: {{ http: [{{ address: '{address}' }}] }}")
            exporter = made.exporter(OtlpExporter)
            exporter.export(True)
            exporter.export(True)
        assert made.lines == [f"Failed to send metrics to the collector {server.url}/v1/metrics"]


def test_a_later_state_is_sent_as_the_difference(receiver: socket.socket) -> None:
    made = Exported(f"statsd: {{ address: '127.0.0.1:{receiver.getsockname()[1]}' }}")
    exporter = made.exporter(StatsdExporter)
    exporter.export(False)
    received(receiver, "stream_running")
    made.state = replace(STATE, snapshot=Snapshot(12))
    exporter.export(False)
    lines = received(receiver, "stream_running")
    assert [line for line in lines if line.startswith("input_received")] == ["input_received:5|c"]
