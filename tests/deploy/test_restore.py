"""A backup as the operations page has it: copied while stopped, restored, continued."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path

import pytest

from tests.faults.program import program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

CONFIG = """
input:
  generate:
    interval: 5ms
    mapping: |
      root.id = count("id") - 1
      root.at = now()
buffer:
  system_window:
    timestamp_mapping: root = this.at
    size: 3s
    on_expired: keep
pipeline:
  processors:
    - mapping: |
        root = if batch_index() == 0 {{
          {{ "ids": json("id").from_all() }}
        }} else {{ deleted() }}
output:
  file: {{path: {out}, codec: lines}}
spark:
  master: local[1]
"""


def windows(path: Path) -> list[list[int]]:
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line)["ids"] for line in lines]


def test_a_copy_of_a_checkpoint_goes_on_wherever_it_is_restored(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG.format(out=out))
    first = tmp_path / "first" / "checkpoint"

    def run_until(checkpoint: Path, count: int) -> None:
        with program(config, checkpoint) as running:
            running.wait_for(lambda: len(windows(out)) >= count, 300, f"for {count} windows")
            assert running.stop() == 0

    run_until(first, 1)
    backed_up = windows(out)
    with tarfile.open(tmp_path / "backup.tar.gz", "w:gz") as archive:
        archive.add(first, "checkpoint")
        archive.add(out, "out.jsonl")
    # What happens after the backup is lost with the disk.
    run_until(first, len(backed_up) + 1)
    shutil.rmtree(first.parent)
    out.unlink()

    # To another path: Spark's notes on the schema of a state name the former one.
    second = tmp_path / "elsewhere" / "volume" / "checkpoint"
    second.parent.mkdir(parents=True)
    with tarfile.open(tmp_path / "backup.tar.gz") as archive:
        archive.extractall(second.parent, filter="data")
    (second.parent / "out.jsonl").rename(out)
    run_until(second, len(backed_up) + 1)
    with program(config, second, "-s", "input.generate.count=1") as running:
        assert running.finish(300) == 0
    found = windows(out)
    assert found[: len(backed_up)] == backed_up
    ids = [one for window in found for one in window]
    assert ids == list(range(len(ids))), "none is missing, and none came twice"
    assert len(ids) > sum(map(len, backed_up))
