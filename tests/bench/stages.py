"""Both stages in this process, without Spark, as they are on so many workers.

What one machine cannot run is taken in part: of a micro-batch for 128 workers the first pieces,
each as large as a worker gets it, into as many shards as there would be. So CPU and bytes of an
event are those of the product's own code. What Spark, the driver and a network add is not in it.
"""

from __future__ import annotations

import gc
import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.engine.planner.planner_channels import MicroBatchOffset
from streamer.engine.report.result_frame import Frame, FrameKind, split_parts
from streamer.engine.stage.pack_stage import PackStage, make_clock_rows
from streamer.engine.stage.shard_stage import ShardStage
from streamer.engine.stage.task_input import SourcePiece, TaskPlan
from streamer.plan import make_plan
from streamer.sdk.input.replayable import Limit
from streamer.window import DictStore, ShuffleRow
from tests.bench import jobs, report, traffic

AHEAD = 7 * 24 * 3600
"""Seconds by which events are ahead of the clock, so that windows close at the end."""

PIECES = 4
"""How many workers' pieces are read at most."""


@dataclass(frozen=True)
class Staged:
    """What a part of a micro-batch took.

    Attributes:
        events: in that part.
        first: CPU seconds of stage 1 for a million events.
        second: the same of stage 2, the windows' release included.
        shuffled: bytes of an event in what goes through the shuffle.
        out: what came out, a line for each window and light.
    """

    events: int
    first: float
    second: float
    shuffled: float
    out: list[bytes]


def stages(work: Path, workers: Sequence[int], pace: float) -> None:
    """Print CPU and bytes of an event by the number of workers, folded and whole."""
    report.heading("stages: the main job's stages by the number of workers, without Spark")
    share = Limit().share_of(1).messages
    origin = time.time() // 10 * 10 + AHEAD
    traffic.write(work / "files", share * PIECES, PIECES, origin, pace)
    gc.set_threshold(200_000, 50, 100)  # as the workers do
    staged(work / "files" / "*.jsonl", 1, share // 10)  # what is done once is not measured
    for whole in (False, True):
        kept = "whole" if whole else "folded"
        for count in workers:
            found = staged(work / "files" / "*.jsonl", count, share, whole=whole)
            name = f"{kept}, {count} workers"
            report.figure(f"{name}: CPU for a million", found.first + found.second, "s")
            report.figure(f"{name}: shuffled", found.shuffled, "B/event", most=30)
            report.note(f"stage 1 {found.first:.2f} s, stage 2 {found.second:.2f} s")
    shutil.rmtree(work / "files")


def staged(files: Path, workers: int, share: int, *, whole: bool = False) -> Staged:
    """Run both stages over the first pieces of a micro-batch.

    Args:
        files: the pattern of the workload's files.
        workers: as many shards there are.
        share: events of a piece, of which each worker has one.
        whole: whether windows keep whole messages.
    """
    text = jobs.windowed(files, files.parent / "out", "10s", master="local[2]", whole=whole)
    plan = make_plan(parse_config(text + f"  shards: {workers}\n", "stages.yaml"))
    task_plan = TaskPlan.of(plan)
    source = build_context(plan.resources).build(plan.input).continue_from([])
    pieces = min(workers, PIECES)
    start, now = source.initial_offset(), time.time_ns()
    end = source.latest_offset(start, now, Limit(share * pieces))
    began = time.process_time()
    rows: list[ShuffleRow] = []
    pack_stage = PackStage(task_plan)
    for number, piece in enumerate(source.split(start, end.offset, pieces)):
        rows += pack_stage.rows(SourcePiece(source, number, piece), now)
    packed = time.process_time() - began
    offset = MicroBatchOffset({}, start_id="stages", ended=True, batch_time=now)
    rows += make_clock_rows(plan, offset.batch_info())
    shards: list[list[ShuffleRow]] = [[] for _ in range(workers)]
    for row in rows:
        shards[row.shard].append(row)
    began = time.process_time()
    frames: list[Frame] = []
    shard_stage = ShardStage(task_plan)
    for shard, some in enumerate(shards):
        frames += shard_stage.frames(shard, some, DictStore())
    released = time.process_time() - began
    data = [frame.body for frame in split_parts(frames) if frame.kind == FrameKind.DATA]
    statuses = [json.loads(frame.body) for frame in frames if frame.kind == FrameKind.STATUS]
    out = [line for body in data for line in body.splitlines()]
    events = sum(status["counters"]["taken"] for status in statuses)
    size = sum(len(row.body) for row in rows)
    each = 1e6 / events
    return Staged(events, packed * each, released * each, size / events, out)
