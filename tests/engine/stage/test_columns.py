"""Windows with fields read as columns and without: what comes out is the same, to the last byte.

`STREAMER_COLUMN_DOCUMENTS=1000000` in the environment compares so many documents.
"""

from __future__ import annotations

import os
import random
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from streamer.bloblang import compile_mapping
from streamer.bloblang.analysis.line_filters import find_line_filter
from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.core.durations import SECOND
from streamer.core.execution import Execution
from streamer.core.json.columns.column_reader import ColumnMode, ColumnReader
from streamer.core.json.columns.line_block import LineRange
from streamer.engine.planner.planner_channels import MicroBatchOffset
from streamer.engine.report.result_frame import FrameKind, split_parts
from streamer.engine.stage.pack_stage import make_clock_rows, make_packer
from streamer.engine.stage.selected_lines import run_chunks
from streamer.engine.stage.shard_stage import ShardStage
from streamer.engine.stage.task_input import TaskPlan
from streamer.plan import make_plan
from streamer.sdk.input.replayable import Chunk, LineMessages, RawMessages
from streamer.window import DictStore, Packer, ShuffleRow
from streamer.window.evaluate.message_slots import PieceOrigin
from tests.engine.stage.json_documents import make_document, make_documents

NOW = 1_767_225_660 * SECOND
DOCUMENTS = int(os.environ.get("STREAMER_COLUMN_DOCUMENTS", "18000"))
MODES: tuple[ColumnMode, ...] = ("always", "auto")
SEEN = (FrameKind.DATA, FrameKind.LOG, FrameKind.STATUS)
MAPPING = """
    - mapping: |
        root = if batch_index() == 0 {
          {
            "light": this.light,
            "count": batch_size(),
            "plates": json("plate").from_all().unique().length(),
            "which": json("plate").from_all().unique(),
            "passengers": json("passengers").from_all().sum(),
            "least": json("passengers").from_all().min(),
            "speed": json("speed").from_all().avg(),
            "fastest": json("speed").from_all().max(),
            "mass": json("car.mass").from_all().sum(),
            "median": json("speed").from_all().median(),
            "about": json("plate").from_all().approx_count_distinct(),
          }
        } else { deleted() }
"""
KEYED = """
buffer:
  tumbling_window:
    timestamp_mapping: root = this.at
    key_mapping: root = this.light
    size: 10s
    max_ahead: 1m
"""
GROUPED = """
buffer:
  system_window:
    timestamp_mapping: root = this.at
    size: 10s
    slide: 5s
"""
BY_LIGHT = """
    - group_by_value:
        value: '${! json("light") }'
"""
PIPELINE = "\npipeline:\n  processors:"
CONFIGS = {
    "keyed": KEYED + PIPELINE + MAPPING,
    "grouped": GROUPED + PIPELINE + BY_LIGHT + MAPPING,
    "all": GROUPED + PIPELINE + MAPPING,
    "count": KEYED + PIPELINE + '\n    - mapping: root.n = json("plate").from_all().length()',
    "kept whole": KEYED + PIPELINE + "\n    - mapping: root = this",
    "late": KEYED + "    late_output: rest\noutput_resources:\n  - label: rest\n    drop: {}\n",
}


class Outcome(NamedTuple):
    """All that is seen of a stream whose input has ended."""

    log: list[tuple[str, str, Any]]
    frames: list[tuple[int, bytes]]


def pack(
    task_plan: TaskPlan, lines: list[bytes] | LineRange, log: list[tuple[str, str, Any]]
) -> tuple[Packer, list[ShuffleRow]]:
    packer = make_packer(task_plan, PieceOrigin(5, b"p"))
    execution = Execution(lambda: NOW, lambda *line: log.append(line))
    for start in range(0, len(lines), 5000):
        packer.add_raws(lines[start : start + 5000], {"from": "x"}, 5 + start, NOW, execution)
    return packer, list(packer.flush_rows())


def task_plan_of(config: str, mode: ColumnMode) -> TaskPlan:
    return replace(TaskPlan.of(make_plan(parse_config(config, env={}))), column_mode=mode)


def run(config: str, lines: list[bytes] | LineRange, mode: ColumnMode) -> Outcome:
    """Take lines through both stages, and end the input."""
    log: list[tuple[str, str, Any]] = []
    task_plan = task_plan_of(config, mode)
    plan = task_plan.plan
    _, rows = pack(task_plan, lines, log)
    offset = MicroBatchOffset({}, start_id="columns", ended=True, batch_time=NOW)
    rows += make_clock_rows(plan, offset.batch_info())
    stage = ShardStage(task_plan)
    frames: list[Any] = []
    for shard in range(plan.shards):
        own = [row for row in rows if row.shard == shard]
        frames += stage.frames(shard, own, DictStore())
    seen = [(one.kind, one.body) for one in split_parts(frames) if one.kind in SEEN]
    # The lines of one reason are in order; those of several are sorted by chunks of messages.
    log.sort(key=lambda line: str(line[2].get("reason")))
    return Outcome(log, seen)


@pytest.mark.parametrize("name", CONFIGS)
def test_answers_and_log_are_the_same_both_ways(name: str) -> None:
    rng = random.Random(DOCUMENTS + len(name))
    done = turn = 0
    while done < DOCUMENTS // len(CONFIGS):
        share = (0.002, 0.02, 0.2)[turn % 3]
        lines = make_documents(rng, 1000 if DOCUMENTS < 100_000 else 9000, share)
        lines[-1] = lines[0]  # behind the last newline there is no line
        block = LineRange.of_data(b"\n".join(lines))
        assert block is not None
        expected = run(CONFIGS[name], lines, "never")
        assert len(expected.frames) > 2
        given: list[bytes] | LineRange = (lines, block)[turn % 2]
        for mode in MODES:
            assert run(CONFIGS[name], given, mode) == expected, (name, share, mode)
        done, turn = done + len(lines), turn + 1


def test_most_lines_are_read_as_columns_although_some_are_not_of_a_shape() -> None:
    rng = random.Random(3)
    lines = make_documents(rng, 4096, 0.01)
    reader = ColumnReader([("light",), ("car", "mass")])
    block = LineRange.of_lines(lines)
    assert block is not None
    columns = reader.read(block)
    assert columns is not None
    assert 0.98 * 4096 < len(columns.lines) < 4096


def test_lines_of_several_shapes_are_read_in_their_order() -> None:
    rng = random.Random(4)
    lines = [make_document(rng, 1) for _ in range(600)]
    lines[1::2] = [line.replace(b'"tags":["a","b"],', b"") for line in lines[1::2]]
    block = LineRange.of_lines(lines)
    assert block is not None
    columns = ColumnReader([("plate",), ("speed",)]).read(block)
    assert columns is not None
    assert columns.lines.tolist() == list(range(600))


@pytest.mark.parametrize("share", [1.0, 0.4])
def test_a_stream_of_which_few_lines_have_a_shape_is_soon_parsed(share: float) -> None:
    lines = make_documents(random.Random(5), 14_000, share)
    packer, _ = pack(task_plan_of(CONFIGS["keyed"], "auto"), lines, [])
    assert not packer.reads_columns


FILTERS = (
    "this.passengers < 3",
    'this.light == "L1" || this.plate.has_prefix("X")',
    'json("car.kind") == "car" && this.car.mass > 500',
    "this.speed > 10",
    "this.ok",
    "this.plate.length() > 3",
)


def passed(condition: str, given: Chunk, mode: str) -> tuple[Any, ...]:
    text = f"pipeline: {{processors: [{{mapping: 'root = if {condition} {{ deleted() }}'}}]}}"
    processors = build_context().build_all(parse_config(text, env={}).processors)
    log: list[tuple[str, str, Any]] = []
    execution = Execution(lambda: NOW, lambda *line: log.append(line))
    execution.column_mode = mode
    batches = list(run_chunks(processors, iter([given, given]), execution))
    [stats] = execution.component_stats.values()
    counts = (stats.received, stats.sent, stats.batches_received, stats.batches_sent)
    return [[(one.raw, one.meta, one.error) for one in batch] for batch in batches], log, counts


@pytest.mark.parametrize("condition", FILTERS)
def test_a_filter_passes_the_same_messages_both_ways(condition: str) -> None:
    rng = random.Random(len(condition))
    for turn, share in enumerate((0.0, 0.002, 0.02, 0.2)):
        lines = make_documents(rng, max(1000, DOCUMENTS // 40), share)
        lines[-1] = lines[0]
        block = LineRange.of_data(b"\n".join(lines))
        assert block is not None
        meta = {"a": 1}
        expected = passed(condition, RawMessages(lines, meta), "")
        given = LineMessages(block, meta) if turn % 2 else RawMessages(lines, meta)
        for mode in MODES:
            assert passed(condition, given, mode) == expected, (condition, share, mode)


@pytest.mark.parametrize(
    ("mapping", "paths"),
    [
        ('root = if this.a == "x" { deleted() }', (("a",),)),
        ('root = if !(this.a.b > 3 && json("c") != null) { deleted() }', (("a", "b"), ("c",))),
        ("root = if this.a { deleted() } else if this.b { deleted() }", (("a",), ("b",))),
        ("root = if this.a > now() { deleted() }", None),
        ("root = if this.a > @b { deleted() }", None),
        ("root = if this.length() > 3 { deleted() }", None),
        ("root = if this.a > random_int() { deleted() }", None),
        ("root = if this.a.or(this) == 3 { deleted() }", None),
        ("root = if this.a { this } else { deleted() }", None),
        ("root = if this.a { deleted() }\nmeta b = 1", None),
        ("root.c = if this.a { deleted() }", None),
        ("root = if batch_index() == 0 { deleted() }", None),
        ("root = if this.a.map_each(x -> this.b).length() > 1 { deleted() }", None),
    ],
)
def test_a_mapping_is_a_filter_of_lines_if_it_only_drops_by_fields(
    mapping: str, paths: tuple[tuple[str, ...], ...] | None
) -> None:
    found = find_line_filter(compile_mapping(mapping))
    assert (found and found.paths) == paths
