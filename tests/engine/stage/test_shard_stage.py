"""What a shard lets out: a window that is very large is named before Spark has to hold it."""

from __future__ import annotations

import queue
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamer.engine.report.task_log_channel import TaskLogReceiver
from streamer.engine.stage import shard_stage
from tests.engine.stream import Run, write_lines

SECOND = 10**9
T = 1_700_000_000 * SECOND
CONFIG = """
input: { file: { paths: [in] } }
spark: { shards: 1 }
buffer: { system_window: { timestamp_mapping: root = this.at, size: 10s } }
output: { stdout: {} }
"""


def test_a_window_that_is_very_large_is_named_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shard_stage, "_LARGE_BYTES", 3000)
    # Small, so that a window is several frames, as a large one is.
    monkeypatch.setattr("streamer.engine.report.result_frame.MAX_JOINED_BYTES", 1000)
    heard: queue.Queue[Any] = queue.Queue()
    ear = TaskLogReceiver(lambda *line: heard.put(line))
    try:
        (tmp_path / "in").touch()
        run = Run(CONFIG)
        run.plan = replace(run.plan, task_log_address=ear.address)
        write_lines(tmp_path / "in", [{"at": T // SECOND + 1, "n": "x" * 500} for _ in range(4)])
        run.step(T + 3 * SECOND)
        run.step(T + 11 * SECOND)
        assert heard.empty()
        write_lines(tmp_path / "in", [{"at": T // SECOND + 12, "n": "x" * 500} for _ in range(20)])
        run.step(T + 13 * SECOND)
        run.step(T + 21 * SECOND)
        level, text, fields = heard.get(timeout=10)
    finally:
        ear.close()
    assert level == "WARN" and fields["path"] == "root.buffer"
    assert "the window that ends at 2023-11-14T22:13:40Z comes to " in text
    assert "spark.conf.spark.driver.memory" in text
