"""kill -9 of the process that writes tables, at any instant: every row once in each of them.

It is the driver's part of a stream without Spark, so that a kill takes a second, and many can be
made; `test_tables` kills whole streams.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

from tests.faults.table_writing import ROWS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

KILLS = int(os.environ.get("STREAMER_KILLS", "3"))
SEED = int(os.environ.get("STREAMER_SEED", time.time_ns() // 10**9 % 100_000))
ROOT = Path(__file__).parents[2]
ENDLESS = 10**9


def start(directory: Path, last: int) -> subprocess.Popen[bytes]:
    """Start it; return when it is about to write."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.table_writing", str(last)],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def rows_of(directory: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each table, read without the program."""
    properties = {"uri": f"sqlite:///{directory}/catalog.db", "warehouse": f"{directory}/warehouse"}
    catalog = load_catalog("default", type="sql", **properties)
    routed = [DeltaTable(one).to_pyarrow_table() for one in (directory / "routed").iterdir()]
    files = (directory / "rows").rglob("*.parquet")
    return {
        "delta": DeltaTable(directory / "delta").to_pyarrow_table().to_pylist(),
        "merged": DeltaTable(directory / "merged").to_pyarrow_table().to_pylist(),
        "routed": [row for table in routed for row in table.to_pylist()],
        "iceberg": catalog.load_table("demo.windows").scan().to_arrow().to_pylist(),
        "iceberg merged": catalog.load_table("demo.merged").scan().to_arrow().to_pylist(),
        "parquet": [row for path in files for row in pq.ParquetFile(path).read().to_pylist()],
    }


def test_tables_have_every_row_once_whenever_their_writer_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    print(f"STREAMER_SEED={SEED}")
    chance = random.Random(SEED)
    monkeypatch.chdir(tmp_path)
    note = tmp_path / "committed"
    for _ in range(KILLS):
        before = note.read_text() if note.exists() else ""
        process = start(tmp_path, ENDLESS)
        try:
            # Some get through a few micro-batches, and some not through one.
            time.sleep(chance.uniform(0, 1.5))
            if chance.random() < 0.3:
                until = time.monotonic() + 240
                while not note.exists() or note.read_text() == before:
                    assert time.monotonic() < until and process.poll() is None
                    time.sleep(0.001)
                time.sleep(chance.uniform(0, 0.2))
            assert process.poll() is None
        finally:
            process.kill()
            process.communicate()
    last = int(note.read_text()) + 1 if note.exists() else 0
    process = start(tmp_path, last)
    process.communicate(timeout=240)
    assert process.returncode == 0
    expected = [
        {"n": number, "light": f"light-{number % 3}", "batch": number // ROWS}
        for number in range((last + 1) * ROWS)
    ]
    for name, rows in rows_of(tmp_path).items():
        assert sorted(rows, key=lambda row: row["n"]) == expected, name
    print(f"{KILLS} kills, {last + 1} micro-batches")
