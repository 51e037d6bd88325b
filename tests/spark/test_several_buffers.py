"""Several buffers on Spark: stopped, cut into other shards, given another buffer on the way."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from streamer.config import parse_config
from streamer.plan import make_plan
from streamer.spark.checkpoint.checkpoint import Checkpoint
from streamer.spark.checkpoint.rescaling import rescale_checkpoint

pytestmark = pytest.mark.spark


def _buffer(label: str, size: int, value: str, more: str) -> str:
    return f"""
  - label: {label}
    tumbling_window: {{size: {size}s, key_mapping: root = this.k{more}}}
    output: {{stdout: {{}}}}
    pipeline:
      processors:
        - mapping: |
            root = if batch_index() == 0 {{
              {{"of": "{label}", "k": this.k, "start": @window_start_unix_ms / 1000,
                "v": json("{value}").from_all().sum()}}
            }} else {{ deleted() }}
"""


def _text(path: Path, end: str, with_added: bool) -> str:
    of_input = f", timestamp_mapping: root = this.t, end_of_input: {end}"
    tens = _buffer("tens", 10, "v", of_input)
    minutes = _buffer("minutes", 60, "v", "") + "    from: tens\n"
    added = _buffer("added", 30, "v", of_input) if with_added else ""
    return (
        f"input: {{file: {{paths: [{path}]}}}}\nbuffers:{tens}{minutes}{added}spark: {{shards: 2}}"
    )


def _sums(label: str, size: int, events: list[tuple[int, str, int]]) -> list[list[Any]]:
    sums: Counter[tuple[str, int]] = Counter()
    for time, key, value in events:
        sums[key, time // size * size] += value
    return [[label, key, start, value] for (key, start), value in sums.items()]


def test_buffers_go_on_with_other_shards_and_beside_another_one(
    run_stream: Any, session: Any, tmp_path: Path
) -> None:
    path = tmp_path / "in.jsonl"
    events = [(time, f"k{time % 7}", time) for time in range(245)]
    said: list[list[Any]] = []
    for begin, end, last in ((0, 95, False), (95, 245, True)):
        with path.open("a") as file:
            for time, key, value in events[begin:end]:
                file.write(json.dumps({"t": time, "k": key, "v": value}) + "\n")
        text = _text(path, "flush" if last else "keep", with_added=last)
        ran = run_stream(text)
        said += [[*map(json.loads(line).get, ("of", "k", "start", "v"))] for line in ran.lines]
        if not last:
            checkpoint = Checkpoint(tmp_path / "checkpoint")
            plan = make_plan(parse_config(text, "test.yaml"))
            done = rescale_checkpoint(plan, checkpoint, 3, lambda: session)
            assert done.moved.messages == ran.last.held > 0
            checkpoint.close()
    expected = _sums("tens", 10, events) + _sums("minutes", 60, events)
    expected += _sums("added", 30, events[95:])
    assert sorted(said) == sorted(expected)
    assert ran.last.messages == len(events)


_JOINS = {"ab": ("a", "b"), "abc": ("ab", "c"), "abcd": ("abc", "d"), "again": ("ab", "abcd")}


def _join_text(directory: Path, end: str) -> str:
    """Return joins that take inputs and results of levels before the last one."""
    lines = ["input:", "  broker:", "    inputs:"]
    for name in "abcd":
        lines.append(f"      - {{ label: {name}, file: {{ paths: [{directory / name}.jsonl] }} }}")
    lines.append("buffers:")
    for label, (left, right) in _JOINS.items():
        times = ""
        if min(len(left), len(right)) == 1:
            times = "timestamp_mapping: root = this.t, clock_scope: input, "
        lines += [
            f"  - label: {label}",
            f"    window_join: {{ left: {left}, right: {right}, {times}key_mapping: root = this.k,"
            f" within: 30s, type: left, end_of_input: {end} }}",
            "    output: { stdout: {} }",
            "    pipeline:",
            "      processors:",
            "        - mapping: |",
            f'            root = {{ "of": "{label}", "k": this.left.k, "left": this.left.v, '
            '"right": this.right.v }',
            "            root.v = [this.left.v, this.right.v]",
        ]
    return "\n".join([*lines, "spark: { shards: 2 }"])


def _join_naively(events: dict[str, list[tuple[int, str, int]]]) -> Counter[str]:
    """Return what the joins of whole inputs are."""
    made: Counter[str] = Counter()
    known: dict[str, list[tuple[int, str, Any]]] = {**events}
    for label, (left, right) in _JOINS.items():
        known[label] = []
        for time, key, value in known[left]:
            near = [
                (max(time, other), of)
                for other, its, of in known[right]
                if its == key and abs(other - time) <= 30
            ]
            known[label] += [(t, key, [value, of]) for t, of in near or [(time, None)]]
        made.update(json.dumps([label, key, *value]) for _, key, value in known[label])
    return made


def test_joins_of_joins_go_on_after_a_stop(run_stream: Any, tmp_path: Path) -> None:
    events = {
        name: [(time, f"k{time % 5}", time) for time in range(number, 160, 4 + number)]
        for number, name in enumerate("abcd")
    }
    said: Counter[str] = Counter()
    for begin, end, last in ((0, 70, False), (70, 160, True)):
        for name, its in events.items():
            with (tmp_path / f"{name}.jsonl").open("a") as file:
                for time, key, value in its:
                    if begin <= time < end:
                        file.write(json.dumps({"t": time, "k": key, "v": value}) + "\n")
        text = _join_text(tmp_path, "flush" if last else "keep")
        ran = run_stream(text)
        for line in ran.lines:
            said[json.dumps([*map(json.loads(line).get, ("of", "k", "left", "right"))])] += 1
    assert said == _join_naively(events)
