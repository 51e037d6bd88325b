"""kill -9 of a stream whose workers write the data files of a table: every row once."""

from __future__ import annotations

import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

from tests.faults.program import program
from tests.processes import python_workers

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

KILLS = int(os.environ.get("STREAMER_KILLS", "1"))
SEED = int(os.environ.get("STREAMER_SEED", time.time_ns() // 10**9 % 100_000))
CRASH_POINTS = Path(__file__).parent / "crash_points"
OUTPUTS = {
    "delta": "delta: { path: ./delta }",
    "iceberg": (
        "iceberg: { catalog: { url: 'sqlite:///catalog.db', warehouse: ./warehouse }, "
        "namespace: demo, table: rows }"
    ),
}
CONFIG = """
http: { enabled: false }
input:
  generate:
    interval: 5ms
    mapping: |
      root.id = count("id") - 1
      root.text = "0123456789".repeat(10000)
output:
  %s
spark:
  master: local[2]
  trigger_interval: 500ms
"""

DELIVERED = "The first micro-batch is delivered"
WORKERS = "workers"
"""Ends the workers, and not the driver: their files are there, and nobody knows them."""

STEPS = {
    "delta": [
        "streamer.engine.driver.task_files TaskFiles take after",
        "streamer.connectors.delta.delta_table DeltaClient _add_files after",
        WORKERS,
    ],
    "iceberg": [
        "streamer.engine.driver.task_files TaskFiles take after",
        "streamer.connectors.iceberg.iceberg_table IcebergClient _write_files after",
        "streamer.connectors.iceberg.iceberg_table IcebergClient commit after",
        WORKERS,
    ],
}


def read_table(name: str, directory: Path) -> tuple[list[int], list[str]]:
    """Return the numbers in a table, and the names of its files."""
    if name == "delta":
        table = DeltaTable(directory / "delta")
        return table.to_pyarrow_table(columns=["id"]).column("id").to_pylist(), table.file_uris()
    properties = {"uri": f"sqlite:///{directory}/catalog.db", "warehouse": f"{directory}/warehouse"}
    scan = load_catalog("default", type="sql", **properties).load_table("demo.rows").scan()
    return (
        scan.to_arrow().column("id").to_pylist(),
        [task.file.file_path for task in scan.plan_files()],
    )


def has_file_of_worker(files: list[str]) -> bool:
    return any("driver" not in path and "part-00000" not in path for path in files)


@pytest.mark.parametrize("name", OUTPUTS)
def test_rows_of_workers_come_once(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    print(f"STREAMER_SEED={SEED}")
    chance = random.Random(SEED)
    monkeypatch.chdir(tmp_path)
    config, checkpoint = tmp_path / "rows.yaml", tmp_path / "checkpoint"
    config.write_text(CONFIG % OUTPUTS[name])
    for number in range(KILLS):
        step = STEPS[name][(SEED + number) % len(STEPS[name])]
        path = os.pathsep.join([str(CRASH_POINTS), os.environ.get("PYTHONPATH", "")])
        env = {"PYTHONPATH": path.rstrip(os.pathsep)}
        if step != WORKERS:
            env["STREAMER_TEST_CRASH"] = f"{step} {chance.randint(2, 4)}"
        with program(config, checkpoint, env=env) as running:
            running.wait_running()
            if step != WORKERS:
                running.wait_for(lambda: running.process.poll() is not None, 240, f"for {step}")
                assert running.process.returncode == -9
                continue
            running.wait_for(lambda: DELIVERED in running.messages(), 240, "for rows")
            for _ in range(3):
                time.sleep(chance.uniform(1, 3))
                for worker in python_workers(running.process.pid):
                    with suppress(ProcessLookupError):
                        os.kill(worker, signal.SIGKILL)
            running.kill()
    with program(config, checkpoint) as running:
        running.wait_for(lambda: DELIVERED in running.messages(), 240, "for rows")
        running.wait_for(lambda: has_file_of_worker(read_table(name, tmp_path)[1]), 240, "for it")
        assert running.stop() == 0
    numbers, files = read_table(name, tmp_path)
    assert sorted(numbers) == list(range(len(numbers)))
    assert len(numbers) > 100
    assert has_file_of_worker(files)
