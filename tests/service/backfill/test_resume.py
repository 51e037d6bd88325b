"""A backfill that is killed goes on where it was, and hands over to the live stream."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from streamer.cli.main import invoke
from streamer.core.durations import SECOND
from streamer.core.errors import StreamerError
from streamer.service.backfill.backfill import Backfill, BackfillOptions, identify
from streamer.service.backfill.tasks import Bounds

from .made_events import (
    MONTH_S,
    NEW_YEAR_S,
    make_events,
    make_stream_plan,
    read_rows,
    run_backfill,
    run_stream,
    write_events,
)

SEED = int(time.time()) // 3600
TIME = "timestamp_mapping: root = this.t"
KEYED = "key_mapping: root = this.k"
SLIDING = f"sliding_window: {{{TIME}, {KEYED}, size: 3h, mode: forward, allowed_lateness: 1h}}"
SESSION = f"session_window: {{{TIME}, {KEYED}, gap: 2h30m, allowed_lateness: 1h}}"


def stop_after(directory: Path, buffer: str, steps: int) -> bool:
    """Run a backfill until it has reported some steps; return whether it came to its end."""
    plan = make_stream_plan(directory, f"buffer:\n  {buffer}")
    options = BackfillOptions(Bounds(), 1, 10, 40)
    backfill = Backfill(
        plan, directory / "work", options, identify(plan, "", options), lambda *line: None
    )
    reported: list[object] = []
    try:
        backfill.open()
        return backfill.run(
            io.BytesIO(), reported.append, lambda: len(reported) >= steps
        ).is_complete
    finally:
        backfill.close()


@pytest.mark.parametrize("buffer", [SLIDING, SESSION])
def test_a_stopped_backfill_goes_on_without_a_gap_or_a_double(buffer: str, tmp_path: Path) -> None:
    events = make_events(SEED, 500)
    write_events(tmp_path, events)
    plan = make_stream_plan(tmp_path, f"buffer:\n  {buffer}")

    runs = 0
    while not stop_after(tmp_path, buffer, 5):
        runs += 1

    assert runs > 2
    assert not (tmp_path / "work").exists()
    assert read_rows(tmp_path / "results.jsonl") == run_stream(plan, events, 100), f"seed {SEED}"


def test_another_config_does_not_go_on_with_what_is_there(tmp_path: Path) -> None:
    write_events(tmp_path, make_events(SEED, 100))
    assert not stop_after(tmp_path, SLIDING, 1)

    with pytest.raises(StreamerError, match="begun with another config"):
        stop_after(tmp_path, SESSION, 1)


def test_a_checkpoint_that_a_stream_has_is_not_handed_over_to(tmp_path: Path) -> None:
    write_events(tmp_path, make_events(SEED, 100))
    plan = make_stream_plan(tmp_path, f"buffer:\n  {SLIDING}")
    target = str(tmp_path / "checkpoint")
    run_backfill(tmp_path, plan, bounds=Bounds(None, None, True), hand_over=target)

    with pytest.raises(StreamerError, match="a stream has this checkpoint already"):
        run_backfill(tmp_path, plan, bounds=Bounds(None, None, True), hand_over=target)


CONFIG = """
input:
  file: {{paths: [events.jsonl]}}
buffer:
  {buffer}
pipeline:
  processors:
    - mapping: |
        root.key = @window_key
        root.start = @window_start_timestamp
        root.ids = json("id").from_all()
        root = if batch_index() > 0 {{ deleted() }}
output:
  file: {{path: results.jsonl, codec: lines}}
"""


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.parametrize("buffer", [SLIDING, SESSION])
def test_a_month_killed_resumed_and_handed_over_gives_the_rows_of_the_stream(
    buffer: str, tmp_path: Path
) -> None:
    write_events(tmp_path, make_events(SEED, 6_000, "abcdefgh"))
    (tmp_path / "config.yaml").write_text(CONFIG.format(buffer=buffer))
    streamer = [sys.executable, "-m", "streamer"]
    to = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(NEW_YEAR_S + MONTH_S * 2 // 3))
    batch = [
        *(*streamer, "backfill", "config.yaml", "--ranges", "10", "--processes", "2"),
        *("--micro-batch", "300", "--hand-over", "live", "--to", to, "--work", "work"),
    ]

    kill_when(batch, tmp_path, "work/segments/*.packs", 5)
    kill_when(batch, tmp_path, "work/results/*.results", 2)
    run(batch, tmp_path)
    handed = read_rows(tmp_path / "results.jsonl")
    run([*streamer, "-c", "config.yaml", "--checkpoint", "live"], tmp_path)
    rows = read_rows(tmp_path / "results.jsonl")
    (tmp_path / "results.jsonl").unlink()
    run([*streamer, "-c", "config.yaml", "--checkpoint", "once"], tmp_path)

    assert 100 < len(handed) < len(rows)
    assert rows == read_rows(tmp_path / "results.jsonl"), f"seed {SEED}"
    starts = [json.loads(row)["start"] for row in handed]
    assert max(starts) < time.strftime("%Y-%m-%d", time.gmtime(NEW_YEAR_S + MONTH_S))


def kill_when(command: list[str], directory: Path, pattern: str, count: int) -> None:
    """Start a command, and kill it as soon as there are so many files."""
    until = time.monotonic() + 90
    with subprocess.Popen(command, cwd=directory, stderr=subprocess.DEVNULL) as running:
        while len([*directory.glob(pattern)]) < count:
            assert running.poll() is None and time.monotonic() < until
            time.sleep(0.02)
        os.kill(running.pid, signal.SIGKILL)


def run(command: list[str], directory: Path) -> None:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_last_clock_reaches_behind_windows_that_end_by_then(tmp_path: Path) -> None:
    plan = make_stream_plan(tmp_path, f"buffer:\n  {SESSION}")
    end = NEW_YEAR_S * SECOND
    assert Bounds(None, end).last_clock(plan) == end + (3600 + 9000) * SECOND + 1_000_000
    assert Bounds(None, end, True).last_clock(plan) == end


def test_a_cluster_is_said_not_to_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_events(tmp_path, make_events(SEED, 60))
    (tmp_path / "config.yaml").write_text(CONFIG.format(buffer=SLIDING))

    code = invoke(
        ["backfill", "config.yaml", "--master", "spark://127.0.0.1:7077", "--processes", "1"]
    )

    said = capsys.readouterr().err
    assert code == 0, said
    assert "spark.master is not used" in said and "done in" in said
