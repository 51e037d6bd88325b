"""`/ready`: which of the ends of a stream is connected."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.config import parse_config
from streamer.engine.report.stream_metrics import Snapshot
from streamer.service.monitoring.metric_samples import collect_samples
from streamer.service.monitoring.readiness import check_readiness
from streamer.service.monitoring.stream_view import StreamState, StreamView

TEXT = """
input:
  label: all
  broker:
    inputs:
      - { label: a, generate: { mapping: root = 1 } }
      - resource: shared
output:
  switch:
    cases:
      - { check: 'this.x == 1', output: { label: one, drop: {} } }
      - output: { broker: { outputs: [ { drop: {} }, { label: two, file: { path: x } } ] } }
buffer: { system_window: { size: 1s, late_output: late } }
input_resources: [ { label: shared, generate: { mapping: root = 2 } } ]
output_resources: [ { label: late, drop: {} } ]
"""
CASE = "output.switch.cases.1.output"
ENDS = [
    ("a", "input.broker.inputs.0"),
    ("shared", "input_resources.0"),
    ("one", "output.switch.cases.0.output"),
    ("", f"{CASE}.broker.outputs.0"),
    ("two", f"{CASE}.broker.outputs.1"),
    ("late", "output_resources.0"),
]


def asked(now: StreamState) -> tuple[bool, list[dict[str, Any]]]:
    view = StreamView(parse_config(TEXT, env={}))
    view.set_running(lambda: now)
    ready, body = check_readiness(view)
    return ready, body["statuses"]


def test_every_end_that_messages_come_from_or_go_to_has_a_status() -> None:
    ready, statuses = asked(StreamState(Snapshot(batch=1), {}))
    assert ready
    assert statuses == [{"label": label, "path": path, "connected": True} for label, path in ENDS]


@pytest.mark.parametrize(
    ("path", "down"),
    [
        (f"root.{CASE}.broker.outputs.1", {"two"}),
        (f"root.{CASE}", {"", "two"}),
        ("root.input", {"a"}),
        ("root.output", {"one", "", "two"}),
        ("root.output_resources.0", {"late"}),
        # Where a message does not get on, none flows.
        ("root.pipeline.processors.0", {label for label, _ in ENDS}),
        ("", {label for label, _ in ENDS}),
    ],
)
def test_what_fails_is_not_connected_and_says_why(path: str, down: set[str]) -> None:
    now = StreamState(Snapshot(batch=1), {}, "no space", problem_labels={"label": "", "path": path})
    ready, statuses = asked(now)
    assert not ready
    assert {one["label"] for one in statuses if not one["connected"]} == down
    assert {one.get("error") for one in statuses if not one["connected"]} == {"no space"}
    assert not [one for one in statuses if one["connected"] and "error" in one]


def test_a_stream_that_stops_is_not_ready_though_its_ends_are_connected() -> None:
    view = StreamView(parse_config(TEXT, env={}))
    view.set_running(lambda: StreamState(Snapshot(batch=1), {}))
    view.unready_reason = lambda: "the stream is stopping"
    ready, body = check_readiness(view)
    assert not ready and body["error"] == "the stream is stopping"
    assert all(one["connected"] for one in body["statuses"])
    assert [
        sample.value for _, sample in collect_samples(view) if sample.name == "stream_ready"
    ] == [0]
    view.set_ended()
    assert check_readiness(view)[1]["error"] == "stream terminated"
