"""Rows that go to a branch of an Iceberg table, which readers of `main` do not see yet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streamer.connectors.iceberg.iceberg_table import (
    CatalogConnection,
    IcebergClient,
    WriteSettings,
)
from streamer.connectors.tables.row_operations import RowOperation, repeat_operation
from streamer.connectors.tables.table_client import TableCommit
from tests.connectors.tables.table_kinds import open_catalog


def make_client(directory: Path, branch: str, keys: list[str] | None = None) -> IcebergClient:
    catalog = open_catalog(directory)
    connection = CatalogConnection(catalog.name, catalog.properties)
    return IcebergClient(connection, "demo", "rows", WriteSettings(keys=keys or [], branch=branch))


def rows_of(directory: Path, branch: str) -> list[Any]:
    table = open_catalog(directory).load_table("demo.rows")
    snapshot = table.snapshot_by_name(branch)
    if snapshot is None:
        return []
    return sorted(table.scan(snapshot_id=snapshot.snapshot_id).to_arrow().to_pylist(), key=str)


def commit(client: IcebergClient, batch: int, operation: RowOperation, **columns: Any) -> None:
    rows = pa.table(columns)
    client.commit(TableCommit("w", batch, rows, repeat_operation(operation, rows.num_rows)))


@pytest.mark.parametrize("is_new", [True, False])
def test_a_branch_has_the_rows_until_it_is_published(is_new: bool, tmp_path: Path) -> None:
    before = [] if is_new else [{"n": 0, "v": 0}]
    if not is_new:
        commit(make_client(tmp_path, "main"), 0, RowOperation.INSERT, n=[0], v=[0])
    client = make_client(tmp_path, "audit", ["n"])
    commit(client, 1, RowOperation.INSERT, n=[1], v=[1])
    commit(client, 2, RowOperation.UPSERT, n=[1, 2], v=[7, 2])
    assert client.find_committed("w") == 2
    expected = [*before, {"n": 1, "v": 7}, {"n": 2, "v": 2}]
    assert (rows_of(tmp_path, "audit"), rows_of(tmp_path, "main")) == (expected, before)
    assert "of the branch audit" in client.check()
    assert {one.batch for one in client.read_commits(5)} >= {1, 2}
    # Its owner publishes it.
    table = open_catalog(tmp_path).load_table("demo.rows")
    snapshot = table.snapshot_by_name("audit")
    assert snapshot is not None
    with table.manage_snapshots() as snapshots:
        snapshots.set_current_snapshot(snapshot.snapshot_id)
    assert rows_of(tmp_path, "main") == expected
    commit(client, 3, RowOperation.INSERT, n=[3], v=[3])
    assert len(rows_of(tmp_path, "main")) == len(expected)
