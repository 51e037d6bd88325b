"""The page on backfills: its commands lead from made events to a live stream."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.docs.test_docs import ROOT, blocks

PAGE = ROOT / "streamer" / "docs" / "backfill.md"


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_the_commands_of_the_page_give_each_window_once(tmp_path: Path) -> None:
    every = blocks(PAGE)
    for block in every:
        if block.info.startswith("yaml config="):
            (tmp_path / block.info.partition("=")[2]).write_text(block.text)
    commands = [line for one in every if one.info == "sh backfill" for line in one.text.split("\n")]
    env = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    walk = [shlex.split(line) for line in commands if line.strip()]
    assert len(walk) == 6
    for command in walk:
        if command[-1] == "checkpoint":
            (tmp_path / "totals.jsonl").rename(tmp_path / "batch.jsonl")
        done = subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
    batch, part = read_windows(tmp_path / "batch.jsonl"), read_windows(tmp_path / "part.jsonl")
    assert batch == expected_windows()
    inside = ("2026-01-10T00:00:00Z", "2026-01-20T00:00:00Z")
    assert part == Counter(one for one in batch if inside[0] < json.loads(one)["end"] <= inside[1])
    before, live = read_windows(tmp_path / "before.jsonl"), read_windows(tmp_path / "totals.jsonl")
    assert before + live == batch
    assert live


def expected_windows() -> Counter[str]:
    """Return the windows of the page's config, counted without the program."""
    hour, sums = 3600, Counter[tuple[str, int]]()
    for number in range(1, 7201):
        at = 1_767_225_600 + number * 360
        newest = at // (2 * hour) * 2 * hour
        for start in (newest, newest - 2 * hour, newest - 4 * hour):
            sums[f"sensor-{number % 5}", start + 6 * hour] += number % 7
    lines: Counter[str] = Counter()
    for (key, end), total in sums.items():
        text = datetime.fromtimestamp(end, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        row = {"end": text, "key": key, "sum": total}
        lines[json.dumps(row, separators=(",", ":"))] += 1
    return lines


def read_windows(path: Path) -> Counter[str]:
    return Counter(path.read_text().splitlines())
