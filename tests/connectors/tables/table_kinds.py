"""Tables of each format in a directory, and how they are read back without this program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from deltalake import DeltaTable
from pyiceberg.catalog import Catalog, load_catalog

from streamer.connectors.delta.delta_table import DeltaClient
from streamer.connectors.iceberg.iceberg_table import (
    CatalogConnection,
    IcebergClient,
    WriteSettings,
)
from streamer.connectors.iceberg.partition_spec import PartitionTerm
from streamer.connectors.tables.row_operations import RowOperation, repeat_operation
from streamer.connectors.tables.table_client import TableClient, TableCommit


def open_catalog(directory: Path) -> Catalog:
    """Return the Iceberg catalog of a directory."""
    properties = {"uri": f"sqlite:///{directory}/catalog.db", "warehouse": f"{directory}/lake"}
    return load_catalog("default", type="sql", **properties)


def make_delta(
    directory: Path, keys: Sequence[str] = (), partition_by: Sequence[str] = ()
) -> TableClient:
    return DeltaClient(f"{directory}/table", {}, keys=keys, partition_by=partition_by)


def make_iceberg(
    directory: Path, keys: Sequence[str] = (), partition_by: Sequence[str] = ()
) -> TableClient:
    catalog = open_catalog(directory)
    return IcebergClient(
        CatalogConnection(catalog.name, catalog.properties),
        "demo",
        "rows",
        WriteSettings([PartitionTerm(name, "identity") for name in partition_by], keys=keys),
    )


def read_delta(directory: Path) -> pa.Table:
    return DeltaTable(f"{directory}/table").to_pyarrow_table()


def read_iceberg(directory: Path) -> pa.Table:
    return open_catalog(directory).load_table("demo.rows").scan().to_arrow()


def replacing(commit: TableCommit) -> TableCommit:
    """Return a commit whose rows take the places of those with their keys."""
    operations = repeat_operation(RowOperation.UPSERT, commit.rows.num_rows)
    return commit._replace(operations=operations)


class TableKind(NamedTuple):
    """A format of tables.

    Attributes:
        name: of the format.
        make: makes a client of the table in a directory.
        read: returns what is in it.
    """

    name: str
    make: Callable[..., TableClient]
    read: Callable[[Path], pa.Table]

    def rows(self, directory: Path, by: str = "n") -> list[dict[str, Any]]:
        """Return the rows, in order of a column."""
        rows: list[dict[str, Any]] = self.read(directory).to_pylist()
        return sorted(rows, key=lambda row: (row[by] is None, row[by]))


KINDS = [
    TableKind("delta", make_delta, read_delta),
    TableKind("iceberg", make_iceberg, read_iceberg),
]
