"""kill -9 while windows are compared with the windows before: they are the same as without.

The oracle is plain Python and shares no code with the product. It knows how many messages each
window of each key has, and compares each count with the mean of those before.
"""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path
from typing import Any

import pytest

from .program import Program, program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

# By hand: STREAMER_KILLS=20 pytest tests/faults/test_expectations.py
KILLS = int(os.environ.get("STREAMER_KILLS", "1"))
SEED = int(os.environ.get("STREAMER_SEED", time.time_ns() // 10**9 % 100_000))
CONFIG = """
http: {{ enabled: false }}
input:
  generate:
    interval: 2ms
    mapping: |
      let id = count("id") - 1
      root.id = $id
      root.key = $id % 3
      # Windows of 10 s; seconds of later numbers are shorter, or longer again.
      let back = if $id % 1000 < 500 {{ 0 }} else {{ $id % 1000 / 60 }}
      root.at = 1767225600 + $id / 20 - $back
buffer:
  tumbling_window:
    timestamp_mapping: root = this.at
    key_mapping: root = this.key
    size: 10s
    allowed_lateness: 60s
pipeline:
  processors:
    - label: quality
      expect:
        expectations:
          - name: volume
            per: window
            count: true
            history: {{ windows: 3, min_ratio: 0.8, max_ratio: 1.25, min_windows: 2 }}
    - mapping: |
        root = if batch_index() == 0 {{
          {{
            "key": this.key, "start": @window_start_unix_ms, "ids": json("id").from_all(),
            "error": error(),
          }}
        }} else {{ deleted() }}
    - catch: []
output: {{ file: {{ path: {out}, codec: lines }} }}
spark: {{ master: "local[2]", shards: 2 }}
"""


def second(number: int) -> float:
    """Return when an event happens, in seconds."""
    back = number % 1000 / 60 if number % 1000 >= 500 else 0
    return number / 20 - back


def rows_of(out: Path) -> list[dict[str, Any]]:
    if not out.exists():
        return []
    return [json.loads(line) for line in out.read_bytes().split(b"\n")[:-1]]


def expected_error(count: int, before: list[int]) -> str | None:
    """Return what is wrong with a window, by up to three windows of its key before it."""
    if len(before) < 2:
        return None
    mean = sum(before) / len(before)
    of = f"the mean {mean:.6g} of the last {len(before)} windows"
    if count < 0.8 * mean:
        return f"expectation volume failed: {count} is less than {0.8 * mean:.6g}, by {of}"
    if count > 1.25 * mean:
        return f"expectation volume failed: {count} is more than {1.25 * mean:.6g}, by {of}"
    return None


def check(rows: list[dict[str, Any]]) -> tuple[int, int]:
    """Hold windows against the oracle; return how many pass, and how many fail."""
    verdicts = [0, 0]
    for key in range(3):
        windows = [row for row in rows if row["key"] == key]
        starts = [row["start"] for row in windows]
        assert len(set(starts)) == len(starts), "a window was written twice"
        counts: list[int] = []
        for row in sorted(windows, key=lambda row: int(row["start"])):
            start = int(row["start"]) / 1000 - 1_767_225_600
            # All that can be in it: time goes back by 17 s at most.
            near = range(max(int(start - 20) * 20, 0), int(start + 40) * 20)
            inside = [one for one in near if one % 3 == key and start <= second(one) < start + 10]
            assert sorted(row["ids"]) == inside
            assert row["error"] == expected_error(len(inside), counts[-3:]), row["start"]
            verdicts[row["error"] is not None] += 1
            counts.append(len(inside))
    return verdicts[0], verdicts[1]


def test_windows_are_compared_with_the_same_ones_after_kills(tmp_path: Path) -> None:
    print(f"STREAMER_SEED={SEED}")
    rng = random.Random(SEED)
    out, config = tmp_path / "out.jsonl", tmp_path / "config.yaml"
    config.write_text(CONFIG.format(out=out))

    def wait_more(running: Program, more: int) -> None:
        expected = len(rows_of(out)) + more
        running.wait_for(lambda: len(rows_of(out)) >= expected, 240, "for windows")

    for _ in range(KILLS):
        with program(config, tmp_path / "checkpoint") as running:
            wait_more(running, 6)
            time.sleep(rng.uniform(0, 2))
            running.kill()
    with program(config, tmp_path / "checkpoint") as running:
        wait_more(running, 12)
        assert running.stop() == 0
    passed, failed = check(rows_of(out))
    assert passed >= 6 and failed >= 6
