"""Data files of an Iceberg table: written by whoever has the rows, committed by the driver.

A file is written for the schema, the partitions and the sort order of the table at one moment.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import parquet
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import (
    _determine_partitions,
    bin_pack_arrow_table,
    pyarrow_to_schema,
    write_file,
)
from pyiceberg.manifest import DataFile
from pyiceberg.partitioning import PartitionKey
from pyiceberg.schema import sanitize_column_names
from pyiceberg.table import TableProperties, WriteTask
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.utils.properties import property_as_int

from streamer.connectors.iceberg.sort_rows import sort_rows
from streamer.connectors.tables.column_types import normalize_schema
from streamer.connectors.tables.table_client import TableUnavailableError
from streamer.connectors.tables.written_files import FilePart, WrittenFile

_PARQUET: Final = "parquet"
_LOCAL_SCHEMES: Final = ("", "file")


@dataclass(frozen=True)
class _NamedTask(WriteTask):
    """Rows of one file, whose name says which micro-batch they are of."""

    name: str = ""

    def generate_data_file_filename(self, extension: str) -> str:
        """Return the name of the file."""
        return f"{self.name}-{self.task_id:03d}.{extension}"


class IcebergFileWriter:
    """Writes files for one table as it is at one moment; see `FileWriter`."""

    def __init__(self, metadata: TableMetadata, io: FileIO) -> None:
        """Take the table.

        Args:
            metadata: of the table, or of one that a transaction makes.
            io: opens its files.
        """
        self._metadata, self._io = metadata, io
        self._schema = metadata.schema()
        self.columns = normalize_schema(self._schema.as_arrow())
        self.layout = " ".join(
            map(
                str,
                (
                    metadata.table_uuid,
                    self._schema.schema_id,
                    metadata.default_spec_id,
                    metadata.default_sort_order_id,
                ),
            )
        )
        place = metadata.properties.get(TableProperties.WRITE_DATA_PATH) or metadata.location
        self.is_remote = urlsplit(place).scheme not in _LOCAL_SCHEMES

    @property
    def is_plain(self) -> bool:
        """Whether files can be read back by the names of their columns alone."""
        kind = self._metadata.properties.get(TableProperties.WRITE_FILE_FORMAT, _PARQUET)
        is_same: bool = sanitize_column_names(self._schema) == self._schema
        return kind.lower() == _PARQUET and is_same

    def split(self, rows: pa.Table, limit: int) -> Sequence[FilePart] | None:
        """Return rows by their partitions; None where there are more than a limit."""
        if self._metadata.spec().is_unpartitioned():
            return [FilePart(rows, None)]
        made = _determine_partitions(self._metadata.spec(), self._schema, rows)
        parts = [
            FilePart(one.arrow_table_partition, one.partition_key)
            for one in islice(made, limit + 1)
        ]
        return parts if len(parts) <= limit else None

    def write(self, parts: Sequence[FilePart], name: str) -> list[WrittenFile]:
        """Write files; see `FileWriter`."""
        try:
            entries = self.write_entries(parts, name)
        except Exception as error:
            # The libraries of stores have exceptions of their own.
            raise TableUnavailableError(f"{type(error).__name__}: {error}") from error
        return [
            WrittenFile(one.file_path, one.record_count, self.layout, pickle.dumps(one))
            for one in entries
        ]

    def write_entries(self, parts: Sequence[FilePart], name: str) -> list[DataFile]:
        """Write files, and return their entries for a manifest."""
        size = property_as_int(
            self._metadata.properties,
            TableProperties.WRITE_TARGET_FILE_SIZE_BYTES,
            TableProperties.WRITE_TARGET_FILE_SIZE_BYTES_DEFAULT,
        )
        assert size is not None
        tasks: list[_NamedTask] = []
        order = self._metadata.sort_order()
        for part in parts:
            rows = sort_rows(part.rows, self._schema, order)
            schema = pyarrow_to_schema(
                rows.schema,
                name_mapping=self._schema.name_mapping,
                format_version=self._metadata.format_version,
            )
            key = part.partition if isinstance(part.partition, PartitionKey) else None
            for batches in bin_pack_arrow_table(rows, size):
                tasks.append(_NamedTask(_NO_ID, len(tasks), schema, batches, None, key, name))
        return list(write_file(self._io, self._metadata, iter(tasks)))


_NO_ID: Any = None
"""The identifier of a write, which names of files have instead."""


def read_entry(file: WrittenFile) -> DataFile:
    """Return the entry of a file for a manifest."""
    entry: DataFile = pickle.loads(file.entry)
    return entry


def read_data_file(io: FileIO, file: WrittenFile) -> pa.Table:
    """Return the rows of a file."""
    with io.new_input(file.path).open() as source:
        rows = parquet.read_table(source)
    schema = normalize_schema(rows.schema)
    return rows.cast(pa.schema([one.with_nullable(True) for one in schema]))
