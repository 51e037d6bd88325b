"""Data files of a Delta table: written by whoever has the rows, committed by the driver.

Source: Delta's protocol, sections "Add File and Remove File", "Per-file Statistics" and "Partition
Value Serialization".
"""

from __future__ import annotations

import json
import math
import posixpath
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.transaction import AddAction
from pyarrow import compute, fs, parquet

from streamer.connectors.delta.delta_log import open_files, read_partition_value
from streamer.connectors.tables.column_types import normalize_schema
from streamer.connectors.tables.table_client import TableUnavailableError
from streamer.connectors.tables.written_files import FilePart, WrittenFile

_KNOWN_FEATURES: Final = frozenset(
    {"appendOnly", "timestampNtz", "deletionVectors", "v2Checkpoint", "vacuumProtocolCheck"}
)
"""Features of tables that ask nothing of a file that is appended."""

_MAX_PLAIN_VERSION: Final = 2
"""Of the writers' protocol: up to this one it has constraints beyond plain files, and no more."""

_RULES: Final = ("delta.constraints.", "delta.columnMapping.mode", "delta.enableRowTracking")
_COLUMN_RULES: Final = ("delta.invariants", "delta.generationExpression", "delta.identity.start")
_STATISTICS_COLUMNS: Final = 32
_MAX_STATISTICS_CHARACTERS: Final = 64
_NULL_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
_MICROSECONDS: Final = 1_000


class DeltaFileWriter:
    """Writes files for one table as it is at one moment; see `FileWriter`."""

    def __init__(self, table: DeltaTable, uri: str, options: Mapping[str, str]) -> None:
        """Take the table.

        Args:
            table: the table.
            uri: its directory, or its URL.
            options: for the store.
        """
        metadata = table.metadata()
        self._files = open_files(uri, options)
        self._partition_by = list(metadata.partition_columns)
        self.columns = normalize_schema(pa.schema(table.schema().to_arrow()))
        self.layout = json.dumps([metadata.id, table.schema().to_json(), self._partition_by])
        self.is_remote = "://" in uri and not uri.startswith("file:")
        self.is_plain = _is_plain(table) and all(
            _is_plain_partition(self.columns.field(name).type) for name in self._partition_by
        )

    def split(self, rows: pa.Table, limit: int) -> Sequence[FilePart] | None:
        """Return rows by their partitions; None where there are more than a limit."""
        if not self._partition_by:
            return [FilePart(rows, {})]
        keys = rows.select(self._partition_by).group_by(self._partition_by).aggregate([])
        if keys.num_rows > limit:
            return None
        parts = []
        for key in keys.to_pylist():
            condition = compute.scalar(True)
            for name, value in key.items():
                field = compute.field(name)
                condition &= field.is_null() if value is None else field == value
            parts.append(FilePart(rows.filter(condition), key))
        return parts

    def write(self, parts: Sequence[FilePart], name: str) -> list[WrittenFile]:
        """Write files; see `FileWriter`."""
        try:
            return [self._write_part(part, f"{name}-{at:03d}") for at, part in enumerate(parts)]
        except (OSError, pa.ArrowException) as error:
            raise TableUnavailableError(f"{type(error).__name__}: {error}") from error

    def _write_part(self, part: FilePart, name: str) -> WrittenFile:
        assert isinstance(part.partition, dict)
        values = {one: _format_partition(value) for one, value in part.partition.items()}
        directory = "/".join(
            f"{quote(one, safe='')}={_NULL_PARTITION if text is None else quote(text, safe='')}"
            for one, text in values.items()
        )
        path = posixpath.join(directory, f"part-{name}.zstd.parquet")
        rows = part.rows.drop_columns(list(values))
        if isinstance(self._files, fs.SubTreeFileSystem) and directory:
            self._files.create_dir(directory)
        with self._files.open_output_stream(path) as out:
            parquet.write_table(rows, out, compression="zstd")
            size = out.tell()
        entry = {
            "path": path,
            "size": size,
            "partition_values": values,
            "modification_time": time.time_ns() // 1_000_000,
            "stats": json.dumps(make_statistics(rows)),
        }
        return WrittenFile(path, rows.num_rows, self.layout, json.dumps(entry).encode())


def make_action(file: WrittenFile) -> AddAction:
    """Return the action of the log that adds a file."""
    return AddAction(**json.loads(file.entry), data_change=True)


def read_data_file(files: fs.FileSystem, file: WrittenFile, columns: pa.Schema) -> pa.Table:
    """Return the rows of a file, with the columns of its partition.

    Args:
        files: of the table.
        file: one of them.
        columns: of the table, for the types of partitions; those that it has not are texts.
    """
    with files.open_input_file(file.path) as source:
        rows = parquet.read_table(source)
    for name, text in json.loads(file.entry)["partition_values"].items():
        kind = columns.field(name).type if name in columns.names else pa.string()
        value = read_partition_value(text, kind)
        rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
    return rows


def _is_plain(table: DeltaTable) -> bool:
    """Return whether a file that is appended needs nothing but its rows."""
    protocol, metadata = table.protocol(), table.metadata()
    features = frozenset(protocol.writer_features or ())
    if protocol.min_writer_version > _MAX_PLAIN_VERSION and not features <= _KNOWN_FEATURES:
        return False
    if any(name.startswith(_RULES) for name in metadata.configuration):
        return False
    return not any(
        rule in json.dumps(field.metadata)
        for field in table.schema().fields
        for rule in _COLUMN_RULES
    )


def _is_plain_partition(kind: pa.DataType) -> bool:
    """Return whether values of a type have one form as text."""
    types = pa.types
    return bool(
        types.is_string(kind)
        or types.is_integer(kind)
        or types.is_boolean(kind)
        or types.is_date32(kind)
    )


def _format_partition(value: Any) -> str | None:
    """Return the value of a partition as the log has it; an empty text is null there."""
    if value is None or value == "":
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def make_statistics(rows: pa.Table) -> dict[str, Any]:
    """Return the statistics of a file: its rows, nulls, and the bounds of plain columns.

    Example:
        >>> make_statistics(pa.table({"n": [1, None, 3]}))
        {'numRecords': 3, 'minValues': {'n': 1}, 'maxValues': {'n': 3}, 'nullCount': {'n': 1}}
    """
    least: dict[str, Any] = {}
    most: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for name in rows.schema.names[:_STATISTICS_COLUMNS]:
        column = rows.column(name)
        if pa.types.is_nested(column.type):
            continue
        nulls[name] = column.null_count
        if (bounds := _find_bounds(column)) is not None:
            least[name], most[name] = bounds
    return {
        "numRecords": rows.num_rows,
        "minValues": least,
        "maxValues": most,
        "nullCount": nulls,
    }


def _find_bounds(column: pa.ChunkedArray) -> tuple[Any, Any] | None:
    """Return the least and the largest value, as JSON has them; None where it cannot."""
    types, kind = pa.types, column.type
    if column.null_count == len(column):
        return None
    if types.is_timestamp(kind):
        return _find_time_bounds(column)
    if not (
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_date32(kind)
        or types.is_string(kind)
    ):
        return None
    if types.is_floating(kind) and compute.any(compute.is_nan(column)).as_py():
        return None  # It is larger than all others for some readers, and no JSON.
    bounds = compute.min_max(column).as_py()
    least, most = bounds["min"], bounds["max"]
    if isinstance(least, str):
        return (least, most) if max(len(least), len(most)) <= _MAX_STATISTICS_CHARACTERS else None
    if isinstance(least, float):
        return (least, most) if math.isfinite(least) and math.isfinite(most) else None
    if types.is_date32(kind):
        return least.isoformat(), most.isoformat()
    return least, most


def _find_time_bounds(column: pa.ChunkedArray) -> tuple[str, str]:
    """Return bounds in milliseconds, as the protocol has them; the upper one is rounded up."""
    kind = column.type
    numbers = compute.min_max(column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())).as_py()
    least = numbers["min"] // _MICROSECONDS
    most = -(-numbers["max"] // _MICROSECONDS)
    mark = "Z" if kind.tz else ""

    def format_time(milliseconds: int) -> str:
        time_of: str = (
            pa.scalar(milliseconds, pa.timestamp("ms")).as_py().isoformat("T", "milliseconds")
        )
        return time_of + mark

    return format_time(least), format_time(most)
