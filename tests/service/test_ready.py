"""`/ready`: which of the ends of a stream is connected."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.config import parse_config
from streamer.engine.snapshot import Snapshot
from streamer.service.ready import readiness
from streamer.service.samples import samples
from streamer.service.view import Now, StreamView

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


def asked(now: Now) -> tuple[bool, list[dict[str, Any]]]:
    view = StreamView(parse_config(TEXT, env={}))
    view.running(lambda: now)
    ready, body = readiness(view)
    return ready, body["statuses"]


def test_every_end_that_messages_come_from_or_go_to_has_a_status() -> None:
    ready, statuses = asked(Now(Snapshot(batch=1), {}))
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
    now = Now(Snapshot(batch=1), {}, "no space", place={"label": "", "path": path})
    ready, statuses = asked(now)
    assert not ready
    assert {one["label"] for one in statuses if not one["connected"]} == down
    assert {one.get("error") for one in statuses if not one["connected"]} == {"no space"}
    assert not [one for one in statuses if one["connected"] and "error" in one]


def test_a_stream_that_stops_is_not_ready_though_its_ends_are_connected() -> None:
    view = StreamView(parse_config(TEXT, env={}))
    view.running(lambda: Now(Snapshot(batch=1), {}))
    view.unready_reason = lambda: "the stream is stopping"
    ready, body = readiness(view)
    assert not ready and body["error"] == "the stream is stopping"
    assert all(one["connected"] for one in body["statuses"])
    assert [sample.value for _, sample in samples(view) if sample.name == "stream_ready"] == [0]
    view.ended()
    assert readiness(view)[1]["error"] == "stream terminated"
