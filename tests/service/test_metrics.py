"""The figures of a stream as metrics: for Prometheus, as JSON, in the log, in a file."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from streamer.cli.exporting import exported
from streamer.config import parse_config
from streamer.engine.snapshot import Snapshot
from streamer.service.exposition import by_name, exposition
from streamer.service.view import Now, StreamView

WINDOW = "input: { label: in, stdin: {} }\nbuffer: { system_window: { size: 10s } }\n"
NOW = Now(
    Snapshot(7, 2, 5, 1_500_000_000, {"late": 1, "expired": 0}, False, 4),
    {("input_received", ()): 7, ("output_dropped", (("reason", "path"),)): 3},
)


def view(text: str) -> StreamView:
    made = StreamView(parse_config(text, env={}))
    made.running(lambda: NOW)
    return made


def served(text: str) -> str:
    serve = exposition(view(text))
    assert serve is not None
    return serve()[0].decode()


def test_prometheus_is_the_default_and_names_are_benthoss() -> None:
    lines = [line for line in served(WINDOW).splitlines() if not line.startswith("#")]
    assert lines == [
        'input_received{label="in",path="root.input"} 7.0',
        'messages_dropped{reason="expired"} 0.0',
        'messages_dropped{reason="late"} 1.0',
        'output_dropped{reason="path"} 3.0',
        "open_windows 2.0",
        "open_window_messages 5.0",
        "next_window_close_timestamp_seconds 1.5",
        "micro_batch 4.0",
        "stream_running 1.0",
    ]


def test_json_has_metrics_by_name_and_labels() -> None:
    found = json.loads(served(WINDOW + "metrics: { json_api: {} }"))
    assert found['input_received{label="in",path="root.input"}'] == 7
    assert found["micro_batch"] == 4


@pytest.mark.parametrize("metrics", ["none: {}", "logger: {}"])
def test_metrics_that_are_not_served_have_no_endpoint(metrics: str) -> None:
    assert exposition(view(f"metrics: {{ {metrics} }}")) is None


def test_a_mapping_renames_labels_and_drops_metrics() -> None:
    mapping = (
        "metrics:\n  json_api: {}\n  mapping: |\n"
        '    root = if this.has_prefix("open_") { deleted() } else { "my_" + this }\n'
        '    meta label = deleted()\n    meta team = "blue"\n'
    )
    found = by_name(view(WINDOW + mapping))
    assert found['my_input_received{path="root.input",team="blue"}'] == 7
    assert not [name for name in found if "open" in name]


def test_a_metric_on_which_the_mapping_fails_keeps_its_name() -> None:
    mapping = 'metrics:\n  json_api: {}\n  mapping: root = throw("no")\n'
    assert by_name(view(WINDOW + mapping))["input_received"] == 7


def test_metrics_of_the_process_are_added_when_asked_for() -> None:
    text = "metrics: { prometheus: { add_process_metrics: true, add_go_metrics: true } }"
    found = served(text)
    assert "process_cpu_seconds_total" in found and "python_gc_objects" in found
    assert "process_cpu" not in served(WINDOW)


def test_metrics_are_logged_at_the_end_and_flushed_counters_begin_anew() -> None:
    lines: list[Mapping[str, Any]] = []

    def log(level: str, text: str, fields: Mapping[str, Any]) -> None:
        lines.append({"text": text, **fields})

    from streamer.service.metrics_log import MetricsLog

    with exported(view("metrics: { logger: {} }"), log):
        assert lines == []
    received = {"text": "Metric", "name": "input_received", "label": "", "path": "root.input"}
    assert {**received, "value": 7} in lines
    lines.clear()
    writer = MetricsLog(view("metrics: { logger: { flush_metrics: true } }"), log)
    writer.write(False)
    writer.write(True)
    assert [line["value"] for line in lines if line["name"] == "input_received"] == [7, 0]


def test_metrics_are_written_to_a_file_at_the_end(tmp_path: Path) -> None:
    said: list[str] = []
    path = tmp_path / "m.prom"
    text = "metrics: {{ prometheus: {{ file_output_path: {} }} }}"
    with exported(view(text.format(path)), lambda level, line, _: said.append(line)):
        assert not path.exists()
    assert 'input_received{label="",path="root.input"} 7.0' in path.read_text()
    with exported(
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
    with exported(view(text.format(port, "1h")), lambda level, line, _: said.append(line)):
        pass
    gateway.shutdown()
    gateway.server_close()
    [(path, authorization, body)] = _Gateway.seen
    assert (path, authorization) == ("/metrics/job/mine", "Basic bWU6c2VzYW1l")
    assert b"input_received" in body and said == []
    with exported(view(text.format(port, "''")), lambda level, line, _: said.append(line)):
        pass
    [line] = said
    assert line.startswith(f"Failed to push metrics to http://127.0.0.1:{port}: ")
    assert "sesame" not in line
