"""Rows into tables against lines into a file: without windows, and from windows that close."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Final

from tests.bench import jobs, report, traffic
from tests.bench.product import product, size_of
from tests.bench.speed import Speed, speed_of

OUTPUTS: Final = {
    "file": "file: { path: '%s/rows.jsonl' }",
    "parquet": "parquet: { path: '%s/rows' }",
    "delta": "delta: { path: '%s/rows' }",
    "iceberg": (
        "iceberg: { catalog: { url: 'sqlite:///%s/catalog.db', warehouse: '%s/rows' }, "
        "namespace: bench, table: rows }"
    ),
}
"""The output by name; `%s` is a directory of its own."""

LEAST_ROWS, LEAST_WINDOWS = 0.5, 0.7
"""Of the throughput of `file`."""

_ROWS: Final = """
pipeline:
  processors:
    - mapping: |
        root = this
        root.cars = 1
"""
_WINDOWS: Final = """
buffer:
  tumbling_window:
    timestamp_mapping: root = this.created_at
    key_mapping: root = this.traffic_light
    size: 1s
    end_of_input: flush
pipeline:
  processors:
    - mapping: |
        root = if batch_index() == 0 {
          {
            "traffic_light": @window_key,
            "window_end": @window_end_timestamp,
            "cars": json("registration_plate").from_all().length(),
            "passengers": json("passengers").from_all().sum(),
          }
        } else { deleted() }
"""


def tables(work: Path, events: int, pace: float, master: str) -> None:
    """Write the same rows to a file and to tables."""
    files = work / "files"
    traffic.write(files, events, 10, time.time() // 10 * 10 - 24 * 3600, pace)
    for what, job, least in (
        ("rows without windows", _ROWS, LEAST_ROWS),
        ("windows of a second by light", _WINDOWS, LEAST_WINDOWS),
    ):
        report.heading(f"tables: {what}, {events:,} events, {master}")
        against = None
        for name, output in OUTPUTS.items():
            speed, size = _measure(work / name, files, job, output, master)
            report.figure(f"{name}: events a second", speed.rate, "")
            report.figure(f"{name}: CPU for a million events", speed.cpu_per_million, "s")
            report.figure(f"{name}: on the disk", size / (1 << 20), "MiB")
            if against is None:
                against = speed
            else:
                report.figure(f"{name} / file", speed.rate / against.rate, "", least=least)
    shutil.rmtree(files)


def _measure(directory: Path, files: Path, job: str, output: str, master: str) -> tuple[Speed, int]:
    """Run a job once; return its speed, and the bytes of what it has written."""
    config = "".join(
        (
            jobs.FILES.format(files=files / "*.jsonl"),
            job,
            f"output: {{ {output.replace('%s', str(directory))} }}\n",
            f"spark: {{ master: '{master}' }}\n",
        )
    )
    with product(config, directory / "run") as run:
        run.wait(600)
        speed = speed_of(run)
    shutil.rmtree(directory / "run")
    size = size_of(directory)
    shutil.rmtree(directory)
    return speed, size
