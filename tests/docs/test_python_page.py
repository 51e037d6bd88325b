"""The page on Python: its configs, its modules and its commands, in their order."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_docs import ROOT, blocks

PAGE = ROOT / "streamer" / "docs" / "python.md"


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_the_walk_ends_with_scores_of_windows(tmp_path: Path) -> None:
    env = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    outputs = []
    for block in blocks(PAGE):
        kind, _, name = block.info.partition("=")
        if kind in ("yaml config", "python file"):
            (tmp_path / name).write_text(block.text)
        if block.info != "sh python":
            continue
        for line in block.text.splitlines():
            command = shlex.split(line)
            done = subprocess.run(
                command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=200
            )
            assert done.returncode == 0, (line, done.stdout, done.stderr)
            outputs.append(done.stdout)
    speeds = [json.loads(line) for line in (tmp_path / "speeds.jsonl").read_text().splitlines()]
    assert [one["mph"] for one in speeds[:2]] == [1.2, 2.5] and len(speeds) == 60
    shown = "\n".join(outputs)
    assert "modules      scoring.py, sent to the workers" in shown
    assert "functions   add_vat, .shout of prices, code " in shown
    prices = [json.loads(line) for line in (tmp_path / "prices.jsonl").read_text().splitlines()]
    notes = [{"gross": value, "note": "NET!!"} for value in (None, 0, 107)]
    assert prices == notes
    scores = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    assert len(scores) >= 6 * 3 and {one["light"] for one in scores} == {
        f"light-{number}" for number in range(3)
    }
    assert all(0 <= one["risk"] <= 1 for one in scores)
