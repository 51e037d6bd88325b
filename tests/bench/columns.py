"""Fields of JSON lines read as columns against messages parsed one by one, without Spark.

Both ways take turns on the same files, in CPU time of this process, and what comes out is compared.
The last case is of lines that have no common shape: there the attempt is given up, and may cost
next to nothing.
"""

from __future__ import annotations

import gc
import random
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import orjson

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.core.json.columns.column_reader import ColumnMode
from streamer.engine.planner.planner_channels import MicroBatchOffset
from streamer.engine.report.result_frame import FrameKind, split_parts
from streamer.engine.stage.pack_stage import PackStage, make_clock_rows
from streamer.engine.stage.shard_stage import ShardStage
from streamer.engine.stage.stateless_stage import StatelessStage
from streamer.engine.stage.task_input import SourcePiece, TaskPlan
from streamer.plan import make_plan
from streamer.sdk.input.replayable import Limit
from streamer.window import DictStore
from tests.bench import jobs, report, traffic
from tests.bench.windows import jobs as windows

ROUNDS = 5
FILTER = """
pipeline:
  processors:
    - mapping: 'root = if this.passengers < 3 { deleted() }'
output: {drop: {}}
"""
_ORIGIN = 1_767_225_600
_PACE = 20_000

Run = Callable[[ColumnMode], tuple[float, Any]]


def columns(work: Path, events: int) -> None:
    """Print CPU seconds per million events of both ways, and their ratio.

    Raises:
        RuntimeError: the two ways give different answers.
    """
    gc.set_threshold(200_000, 50, 100)  # as the workers do
    report.heading("columns: fields read as columns, and messages parsed one by one; no Spark")
    files = work / "columns"
    traffic.write(files, events, 1, _ORIGIN, _PACE)
    lights = windows.lights("tumbling_window")
    text = windows.from_files(files / "*.jsonl", lights, windows.LIGHT, work / "out", "local[2]")
    _compare("windows of each light, stage 1", events, lambda mode: _pack(text, mode), most=0.65)
    text = jobs.FILES.format(files=files / "*.jsonl") + FILTER
    _compare("filter by a field", events, lambda mode: _filter(text, mode), most=1 / 1.5)
    shutil.rmtree(files)
    files.mkdir()
    (files / "mixed.jsonl").write_bytes(_mixed_lines(events // 2))
    text = windows.from_files(files / "*.jsonl", lights, windows.LIGHT, work / "out", "local[2]")
    _compare("no common shape, stage 1", events // 2, lambda mode: _pack(text, mode), most=1.03)
    shutil.rmtree(files)


def _compare(name: str, events: int, run: Run, most: float) -> None:
    ratios, times = [], {"never": [0.0], "auto": [0.0]}
    for turn in range(ROUNDS + 1):
        taken: dict[str, float] = {}
        answers = {}
        modes: tuple[ColumnMode, ...] = ("never", "auto")
        for mode in modes if turn % 2 else reversed(modes):
            taken[mode], answers[mode] = run(mode)
            times[mode].append(taken[mode])
        if answers["auto"] != answers["never"]:
            raise RuntimeError(f"{name}: columns give other answers")
        if turn:  # the first one warms up
            ratios.append(taken["auto"] / taken["never"])
    report.figure(name, median(ratios), "× the CPU of parsing", most=most)
    each = {mode: median(some[2:]) / events * 1e6 for mode, some in times.items()}
    report.note(
        f"{each['never']:.2f} s a million parsed, {each['auto']:.2f} s as columns; "
        f"ratios {min(ratios):.2f} to {max(ratios):.2f}"
    )


def _pieces(task_plan: TaskPlan) -> list[SourcePiece]:
    plan = task_plan.plan
    source = build_context(plan.resources).build(plan.input).continue_from([])
    start = source.initial_offset()
    end = source.latest_offset(start, time.time_ns(), Limit()).offset
    return [SourcePiece(source, at, one) for at, one in enumerate(source.split(start, end, 2))]


def _task_plan(text: str, mode: ColumnMode) -> TaskPlan:
    return replace(TaskPlan.of(make_plan(parse_config(text, "columns.yaml"))), column_mode=mode)


def _pack(text: str, mode: ColumnMode) -> tuple[float, list[bytes]]:
    """Return the CPU seconds of stage 1, and the lines that come out of stage 2."""
    task_plan = _task_plan(text, mode)
    pieces, now = _pieces(task_plan), (_ORIGIN + 10**6) * 10**9
    began = time.process_time()
    stage = PackStage(task_plan)
    rows = [row for piece in pieces for row in stage.rows(piece, now)]
    took = time.process_time() - began
    offset = MicroBatchOffset({}, start_id="columns", ended=True, batch_time=now)
    rows += make_clock_rows(task_plan.plan, offset.batch_info())
    shards, frames = ShardStage(task_plan), list[Any]()
    for shard in range(task_plan.plan.shards):
        own = [row for row in rows if row.shard == shard]
        frames += shards.frames(shard, own, DictStore())
    return took, [one.body for one in split_parts(frames) if one.kind == FrameKind.DATA]


def _filter(text: str, mode: ColumnMode) -> tuple[float, list[bytes]]:
    """Return the CPU seconds of the stage, and the counts of what passed it."""
    task_plan = _task_plan(text, mode)
    pieces = _pieces(task_plan)
    began = time.process_time()
    stage = StatelessStage(task_plan)
    frames = [frame for piece in pieces for frame in stage.frames(piece)]
    took = time.process_time() - began
    return took, [frame.body for frame in frames if frame.kind == FrameKind.DATA]


def _mixed_lines(count: int) -> bytes:
    """Return events whose fields stand in any order, some of them left out."""
    rng = random.Random(1)
    lines = []
    for line in b"".join(traffic.chunks(count, _ORIGIN, _PACE)).splitlines():
        event = orjson.loads(line)
        event |= {f"extra_{rng.randrange(40)}": rng.randrange(9) for _ in range(rng.randrange(4))}
        pairs = list(event.items())
        rng.shuffle(pairs)
        lines.append(orjson.dumps(dict(pairs)))
    return b"\n".join([*lines, b""])
