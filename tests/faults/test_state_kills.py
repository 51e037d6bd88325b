"""kill -9 of `streamer state`: an export is whole or not there, and a half copy is no checkpoint.

What a command leaves is compared with what the same command makes that is let run to its end.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

CRASH_POINTS = Path(__file__).parent / "crash_points"
ROOT = Path(__file__).parents[2]
WRITING = "streamer.core.disk os fdatasync before 1"
COPYING = "streamer.engine.driver.shard_state_file ShardStateFile put after 2"
CONFIG = """
input: { file: { paths: [in.ndjson] } }
buffer:
  tumbling_window:
    timestamp_mapping: root = this.at
    key_mapping: root = this.k
    size: 10s
    end_of_input: keep
pipeline:
  processors:
    - mapping: |
        root = if batch_index() == 0 { {"k": this.k, "n": batch_size()} } else { deleted() }
output: { file: { path: out.jsonl } }
spark: { shards: 2 }
"""
LEFT = {"a": 6, "b": 6, "c": 6, "d": 6, "e": 6}
"""Messages by key in the windows that stay open."""


def command(directory: Path, *arguments: str, crash: str = "") -> int:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(directory / "home")}
    if crash:
        env |= {"STREAMER_TEST_CRASH": crash, "PYTHONPATH": f"{CRASH_POINTS}:{ROOT}"}
    with (directory / "log.txt").open("ab") as log:
        return subprocess.run(
            [sys.executable, "-m", "streamer.cli.main", *arguments],
            **{"cwd": directory, "env": env, "stdout": log, "stderr": log},
            timeout=240,
        ).returncode


def digest(directory: Path) -> dict[str, str]:
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name not in ("lock", "jvm.lock")
    }


def test_what_is_killed_leaves_nothing_half_written(tmp_path: Path) -> None:
    lines = [{"k": k, "at": at} for at in range(6) for k in LEFT]
    (tmp_path / "in.ndjson").write_text("".join(json.dumps(one) + "\n" for one in lines))
    (tmp_path / "config.yaml").write_text(CONFIG)
    place = ("config.yaml", "--checkpoint", "state")
    assert command(tmp_path, "-c", *place) == 0
    before = digest(tmp_path / "state")
    log = tmp_path / "log.txt"

    # An export: the former file stays as it was.
    out = tmp_path / "windows.parquet"
    out.write_bytes(b"former")
    export = ("state", "export", *place, "-o", "windows.parquet")
    assert command(tmp_path, *export, crash=WRITING) == -signal.SIGKILL, log.read_text()
    assert out.read_bytes() == b"former"
    [draft] = tmp_path.glob(".windows.parquet.*")
    assert draft.stat().st_size > 0
    assert command(tmp_path, *export) == 0, log.read_text()
    assert not draft.exists()
    table = pyarrow.parquet.read_table(out)
    assert dict(zip(*(table[n].to_pylist() for n in ("key", "messages")), strict=True)) == LEFT

    # A copy: what is left is no checkpoint, and the next try makes it whole.
    start = ("state", "start", *place, "--to", "copy", "--no-run")
    assert command(tmp_path, *start, crash=COPYING) == -signal.SIGKILL, log.read_text()
    left = digest(tmp_path / "copy")
    assert left and "streamer.json" not in left
    assert all(name.startswith("seed-1/") for name in left)
    assert command(tmp_path, *start) == 0, log.read_text()
    assert "streamer.json" in digest(tmp_path / "copy")
    # One that is whole is not overwritten.
    assert command(tmp_path, *start) == 1
    assert "--to copy is not empty: name a new directory" in log.read_text()
    assert digest(tmp_path / "state") == before
    flushed = ("-s", "buffer.tumbling_window.end_of_input=flush", "-s", "http.enabled=false")
    assert command(tmp_path, "-c", "config.yaml", "--checkpoint", "copy", *flushed) == 0
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert {one["k"]: one["n"] for one in rows} == LEFT and len(rows) == len(LEFT)
