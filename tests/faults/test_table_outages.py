"""What tables are in goes away, one part after the other: every window once in each table.

The catalog ends, credentials are refused, the disk is full, and another program changes a schema.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

from tests.faults.program import Program, program
from tests.servers.disks import small_disk
from tests.servers.iceberg_rest import IcebergRest, iceberg_rest
from tests.servers.s3 import BUCKET, KEY, S3, SECRET, s3_server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

OUTAGE_S = float(os.environ.get("STREAMER_OUTAGE_S", "3"))
TOKEN = "catalog-token-of-the-test"
DISK_BYTES = 2 << 20
WINDOWS_TO_DELTA = """
http: {{ enabled: false }}
input:
  generate:
    interval: 5ms
    mapping: |
      root.id = count("id") - 1
      root.light = "light-" + (root.id % 3).string()
buffer:
  system_window: {{ size: 500ms, on_expired: keep }}
pipeline:
  processors:
    - group_by_value: {{ value: '${{! json("light") }}' }}
    - mapping: |
        root = if batch_index() == 0 {{
          {{"end": @window_end_timestamp, "light": this.light, "ids": json("id").from_all()}}
        }} else {{ deleted() }}
output:
  broker:
    pattern: fan_out
    outputs:
      - file: {{ path: out.jsonl, codec: lines }}
      - delta:
          path: s3://{bucket}/delta
          storage_options:
            aws_endpoint: {s3}
            aws_region: eu-west-1
            aws_access_key_id: {key}
            aws_secret_access_key: {secret}
            aws_allow_http: "true"
"""
"""Windows into a file and a Delta table; more outputs may follow."""
CONFIG = (
    WINDOWS_TO_DELTA
    + """\
      - iceberg:
          catalog: {{ url: "{rest}", auth: {{ bearer: {token} }} }}
          namespace: demo
          table: windows
      - parquet: {{ path: './small/${{! this.light }}' }}
spark: {{ master: "local[1]" }}
"""
)


def open_iceberg(rest: IcebergRest) -> Any:
    return load_catalog("rest", type="rest", uri=rest.url).load_table("demo.windows")


def open_delta(s3: S3) -> DeltaTable:
    options = {
        "aws_endpoint": s3.url,
        "aws_region": "eu-west-1",
        "aws_access_key_id": KEY,
        "aws_secret_access_key": SECRET,
        "aws_allow_http": "true",
    }
    return DeltaTable(f"s3://{BUCKET}/delta", storage_options=options)


class Outages:
    """A stream into three tables, and what happens to it."""

    def __init__(self, running: Program, directory: Path) -> None:
        self._running = running
        self._directory = directory

    def count(self) -> int:
        out = self._directory / "out.jsonl"
        return len(out.read_bytes().splitlines()) if out.exists() else 0

    def wait_for_windows(self, more: int = 6) -> None:
        wanted = self.count() + more
        self._running.wait_for(lambda: self.count() >= wanted, 120, "for further windows")

    @contextmanager
    def outage(self, output: str, *texts: str) -> Iterator[None]:
        """Wait until an output has told what is wrong in the block, and for some time more."""
        before = len(self._running.lines())

        def is_told() -> bool:
            lines = self._running.lines()[before:]
            errors = [one["msg"] for one in lines if one.get("path", "").endswith(output)]
            return any(text in error for error in errors for text in texts)

        yield
        self._running.wait_for(is_told, 120, f"for an error of {output}")
        time.sleep(OUTAGE_S)


def set_s3_keys(s3: S3, *, valid: bool) -> None:
    """Have the server refuse the keys, of which it knows none, or ask for none."""
    content = b"1000000" if valid else b"0"
    httpx2.post(f"{s3.url}/moto-api/reset-auth", content=content).raise_for_status()


def test_outages_of_what_tables_are_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = tmp_path / "tables.yaml"
    with (
        s3_server(tmp_path) as s3,
        iceberg_rest(tmp_path) as rest,
        small_disk(tmp_path / "small", DISK_BYTES),
    ):
        text = CONFIG.format(
            bucket=BUCKET, s3=s3.url, key=KEY, secret=SECRET, rest=rest.url, token=TOKEN
        )
        config.write_text(text)
        with program(config, tmp_path / "checkpoint") as running:
            outages = Outages(running, tmp_path)
            running.wait_running()
            outages.wait_for_windows()
            with outages.outage("outputs.2", "Connection", "refused"):
                rest.kill()
            rest.start()
            outages.wait_for_windows()
            with outages.outage("outputs.1", "privileges"):
                set_s3_keys(s3, valid=False)
            set_s3_keys(s3, valid=True)
            outages.wait_for_windows()
            filler = tmp_path / "small" / "filler"
            with outages.outage("outputs.3", "No space left on device"):
                fill(filler)
            filler.unlink()
            outages.wait_for_windows()
            with open_iceberg(rest).update_schema() as update:
                update.add_column("remark", update._schema.find_type("light"))
            outages.wait_for_windows()
            assert running.stop() == 0
        tables = {
            "delta": open_delta(s3).to_pyarrow_table().to_pylist(),
            "iceberg": open_iceberg(rest).scan().to_arrow().drop_columns(["remark"]).to_pylist(),
            "parquet": [
                row
                for path in (tmp_path / "small").rglob("*.parquet")
                for row in pq.ParquetFile(path).read().to_pylist()
            ],
        }
    check_rows(tmp_path, tables)
    logs = "".join(path.read_text() for path in tmp_path.glob("log-*.jsonl"))
    assert SECRET not in logs and TOKEN not in logs
    assert "\\u001b" not in logs


def fill(path: Path) -> None:
    """Write a file until its disk is full."""
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return


def check_rows(directory: Path, tables: dict[str, list[dict[str, Any]]]) -> None:
    file = [json.loads(line) for line in (directory / "out.jsonl").read_bytes().splitlines()]
    ids = sorted(number for row in file for number in row["ids"])
    assert ids == list(range(len(ids)))

    as_text: Callable[[Any], str] = lambda row: json.dumps(row, sort_keys=True)  # noqa: E731
    wanted = sorted(map(as_text, file))
    for name, rows in tables.items():
        assert sorted(map(as_text, rows)) == wanted, name
