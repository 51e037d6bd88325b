"""The figures of a stream as metrics: for Prometheus, as JSON, in the log, in a file."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.exposition import generate_latest

from streamer.config import parse_config
from streamer.config.templates.installation import install_templates
from streamer.core.component_stats import bucket_of
from streamer.core.log_format import LogLine
from streamer.engine.report.latency import LatencySnapshot
from streamer.engine.report.stream_metrics import Snapshot, StreamMetrics
from streamer.service.monitoring.exposition import make_exposition, make_registry, metrics_by_name
from streamer.service.monitoring.metrics_export import export_metrics
from streamer.service.monitoring.metrics_log import MetricsLog
from streamer.service.monitoring.stream_condition import Condition
from streamer.service.monitoring.stream_view import StreamState, StreamView
from streamer.service.monitoring.text_format import render_text

WINDOW = "input: { label: in, stdin: {} }\nbuffer: { system_window: { size: 10s } }\n"
NOW = StreamState(
    Snapshot(7, 2, 5, 1_500_000_000, {"late": 1, "expired": 0}, False, 4, 80, 3, state_keys=6),
    {("input_received", ()): 7, ("output_dropped", (("reason", "path"),)): 3},
)


def view(text: str) -> StreamView:
    made = StreamView(parse_config(text, env={}))
    made.set_running(lambda: NOW)
    return made


def served(text: str) -> str:
    serve = make_exposition(view(text))
    assert serve is not None
    return serve()[0].decode()


def exporting(view: StreamView, log: LogLine) -> AbstractContextManager[None]:
    return export_metrics(view.config.metrics, lambda: {"": view}, log)


def lines_of(text: str) -> dict[str, float]:
    """Return the samples of what is served, by name and labels."""
    rows = (line.rpartition(" ") for line in served(text).splitlines() if line[0] != "#")
    return {name: float(value) for name, _, value in rows}


def test_prometheus_is_the_default_and_names_are_benthoss() -> None:
    found = {name: value for name, value in lines_of(WINDOW).items() if value > 0}
    assert [name for name in found if name.startswith("streamer_build_info")]
    found = {name: value for name, value in found.items() if "build_info" not in name}
    assert found == {
        'input_received{label="in",path="root.input"}': 7.0,
        'window_dropped{reason="late"}': 1.0,
        'output_dropped{reason="path"}': 3.0,
        "window_open": 2.0,
        "window_messages": 5.0,
        "window_closed": 3.0,
        "state_bytes": 80.0,
        "state_keys": 6.0,
        "window_next_close_timestamp_seconds": 1.5,
        "micro_batch": 4.0,
        "stream_running": 1.0,
        "stream_ready": 1.0,
        'stream_condition{condition="running"}': 1.0,
        'input_connected{label="in",path="root.input"}': 1.0,
        'output_connected{label="",path="root.output"}': 1.0,
    }


# What Benthos 4.76 serves of this config, its names and labels.
WAY = """
input: { label: src, stdin: {} }
buffer: { memory: {} }
pipeline:
  processors:
    - label: first
      mapping: root = this
    - try: [ { resource: foo }, { noop: {} } ]
output: { label: dst, stdout: {}, processors: [ { split: {} } ] }
processor_resources: [ { label: foo, mapping: root = this }, { label: unused, noop: {} } ]
"""
CONNECTION = ("connection_up", "connection_failed", "connection_lost")
MOVED = ("received", "batch_received", "sent", "batch_sent")


def test_every_component_has_its_metrics_before_anything_has_happened() -> None:
    found = metrics_by_name(view(WAY + "metrics: { json_api: {} }"))
    processor = (*MOVED, "error", "latency_ns")
    places = {
        ("src", "root.input"): ("input", ("received", "latency_ns", *CONNECTION)),
        ("", "root.buffer"): ("buffer", (*MOVED, "latency_ns")),
        ("first", "root.pipeline.processors.0"): ("processor", processor),
        ("", "root.pipeline.processors.1"): ("processor", processor),
        ("foo", "root.processor_resources.0"): ("processor", processor),
        ("", "root.output.processors.0"): ("processor", processor),
        ("dst", "root.output"): (
            "output",
            ("sent", "batch_sent", "error", "rejected", "latency_ns", *CONNECTION),
        ),
    }
    expected = {
        f'{kind}_{name}{{label="{label}",path="{path}"}}'
        for (label, path), (kind, names) in places.items()
        for name in names
    }
    others = {"micro_batch", "stream_running", "batch_failed", "batch_duration_seconds"}
    others |= {'output_dropped{reason="path"}', "stream_ready", "batch_in_hand_seconds"}
    others |= {f'stream_condition{{condition="{one}"}}' for one in Condition}
    others |= {
        "stream_failing_seconds",
        'input_connected{label="src",path="root.input"}',
        'output_connected{label="dst",path="root.output"}',
    }
    drops = {f'window_dropped{{reason="{reason}"}}' for reason in ("late", "expired")}
    assert set(found) == expected | others | drops


def timed(metrics: str) -> StreamView:
    """A stream whose only processor took 1 to 100 milliseconds."""
    meters = StreamMetrics(lambda: 0.0)
    for ms in range(1, 101):
        meters.time("processor_latency_ns", PLACE, ms * 1_000_000)
    made = StreamView(
        parse_config(f"pipeline: {{ processors: [ {{ mapping: root = 1 }} ] }}\n{metrics}")
    )
    made.set_running(lambda: StreamState(Snapshot(), {}, "", meters.times()))
    return made


PLACE = {"label": "", "path": "root.pipeline.processors.0"}


def test_times_are_summaries_in_nanoseconds() -> None:
    quantiles = "summary_quantiles_objectives: [ { quantile: 0.5 }, { quantile: 0.95 } ]"
    serve = make_exposition(timed(f"metrics: {{ prometheus: {{ {quantiles} }} }}"))
    assert serve is not None
    text = serve()[0].decode()
    assert "# TYPE processor_latency_ns summary" in text
    rows = dict(line.rsplit(" ", 1) for line in text.splitlines() if "processors.0" in line)
    labels = 'label="",path="root.pipeline.processors.0"'
    for share in (0.5, 0.95):
        row = f'processor_latency_ns{{{labels},quantile="{share}"}}'
        assert float(rows[row]) == pytest.approx(share * 100e6, rel=0.04)
    assert float(rows[f"processor_latency_ns_sum{{{labels}}}"]) == sum(range(1, 101)) * 1e6
    assert float(rows[f"processor_latency_ns_count{{{labels}}}"]) == 100


def test_times_are_histograms_in_seconds_when_asked_for() -> None:
    more = "use_histogram_timing: true, histogram_buckets: [ 0.05, 0.01, 1 ]"
    serve = make_exposition(timed(f"metrics: {{ prometheus: {{ {more} }} }}"))
    assert serve is not None
    text = serve()[0].decode()
    assert "# TYPE processor_latency_ns histogram" in text
    rows = dict(line.rsplit(" ", 1) for line in text.splitlines() if "processors.0" in line)
    found = {
        name.split('le="')[1].split('"')[0]: float(value)
        for name, value in rows.items()
        if "processor_latency_ns_bucket{" in name
    }
    assert list(found) == ["0.01", "0.05", "1", "+Inf"]
    assert found["0.01"] == pytest.approx(10, abs=1) and found["0.05"] == pytest.approx(50, abs=2)
    assert found["1"] == found["+Inf"] == 100
    total = 'processor_latency_ns_sum{label="",path="root.pipeline.processors.0"}'
    assert float(rows[total]) == pytest.approx(5.05)


def test_times_are_percentiles_in_json_and_in_the_log() -> None:
    found = metrics_by_name(timed("metrics: { json_api: {} }"))
    shown = found['processor_latency_ns{label="",path="root.pipeline.processors.0"}']
    assert isinstance(shown, dict) and list(shown) == ["p50", "p90", "p99"]
    assert shown["p90"] == pytest.approx(90e6, rel=0.04)
    lines: list[Mapping[str, Any]] = []
    MetricsLog(
        lambda: {"": timed("metrics: { logger: {} }")},
        lambda level, text, fields: lines.append(fields),
    ).write(True)
    [line] = [one for one in lines if one["name"] == "processor_latency_ns"]
    assert line["p50"] == pytest.approx(50e6, rel=0.04) and "value" not in line


TEMPLATE = """
name: loud
type: processor
fields: []
metrics_mapping: |
  root = if this == "processor_error" { deleted() } else { "loud_" + this }
  meta made_by = $label
mapping: |
  root.try = [ { "mapping": "root = content().uppercase()" }, { "resource": "foo" } ]
"""
OUTER = """
name: outer
type: processor
fields: []
metrics_mapping: '"outer_" + this'
mapping: root.loud = {}
"""
MAPPED = """
metrics: { json_api: {}, mapping: 'meta path = deleted()' }
pipeline: { processors: [ { label: a, %s: {} }, { mapping: root = this } ] }
processor_resources: [ { label: foo, mapping: root = this } ]
"""


def with_templates(directory: Path, text: str) -> dict[str, Any]:
    files = []
    for name, template in (("loud", TEMPLATE), ("outer", OUTER)):
        path = directory / f"{name}.yaml"
        path.write_text(template)
        files.append(str(path))
    with install_templates(files):
        return metrics_by_name(view(text))


def test_a_template_maps_the_metrics_of_what_it_makes_and_of_nothing_else(tmp_path: Path) -> None:
    found = with_templates(tmp_path, MAPPED % "loud")
    # `metrics.mapping` comes after it: it drops the path.
    assert 'loud_processor_sent{label="a",made_by="a"}' in found
    assert 'loud_processor_sent{label="",made_by="a"}' in found
    assert 'processor_sent{label=""}' in found
    # A resource is not the template's, though the template refers to it.
    assert 'processor_error{label="foo"}' in found
    assert not [name for name in found if name.startswith("loud_processor_error")]


def test_the_mapping_of_an_inner_template_runs_first(tmp_path: Path) -> None:
    found = with_templates(tmp_path, MAPPED % "outer")
    assert 'outer_loud_processor_sent{label="a",made_by=""}' in found
    assert 'outer_loud_processor_sent{label="",made_by=""}' in found


def test_json_has_metrics_by_name_and_labels() -> None:
    found = json.loads(served(WINDOW + "metrics: { json_api: {} }"))
    assert found['input_received{label="in",path="root.input"}'] == 7
    assert found["micro_batch"] == 4


@pytest.mark.parametrize("metrics", ["none: {}", "logger: {}"])
def test_metrics_that_are_not_served_have_no_endpoint(metrics: str) -> None:
    assert make_exposition(view(f"metrics: {{ {metrics} }}")) is None


def test_a_mapping_renames_labels_and_drops_metrics() -> None:
    mapping = (
        "metrics:\n  json_api: {}\n  mapping: |\n"
        '    root = if this.has_prefix("window_") { deleted() } else { "my_" + this }\n'
        '    meta label = deleted()\n    meta team = "blue"\n'
    )
    found = metrics_by_name(view(WINDOW + mapping))
    assert found['my_input_received{path="root.input",team="blue"}'] == 7
    assert not [name for name in found if "window" in name]


def test_a_mapping_knows_the_name_as_a_variable() -> None:
    mapping = """
metrics:
  mapping: |
    root = if !["window_open"].contains($path) { deleted() } else { "my_" + $path }
  json_api: {}
"""
    assert [name for name in json.loads(served(WINDOW + mapping)) if "window" in name] == [
        "my_window_open"
    ]


def test_a_mapping_that_computes_for_ever_holds_nobody_who_asks_for_metrics() -> None:
    mapping = (
        "metrics:\n  json_api: {}\n  mapping: |\n"
        '    root = if this == "input_received" { range(0, 9999)'
        ".fold(0, a -> a.tally + range(0, 9999).fold(0, b -> b.tally + 1)) } else { this }\n"
    )
    began = time.monotonic()
    found = metrics_by_name(view(WINDOW + mapping))
    assert time.monotonic() - began < 5
    assert "input_received" in found and len(found) > 5


@pytest.mark.parametrize(
    "mapping",
    [
        "meta run = uuid_v4()",
        "root = this + nanoid()",
        "meta at = now()",
        "meta number = counter()",
        "root = if random_int(max: 1) == 0 { deleted() }",
    ],
)
def test_a_metric_is_mapped_once(mapping: str) -> None:
    made = view(f'input: {{ stdin: {{}} }}\nmetrics: {{ mapping: "{mapping}", prometheus: {{}} }}')
    first = metrics_by_name(made)
    assert all(metrics_by_name(made).keys() == first.keys() for _ in range(3))
    assert "counter" not in mapping or len({key.split("number=")[1] for key in first}) == len(first)
    # What is there later is mapped when it is there.
    counts = {**NOW.counts, ("output_dropped", (("reason", "new"),)): 1}
    made.set_running(lambda: replace(NOW, counts=counts))
    later = metrics_by_name(made)
    assert first.keys() <= later.keys() and metrics_by_name(made).keys() == later.keys()


def test_another_config_maps_metrics_anew() -> None:
    text = 'input: {{ stdin: {{}} }}\nmetrics: {{ mapping: root = this + "{}", prometheus: {{}} }}'
    made = view(text.format("_a"))
    assert all("_a" in name for name in metrics_by_name(made))
    made.set_config(parse_config(text.format("_b"), env={}))
    assert all("_b" in name for name in metrics_by_name(made))


def test_a_metric_on_which_the_mapping_fails_keeps_its_name() -> None:
    mapping = 'metrics:\n  json_api: {}\n  mapping: root = throw("no")\n'
    assert metrics_by_name(view(WINDOW + mapping))["input_received"] == 7


def test_metrics_of_the_process_are_added_when_asked_for() -> None:
    text = "metrics: { prometheus: { add_process_metrics: true, add_go_metrics: true } }"
    found = served(text)
    assert "process_cpu_seconds_total" in found and "python_gc_objects" in found
    assert "process_cpu" not in served(WINDOW)


def test_metrics_are_logged_at_the_end_and_flushed_counters_begin_anew() -> None:
    lines: list[Mapping[str, Any]] = []

    def log(level: str, text: str, fields: Mapping[str, Any]) -> None:
        lines.append({"text": text, **fields})

    with exporting(view("metrics: { logger: {} }"), log):
        assert lines == []
    received = {"text": "Metric", "name": "input_received", "label": "", "path": "root.input"}
    assert {**received, "value": 7} in lines
    lines.clear()
    shown = view("metrics: { logger: {} }")
    writer = MetricsLog(lambda: {"": shown}, log, resets_counters=True)
    writer.write(False)
    writer.write(True)
    assert [line["value"] for line in lines if line["name"] == "input_received"] == [7, 0]


def test_metrics_are_written_to_a_file_at_the_end(tmp_path: Path) -> None:
    said: list[str] = []
    path = tmp_path / "m.prom"
    text = "metrics: {{ prometheus: {{ file_output_path: {} }} }}"
    with exporting(view(text.format(path)), lambda level, line, _: said.append(line)):
        assert not path.exists()
    assert 'input_received{label="",path="root.input"} 7.0' in path.read_text()
    with exporting(
        view(text.format(tmp_path / "no" / "m")), lambda level, line, _: said.append(line)
    ):
        pass
    [line] = said
    assert line.startswith(f"Failed to write metrics to {tmp_path}/no/m: ")


class _Gateway(BaseHTTPRequestHandler):
    seen: list[tuple[str, str, bytes]] = []

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((self.path, self.headers.get("Authorization", ""), body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


def test_metrics_are_pushed_to_a_gateway() -> None:
    said: list[str] = []
    gateway = HTTPServer(("127.0.0.1", 0), _Gateway)
    threading.Thread(target=gateway.serve_forever, daemon=True).start()
    text = (
        "metrics: {{ prometheus: {{ push_url: 'http://127.0.0.1:{}', push_interval: {}, "
        "push_job_name: mine, push_basic_auth: {{ username: me, password: sesame }} }} }}"
    )
    port = gateway.server_port
    with exporting(view(text.format(port, "1h")), lambda level, line, _: said.append(line)):
        pass
    gateway.shutdown()
    gateway.server_close()
    [(path, authorization, body)] = _Gateway.seen
    assert (path, authorization) == ("/metrics/job/mine", "Basic bWU6c2VzYW1l")
    assert b"input_received" in body and said == []
    with exporting(view(text.format(port, "''")), lambda level, line, _: said.append(line)):
        pass
    [line] = said
    assert line.startswith(f"Failed to push metrics to http://127.0.0.1:{port}: ")
    assert "sesame" not in line


def test_metrics_of_many_streams_are_logged_and_written_with_their_ids(tmp_path: Path) -> None:
    lines: list[Mapping[str, Any]] = []
    path = tmp_path / "all.prom"
    text = f"metrics: {{ prometheus: {{ file_output_path: {path} }} }}"
    views = {name: view(WINDOW) for name in ("cars", "carts")}
    logged = parse_config("metrics: { logger: {} }", env={}).metrics
    with export_metrics(logged, lambda: views, lambda level, text, fields: lines.append(fields)):
        pass
    received = [one for one in lines if one["name"] == "input_received"]
    assert [(one["stream"], one["value"]) for one in received] == [("cars", 7), ("carts", 7)]
    with export_metrics(parse_config(text, env={}).metrics, lambda: views, lambda *line: None):
        pass
    assert 'window_open{stream="carts"} 2.0' in path.read_text()


@pytest.mark.parametrize("histograms", ["true", "false"])
def test_the_text_is_what_prometheuss_client_writes(histograms: str) -> None:
    mapping = r"""
metrics:
  prometheus: { use_histogram_timing: %s, add_process_metrics: true }
  mapping: |
    meta "odd é" = "a\"b\\c\nd"
    meta "z" = this
    root = this.replace_all(old: "input", new: "in put")
"""
    key = "processor_latency_ns", (("label", "a"), ("path", "root.x"))
    made = view(WINDOW + mapping % histograms)
    made.set_running(lambda: replace(NOW, times={key: _times()}))
    registry = make_registry(made.config.metrics, lambda: {"a": made, "b": made})
    ours = render_text(registry).decode()
    # The process goes on between the two.
    assert _streams(ours) == _streams(generate_latest(registry).decode())
    assert "odd__" in ours and 'stream="b"' in ours and "process_cpu_seconds_total" in ours
    assert ('quantile="' in ours) == (histograms == "false")


def _times() -> LatencySnapshot:
    return LatencySnapshot(3, 7_000_000, {bucket_of(2_000_000): 1, bucket_of(2_500_000): 2}, {})


def _streams(text: str) -> list[str]:
    return [line for line in text.splitlines() if "process_" not in line]
