"""kill -9 of a stream that reads tables, while others write and compact them: each row once."""

from __future__ import annotations

import json
import os
import random
import threading
import time
import warnings
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow import parquet
from pyiceberg.catalog import load_catalog

from tests.faults.program import program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

KILLS = int(os.environ.get("STREAMER_KILLS", "2"))
SEED = int(os.environ.get("STREAMER_SEED", time.time_ns() // 10**9 % 100_000))
_ROWS = 400
CONFIG = """
input:
  broker:
    inputs:
      - delta: { path: ./delta, poll_interval: 200ms }
        processors: [{ mapping: 'root = {"from": "delta", "n": this.n}' }]
      - iceberg:
          catalog: { url: "sqlite:///catalog.db", warehouse: ./warehouse }
          namespace: demo
          table: rows
          poll_interval: 200ms
        processors: [{ mapping: 'root = {"from": "iceberg", "n": this.n}' }]
      - parquet: { paths: [ ./rows ], read_once: false, poll_interval: 200ms }
        processors: [{ mapping: 'root = {"from": "parquet", "n": this.n}' }]
output:
  file: { path: out.jsonl, codec: lines }
spark:
  master: local[2]
"""


class TableWriters:
    """Appends the same rows to three tables until it is stopped."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        properties = {
            "uri": f"sqlite:///{directory}/catalog.db",
            "warehouse": f"{directory}/warehouse",
        }
        catalog = load_catalog("default", type="sql", **properties)
        catalog.create_namespace("demo")
        self._iceberg = catalog.create_table("demo.rows", pa.schema([("n", pa.int64())]))
        (directory / "rows").mkdir()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.rows = 0

    def append(self) -> None:
        rows = pa.table({"n": pa.array(range(self.rows, self.rows + _ROWS), pa.int64())})
        write_deltalake(self._directory / "delta", rows, mode="append")
        self._iceberg.append(rows)
        # Names have no order.
        name = f"{random.Random(self.rows).random()}.parquet"
        parquet.write_table(rows, self._directory / "rows" / f"_{name}")
        os.replace(self._directory / "rows" / f"_{name}", self._directory / "rows" / name)
        self.rows += _ROWS

    def _run(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            while not self._stopping.wait(0.2):
                self.append()
                if self.rows % (10 * _ROWS) == 0:
                    DeltaTable(self._directory / "delta").optimize.compact()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()


def test_every_row_of_tables_comes_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    print(f"STREAMER_SEED={SEED}")
    chance = random.Random(SEED)
    monkeypatch.chdir(tmp_path)
    config, checkpoint, out = tmp_path / "c.yaml", tmp_path / "checkpoint", tmp_path / "out.jsonl"
    config.write_text(CONFIG)
    writers = TableWriters(tmp_path)
    writers.append()
    writers.start()
    for _ in range(KILLS):
        with program(config, checkpoint) as running:
            running.wait_running()
            time.sleep(chance.uniform(0.1, 4))
            running.kill()
    with program(config, checkpoint) as running:
        running.wait_running()
        writers.stop()
        count = 3 * writers.rows
        running.wait_for(lambda: out.exists() and out.read_bytes().count(b"\n") >= count, 120)
        time.sleep(1)
        assert running.stop() == 0
    counts: dict[str, Counter[int]] = {name: Counter() for name in ("delta", "iceberg", "parquet")}
    for line in out.read_bytes().splitlines():
        row = json.loads(line)
        counts[row["from"]][row["n"]] += 1
    for name, numbers in counts.items():
        assert numbers == Counter(range(writers.rows)), name
    assert writers.rows > _ROWS
