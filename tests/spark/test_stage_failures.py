"""What a stage says of a failure on its way through Spark, which passes on a text with traces.

Stages are called as Spark's workers call them, without a JVM.
"""

from __future__ import annotations

import json
import pickle
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Row

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.core.durations import SECOND
from streamer.engine.report.component_errors import ComponentFailure
from streamer.engine.report.result_frame import FrameKind
from streamer.plan import Plan, make_plan
from streamer.sdk.input.replayable import Limit
from streamer.spark.tasks.stages import ShardProcessor, make_direct_stage, make_pack_stage

T = 1_700_000_000 * SECOND
TEXT = """
input: {{ label: src, file: {{ paths: [ {path} ] }} }}
pipeline: {{ processors: [ {{ label: add, mapping: root = this }} ] }}
output: {{ label: dst, stdout: {{}} }}
tracer: {{ open_telemetry_collector: {{ http: [] }} }}
{more}
"""
WINDOW = "buffer: { system_window: { size: 10s } }\nspark: { shards: 1 }"


def made(directory: Path, more: str = "") -> tuple[Plan, Any, list[pa.RecordBatch]]:
    """Return a plan, its opened input, and what Spark's source gives of it."""
    path = directory / "in"
    path.write_text('{"n": 1}\n{"n": 2}\n')
    plan = make_plan(parse_config(TEXT.format(path=path, more=more)))
    source: Any = build_context(plan.resources).build(plan.input)
    source = source.continue_from([])
    start = source.initial_offset()
    end = source.latest_offset(start, T, Limit()).offset
    offset = json.dumps({"data": end, "start": "a", "ended": False, "tick": 0, "time": T})
    pieces = source.split(start, end, 1)
    rows = [
        {"number": number, "piece": pickle.dumps(piece), "offset": offset}
        for number, piece in enumerate(pieces)
    ]
    return plan, source, [pa.RecordBatch.from_pylist(rows)]


def broken(*_: object) -> Iterator[Any]:
    raise ValueError("it is\nbroken")
    yield


def blamed(work: Any) -> ComponentFailure | None:
    with pytest.raises(Exception) as raised:
        list(work())
    return ComponentFailure.from_error_text("".join(traceback.format_exception(raised.value)))


def test_an_input_is_blamed_through_the_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for more, stage in (("", make_direct_stage), (WINDOW, make_pack_stage)):
        plan, source, batches = made(tmp_path, more)
        with monkeypatch.context() as patch:
            patch.setattr(type(source), "read", broken)
            found = blamed(lambda: stage(plan, source)(batches))  # noqa: B023
        assert found == ComponentFailure("ValueError: it is broken", "src", "root.input")


def test_windows_and_outputs_are_blamed_through_the_shard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, source, batches = made(tmp_path, WINDOW)
    packed = [row for batch in make_pack_stage(plan, source)(batches) for row in batch.to_pylist()]
    rows = [Row(**row) for row in packed]

    def work() -> Iterator[Any]:
        shard = ShardProcessor(plan)
        shard._packs = State()
        return shard.handleInputRows((rows[0].shard,), iter(rows), None)

    kinds = {row.kind for row in work()}
    assert {FrameKind.STATUS, FrameKind.COUNT, FrameKind.SPAN} <= kinds
    for module, place in (
        ("streamer.window.panes.grid_step.SystemStep._take_messages", "root.buffer"),
        ("streamer.engine.stage.window_pipeline.WindowPipeline.payloads", "root.output"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, broken)
            found = blamed(work)
        assert found is not None
        assert (found.text, found.path) == ("ValueError: it is broken", place)


class State:
    """Spark's map state, in a dict."""

    def __init__(self) -> None:
        self._found: dict[Any, Any] = {}

    def getValue(self, key: Any) -> Any:
        return self._found.get(key)

    def updateValue(self, key: Any, value: Any) -> None:
        self._found[key] = value

    def removeKey(self, key: Any) -> None:
        self._found.pop(key, None)


def test_a_task_says_what_it_did_when_somebody_traces(tmp_path: Path) -> None:
    plan, source, batches = made(tmp_path)
    frames = [
        row for batch in make_direct_stage(plan, source)(batches) for row in batch.to_pylist()
    ]
    [span] = [json.loads(row["body"]) for row in frames if row["kind"] == FrameKind.SPAN]
    assert span[0][:3] == ["input", "src", "root.input"]
    assert [one[:3] for one in span[1]] == [["processor", "add", "root.pipeline.processors.0"]]
    assert span[1][0][5]["messages"] == 2
