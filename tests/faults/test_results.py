"""kill -9 of a stream that keeps its results: they are what its output file has, each once."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.faults.program import program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

KILLS = int(os.environ.get("STREAMER_KILLS", "1"))
SEED = int(os.environ.get("STREAMER_SEED", time.time_ns() // 10**9 % 100_000))
CONFIG = """
input:
  generate:
    interval: 2ms
    mapping: |
      root.id = count("id") - 1
      root.light = "light-" + (root.id % 7).string()
buffer:
  system_window:
    size: 2s
    on_expired: keep
    retention: 7d
pipeline:
  processors:
    - group_by_value:
        value: ${! json("light") }
    - mapping: |
        let end = meta("window_end_timestamp")
        meta = deleted()
        root = if batch_index() == 0 {
          {"end": $end, "light": this.light, "ids": json("id").from_all()}
        } else { deleted() }
output:
  file: {path: OUT, codec: lines}
spark:
  master: local[2]
"""


def queried(*arguments: str) -> list[dict[str, Any]]:
    """Ask the program for results, as JSON."""
    command = [sys.executable, "-m", "streamer.cli.main", "query", *arguments, "--format", "json"]
    out = subprocess.run([*command, "--limit", "1000000"], capture_output=True, check=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def test_results_are_what_the_output_has(tmp_path: Path) -> None:
    print(f"STREAMER_SEED={SEED}")
    chance = random.Random(SEED)
    out, config = tmp_path / "out.jsonl", tmp_path / "kept.yaml"
    config.write_text(CONFIG.replace("OUT", str(out)))
    checkpoint = tmp_path / "checkpoint"
    for _ in range(KILLS):
        with program(config, checkpoint) as running:
            running.wait_running()
            running.wait_for(lambda: out.exists() and out.stat().st_size > 0, 240, "for a window")
            time.sleep(chance.uniform(0.1, 6))
            # They can be read while the stream runs.
            kept = queried(str(checkpoint))
            written = out.read_bytes().splitlines()
            assert len(kept) <= len(written)
            running.kill()
    with program(config, checkpoint, "-s", "input.generate.count=1") as running:
        assert running.finish(240) == 0
    written = [json.loads(line) for line in out.read_bytes().splitlines()]
    kept = queried(str(config), "--checkpoint", str(checkpoint))
    assert len(written) > 7

    def place(document: dict[str, Any]) -> tuple[str, str]:
        return document["end"], document["light"]

    assert sorted((one["content"] for one in kept), key=place) == sorted(written, key=place)
    # The mapping has taken all metadata away, and each is known by its window all the same.
    assert [(one["end"], one["key"]) for one in kept] == [place(one["content"]) for one in kept]
    assert {one["revision"] for one in kept} == {1}
    assert {one["emit"] for one in kept} <= {"final", "flush"}
    [every] = queried(str(checkpoint), "--sql", "SELECT count(*) AS n FROM results")
    assert every["n"] == len(written)
    ask = ("--key", "light-3", "--all-revisions")
    assert queried(str(checkpoint), *ask) == [one for one in kept if one["key"] == "light-3"]
