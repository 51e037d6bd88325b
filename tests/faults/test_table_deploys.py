"""A deploy while a table has a micro-batch that the checkpoint has not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

from tests.faults.program import program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

CRASH_POINTS = Path(__file__).parent / "crash_points"
CONFIG = """
input: {{ file: {{ paths: [in.jsonl] }} }}
buffer:
  tumbling_window: {{ size: {size}, timestamp_mapping: root = this.at, end_of_input: keep }}
pipeline:
  processors:
    - mapping: |
        root = if batch_index() == 0 {{ {{"ids": json("id").from_all()}} }} else {{ deleted() }}
output:
  broker:
    pattern: fan_out
    outputs:
{outputs}
spark: {{ master: "local[1]" }}
"""
OUTPUTS = [
    "      - delta: { path: ./delta }",
    """      - iceberg:
          catalog: { url: "sqlite:///catalog.db", warehouse: ./warehouse }
          namespace: demo
          table: windows""",
]
DEPLOYS = {
    "other windows": {"size": "20s", "outputs": "\n".join(OUTPUTS)},
    "outputs at other places": {"size": "10s", "outputs": "\n".join(reversed(OUTPUTS))},
}


@pytest.mark.parametrize("deploy", DEPLOYS.values(), ids=DEPLOYS)
def test_a_deploy_writes_no_micro_batch_into_a_table_twice(
    deploy: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both tables have a micro-batch whose commit Spark has not noted."""
    monkeypatch.chdir(tmp_path)
    config, checkpoint = tmp_path / "tables.yaml", tmp_path / "checkpoint"
    lines = [{"id": number, "at": 1_700_000_000 + number} for number in range(100)]
    (tmp_path / "in.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    config.write_text(CONFIG.format(size="10s", outputs="\n".join(OUTPUTS)))
    crash = "streamer.connectors.iceberg.iceberg_table IcebergClient commit after 1"
    env = {"STREAMER_TEST_CRASH": crash, "PYTHONPATH": str(CRASH_POINTS)}
    options = ("--watcher", "--on-reset", "discard")
    with program(config, checkpoint, *options, env=env) as running:
        running.wait_for(lambda: running.process.poll() is not None, 240, "for its commit")
        assert running.process.returncode == -9
    config.write_text(CONFIG.format(**deploy))
    with program(config, checkpoint, *options) as running:
        assert running.finish(240) == 0
    catalog = load_catalog("default", type="sql", uri="sqlite:///catalog.db", warehouse="warehouse")
    tables = {
        "delta": DeltaTable("delta").to_pyarrow_table(),
        "iceberg": catalog.load_table("demo.windows").scan().to_arrow(),
    }
    for name, table in tables.items():
        ids = sorted(number for row in table.to_pylist() for number in row["ids"])
        assert ids == list(range(90)), name
