"""Metrics and traces that a plugin exports."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from streamer.config import parse_config
from streamer.engine.report.spans import BatchTrace, Span, TaskSpan
from streamer.service.monitoring.metrics_export import export_metrics
from streamer.service.monitoring.stream_view import StreamView
from streamer.service.monitoring.tracing import make_tracer
from tests.plugin_site import installed, write_package
from tests.service.monitoring.test_metrics_push import STATE

EXPORTERS = """
from types import SimpleNamespace

from streamer.sdk.spec import Access, Field, Kind, Spec

EXPORTED = []


class Exporter:
    interval = 3_600_000_000_000

    def __init__(self, fails):
        self.fails = fails

    def export(self, *given):
        if self.fails:
            raise ConnectionError("nobody there")
        EXPORTED.append(given)

    def flush(self):
        EXPORTED.append("flushed")


def make(kind):
    fields = (Field("fails", "bool", "Whether it fails.", default=False),)
    return SimpleNamespace(
        API_VERSION="1.0",
        SPEC=Spec(kind, "recorder", "Records.", fields=fields, access=Access.NONE),
        build=lambda parsed, context: Exporter(parsed["fails"]),
    )


metrics, tracer = make(Kind.METRICS), make(Kind.TRACER)
"""
POINTS = {"metrics.recorder": "exporters:metrics", "tracer.recorder": "exporters:tracer"}


@pytest.fixture(autouse=True)
def exported(tmp_path: Path) -> Iterator[list[Any]]:
    write_package(tmp_path / "site", "streamer-recorder", {"exporters": EXPORTERS}, POINTS)
    with installed(tmp_path / "site"):
        yield import_module("exporters").EXPORTED


def export_once(fails: bool) -> list[str]:
    view = StreamView(parse_config(f"metrics: {{ recorder: {{ fails: {str(fails).lower()} }} }}"))
    view.set_running(lambda: STATE)
    lines: list[str] = []
    with export_metrics(
        view.config.metrics, lambda: {"cars": view}, lambda level, text, fields: lines.append(text)
    ):
        pass
    return lines


def test_metrics_are_given_by_name_kind_and_labels(exported: list[Any]) -> None:
    assert export_once(fails=False) == []
    samples, is_last = exported[-1]
    assert is_last
    by_name = {(one.name, one.labels.get("quantile")): one for one in samples}
    received = by_name["input_received", None]
    assert (received.kind, received.value) == ("counter", 7)
    assert received.labels["stream"] == "cars"
    assert by_name["processor_latency_ns_count", None].value == 3
    assert by_name["processor_latency_ns_sum", None].value == 9_000_000


def test_metrics_that_fail_are_logged_and_stop_nothing(exported: list[Any]) -> None:
    lines = export_once(fails=True)
    assert lines == ["Failed to export metrics by recorder: ConnectionError: nobody there"]


def trace(fails: bool) -> list[str]:
    config = parse_config(f"tracer: {{ recorder: {{ fails: {str(fails).lower()} }} }}")
    lines: list[str] = []
    tracer = make_tracer(config.tracer, "cars", lambda level, text, fields: lines.append(text))
    assert tracer is not None
    inner = Span("processor", "add", "root.pipeline.processors.0", 12, 15, {"messages": 5})
    task = TaskSpan(Span("input", "src", "root.input", 11, 16, {}), [inner], [])
    output = Span("output", "dst", "root.output", 17, 18, {})
    for _ in range(2):
        tracer.trace_batch(BatchTrace(7, 10, 20, [task], [output], {}))
    tracer.flush()
    return lines


def test_a_trace_has_its_spans_with_their_parents(exported: list[Any]) -> None:
    assert trace(fails=False) == []
    *_, (spans,), last = exported
    assert last == "flushed"
    assert [(one.name, one.parent, one.began, one.ended) for one in spans] == [
        ("micro_batch", -1, 10, 20),
        ("input", 0, 11, 16),
        ("processor", 1, 12, 15),
        ("output", 0, 17, 18),
    ]
    assert spans[0].attributes == {"stream": "cars", "micro_batch": 7}
    assert (spans[2].label, spans[2].attributes) == ("add", {"messages": 5})


def test_traces_that_fail_are_logged_once(exported: list[Any]) -> None:
    assert trace(fails=True) == [
        "Failed to export traces by recorder: ConnectionError: nobody there"
    ]
