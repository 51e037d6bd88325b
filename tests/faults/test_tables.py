"""kill -9 of a stream that writes tables, at each step of a commit: every window once in each."""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

from tests.faults.program import program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

KILLS = int(os.environ.get("STREAMER_KILLS", "2"))
SEED = int(os.environ.get("STREAMER_SEED", time.time_ns() // 10**9 % 100_000))
CRASH_POINTS = Path(__file__).parent / "crash_points"
CONFIG = """
input:
  generate:
    interval: 2ms
    mapping: |
      root.id = count("id") - 1
      root.light = "light-" + (root.id % 7).string()
buffer:
  system_window: { size: 1s }
pipeline:
  processors:
    - group_by_value: { value: '${! json("light") }' }
    - mapping: |
        root = if batch_index() == 0 {
          {"end": @window_end_timestamp, "light": this.light, "ids": json("id").from_all()}
        } else { deleted() }
output:
  broker:
    pattern: fan_out
    outputs:
      - file: { path: out.jsonl, codec: lines }
      - delta: { path: ./delta, partition_by: [light] }
      - delta: { path: ./merged, mode: upsert, key: [end, light] }
      - iceberg:
          catalog: { url: "sqlite:///catalog.db", warehouse: ./warehouse }
          namespace: demo
          table: windows
      - parquet: { path: './rows/${! this.light }' }
spark:
  master: local[2]
"""

_TABLES = "streamer.connectors"
STEPS = [
    f"{_TABLES}.delta.delta_table DeltaClient commit before",
    f"{_TABLES}.delta.delta_table DeltaClient commit after",
    f"{_TABLES}.delta.delta_table DeltaClient _merge after",
    f"{_TABLES}.iceberg.iceberg_table IcebergClient _write before",
    f"{_TABLES}.iceberg.iceberg_table IcebergClient _write after",
    f"{_TABLES}.iceberg.iceberg_table IcebergClient commit after",
    "streamer.engine.driver.journal FileJournal begin after",
    "streamer.engine.driver.parquet_writer ParquetWriter _write_files before",
    "streamer.engine.driver.parquet_writer ParquetWriter _write_files after",
    "",  # Any moment at all.
]
"""After which call the program ends: data files are there, the commit is, its answer is not."""


def rows_of(directory: Path) -> dict[str, list[dict[str, Any]]]:
    """Return what each output has, read without the program."""
    properties = {"uri": f"sqlite:///{directory}/catalog.db", "warehouse": f"{directory}/warehouse"}
    catalog = load_catalog("default", type="sql", **properties)
    return {
        "file": [json.loads(line) for line in (directory / "out.jsonl").read_bytes().splitlines()],
        "delta": DeltaTable(directory / "delta").to_pyarrow_table().to_pylist(),
        "merged": DeltaTable(directory / "merged").to_pyarrow_table().to_pylist(),
        "iceberg": catalog.load_table("demo.windows").scan().to_arrow().to_pylist(),
        "parquet": [
            row
            for path in (directory / "rows").rglob("*.parquet")
            for row in pq.ParquetFile(path).read().to_pylist()
        ],
    }


def test_tables_have_every_window_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    print(f"STREAMER_SEED={SEED}")
    chance = random.Random(SEED)
    monkeypatch.chdir(tmp_path)
    config, checkpoint = tmp_path / "tables.yaml", tmp_path / "checkpoint"
    config.write_text(CONFIG)
    for number in range(KILLS):
        step = STEPS[(SEED + number) % len(STEPS)]
        crash = {"STREAMER_TEST_CRASH": f"{step} {chance.randint(1, 4)}"} if step else {}
        path = os.pathsep.join([str(CRASH_POINTS), os.environ.get("PYTHONPATH", "")])
        env = {**crash, "PYTHONPATH": path.rstrip(os.pathsep)}
        with program(config, checkpoint, env=env) as running:
            running.wait_running()
            if step:
                running.wait_for(lambda: running.process.poll() is not None, 240, f"for {step}")
                assert running.process.returncode == -9
            else:
                time.sleep(chance.uniform(0.1, 6))
                running.kill()
    with program(config, checkpoint, "-s", "input.generate.count=1") as running:
        assert running.finish(240) == 0
    tables = rows_of(tmp_path)
    ids = sorted(number for row in tables["file"] for number in row["ids"])
    assert ids == list(range(len(ids)))
    assert len(ids) > 100

    def as_text(rows: list[dict[str, Any]]) -> list[str]:
        return sorted(json.dumps(row, sort_keys=True) for row in rows)

    wanted = as_text(tables.pop("file"))
    for name, rows in tables.items():
        assert as_text(rows) == wanted, name
