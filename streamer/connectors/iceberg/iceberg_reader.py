"""Reads an Iceberg table: all rows of a snapshot, and what later ones add; see `TableReader`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import ManifestEntryStatus
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot, ancestors_of

from streamer.connectors.iceberg.file_rows import IcebergColumns, read_file_rows
from streamer.connectors.iceberg.gcs_token import GcsToken
from streamer.connectors.iceberg.iceberg_table import is_catalog_missing, shorten_error
from streamer.connectors.iceberg.snapshot_files import (
    ListedFile,
    SnapshotFiles,
    UnreadableDeletesError,
)
from streamer.connectors.tables.file_columns import RowSelection
from streamer.connectors.tables.input_fields import ROWS, SKIP
from streamer.connectors.tables.row_values import row_values
from streamer.connectors.tables.table_client import TableUnavailableError
from streamer.connectors.tables.table_reader import (
    DELETE,
    INSERT,
    NO_VERSION,
    READ,
    DataFile,
    TablePiece,
    TableReadError,
    TableRows,
    TableStep,
    describe_piece,
)
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.permissions import ALL, Permissions
from streamer.core.timestamps import parse_rfc3339

_NS_PER_MS: Final = 1_000_000
_PARQUET: Final = "PARQUET"
_AGAIN: Final = "Delete the stream's checkpoint to read the table from the beginning"


@dataclass(frozen=True)
class IcebergReader:
    """One Iceberg table, to be read; see `TableReader`.

    Attributes:
        catalog: the name of the catalog.
        properties: of the catalog, as PyIceberg names them.
        identifier: the levels of the namespace, and the name of the table.
        selection: what is read of each row.
        on_change: what is done about snapshots that change rows: `stop`, `skip`, or `rows`.
        permissions: whether files of the machine may be read, wherever the catalog says they are.
        token: of the store of files; None where it needs none.
    """

    catalog: str
    properties: Mapping[str, str]
    identifier: tuple[str, ...]
    selection: RowSelection
    on_change: str
    permissions: Permissions = ALL
    token: GcsToken | None = field(default=None, compare=False)
    _known: _Known = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_known", _Known())

    def __reduce__(self) -> Any:
        settings = (
            *(self.identifier, self.selection, self.on_change),
            *(self.permissions, self.token),
        )
        return IcebergReader, (self.catalog, dict(self.properties), *settings)

    def describe(self) -> str:
        """Return where the table is."""
        return f"the Iceberg table {self.name}"

    @property
    def name(self) -> str:
        """The namespace and the name."""
        return ".".join(self.identifier)

    def identity(self) -> str:
        """Return the identifier that the table got when it was made."""
        table = self._known.table or self._refresh()
        return "" if table is None else str(table.metadata.table_uuid)

    def newest_version(self) -> int | None:
        """Return the current snapshot; `NO_VERSION` where the table is empty; None without it."""
        table = self._refresh()
        if table is None:
            return None
        current = table.metadata.current_snapshot()
        return NO_VERSION if current is None else current.snapshot_id

    def find_start(self, text: str) -> int:
        """Return the snapshot before the one that a number or a time names.

        Raises:
            TableReadError: the table does not have it, or not any more.
        """
        lineage = self._list_lineage()
        if text.isdecimal():
            if matching := [one for one in lineage if one.snapshot_id == int(text)]:
                return _parent_of(matching[0])
            listed = ", ".join(str(one.snapshot_id) for one in lineage[-10:])
            raise TableReadError(
                f"start_from is {text}; {self.describe()} has the snapshots {listed}"
            )
        since = parse_rfc3339(text).ns // _NS_PER_MS
        later = [one for one in lineage if one.timestamp_ms >= since]
        if not later:
            return lineage[-1].snapshot_id if lineage else NO_VERSION
        return _parent_of(later[0])

    def _list_lineage(self) -> list[Snapshot]:
        """Return the snapshots that lead to the current one, the oldest first."""
        table = self._table()
        current = table.metadata.current_snapshot()
        return list(ancestors_of(current, table.metadata))[::-1]

    def versions_after(self, version: int) -> Iterator[int]:
        """Give the snapshots that follow one, up to the current one.

        Raises:
            TableReadError: the table was rolled back, or they have expired.
        """
        table = self._refresh()
        if table is None:
            return
        lineage = self._list_lineage()
        for at in range(len(lineage) - 1, -1, -1):
            if lineage[at].snapshot_id == version:
                yield from (one.snapshot_id for one in lineage[at + 1 :])
                return
        if not lineage or _is_child(lineage[0], version):
            # The snapshot itself may have expired: it was read.
            yield from (one.snapshot_id for one in lineage)
            return
        if table.metadata.snapshot_by_id(version) is not None:
            raise TableReadError(
                f"{self.describe()} was rolled back: snapshot {version}, up to which this stream "
                f"has read it, does not lead to the current one. {_AGAIN}"
            )
        raise self._expired_error(lineage[0].snapshot_id, "follow the one that was read last")

    def _expired_error(self, version: int, what: str) -> TableReadError:
        return TableReadError(
            f"snapshots of {self.describe()} have expired that {what}: the oldest one is "
            f"{version}. {_AGAIN}, and keep snapshots for longer "
            "(history.expire.max-snapshot-age-ms)"
        )

    def count_groups(self, step: TableStep) -> int:
        """Return the number of manifests.

        Raises:
            TableReadError: the snapshot changes rows.
        """
        files = self._open_snapshot(step.version)
        if step.is_snapshot:
            return len(files.manifests)
        summary = files.snapshot.summary
        operation = summary.operation if summary else Operation.APPEND
        if operation == Operation.REPLACE:
            return 0
        if operation == Operation.APPEND or not files.removes_rows:
            return len(files.own_manifests)
        if self.on_change == SKIP:
            return 0
        name = f"snapshot {step.version} of {self.describe()} ({operation.value})"
        if self.on_change != ROWS:
            raise TableReadError(
                f"{name} changes or deletes rows, and this input reads what is appended. Set "
                "on_change: skip to leave such snapshots out, or on_change: rows to get their "
                "rows with the metadata operation"
            )
        if files.adds_deletes:
            raise TableReadError(
                f"{name} deletes rows and leaves their files as they are (merge-on-read); "
                "on_change: rows reads files that are written anew. Set write.delete.mode, "
                "write.update.mode and write.merge.mode of the table to copy-on-write, or "
                "on_change: skip"
            )
        return 2 * len(files.own_manifests)

    def list_files(self, step: TableStep, group: int) -> Sequence[DataFile]:
        """Return the files of a manifest; what is removed comes before what is added.

        Raises:
            TableReadError: it has expired, or deletes rows in a way that cannot be read.
        """
        key = (step, group)
        if self._known.files is None or self._known.files[0] != key:
            with self._translate_errors():
                self._known.files = (key, self._read_manifest(step, group))
        return self._known.files[1]

    def _read_manifest(self, step: TableStep, group: int) -> list[DataFile]:
        files = self._open_snapshot(step.version)
        if step.is_snapshot:
            listed = files.list_live(files.manifests[group])
            return [self._make_file(one, READ) for one in listed]
        own = files.own_manifests
        if group < len(own) and files.removes_rows and self.on_change == ROWS:
            removed = files.list_changed(own[group], ManifestEntryStatus.DELETED)
            return [self._make_file(one, DELETE) for one in removed]
        added = files.list_changed(own[group % len(own)], ManifestEntryStatus.ADDED)
        return [self._make_file(one, INSERT) for one in added]

    def _make_file(self, one: ListedFile, operation: str) -> DataFile:
        file = one.file
        rows = file.record_count if one.is_needed else 0
        if rows and one.detail.format != _PARQUET:
            raise TableReadError(
                f"{file.file_path} of {self.describe()} is of the format {one.detail.format}; "
                "this input reads Parquet. Write the files anew by rewrite_data_files"
            )
        return DataFile(file.file_path, rows, file.file_size_in_bytes, operation, one.detail)

    def count_rows(self, file: DataFile) -> int:
        """Return the number of rows, which manifests always have."""
        return file.rows

    def context_of(self, step: TableStep) -> IcebergColumns:
        """Return the columns of a snapshot, and what reads its files."""
        table = self._table()
        schema = self._open_snapshot(step.version).schema
        needed = self.selection.needed_schema(schema_to_pyarrow(schema, include_field_ids=False))
        names = table.metadata.name_mapping()
        version = table.metadata.format_version
        return IcebergColumns(schema.select(*needed.names), names, version, table.io)

    def read(self, piece: TablePiece, ex: Execution) -> Iterator[TableRows]:
        """Read rows of a file.

        Raises:
            TableReadError: it is gone, or damaged.
        """
        rows, file = (piece.first, piece.row_count), piece.file
        for path in (file.path, *(one.path for one in file.detail.deletes)):
            if local := find_local_path(path):
                self.permissions.file(local)
        try:
            batches = read_file_rows(file.path, rows, piece.context, file.detail, self.selection)
            for batch in batches:
                yield TableRows(batch)
        except FileNotFoundError:
            raise TableReadError(
                f"{file.path} of {self.describe()} is gone: its snapshot has expired, or somebody "
                f"else has deleted it before this stream has read it. {_AGAIN}, and keep snapshots "
                "for longer (history.expire.max-snapshot-age-ms)"
            ) from None
        except (pa.ArrowException, ValueError) as error:
            raise TableReadError(
                f"{file.path} of {self.describe()} cannot be read: {shorten_error(error)}"
            ) from None

    def metadata_of(self, piece: TablePiece) -> dict[str, Any]:
        """Return the table, its version, the file and the operation."""
        return describe_piece(self.name, piece)

    def documents_of(self, rows: pa.RecordBatch) -> Iterator[dict[str, Any]]:
        """Give an object for each row."""
        return row_values(rows)

    def check(self) -> str:
        """Check that the table can be read; return what is there, in words.

        Raises:
            StreamerError: it has no such columns.
        """
        table = self._refresh()
        if table is None:
            return "is not there yet"
        schema = schema_to_pyarrow(table.schema(), include_field_ids=False)
        self.selection.check(schema, self.describe())
        snapshot = table.metadata.current_snapshot()
        return f"has {len(schema)} columns, snapshot {snapshot.snapshot_id if snapshot else 'none'}"

    def _open_snapshot(self, version: int) -> SnapshotFiles:
        known = self._known.snapshot
        if known is not None and known.snapshot.snapshot_id == version:
            return known
        table = self._table()
        snapshot = table.metadata.snapshot_by_id(version)
        if snapshot is None:
            lineage = self._list_lineage()
            oldest = lineage[0].snapshot_id if lineage else NO_VERSION
            raise self._expired_error(oldest, f"this stream reads, {version} among them")
        with self._translate_errors():
            conditions = self.selection.conditions
            known = SnapshotFiles(table.metadata, table.io, snapshot, conditions)
        self._known.snapshot = known
        return known

    def _table(self) -> Table:
        """Return the table as this process has seen it last."""
        table = self._known.table or self._refresh()
        if table is None:
            raise TableUnavailableError(f"{self.describe()} is not there any more")
        return table

    def _refresh(self) -> Table | None:
        """Return the table as it is now; None where there is none."""
        known = self._known
        if known.catalog is None and is_catalog_missing(self.properties):
            return None
        with self._translate_errors():
            if self.token is not None and self.token.is_stale:
                known.table = known.catalog = None
            try:
                if known.catalog is None:
                    more = {} if self.token is None else self.token.read_properties()
                    known.catalog = load_catalog(self.catalog, **self.properties, **more)
                if known.table is None:
                    known.table = known.catalog.load_table(self.identifier)
                else:
                    known.table.refresh()
            except (NoSuchTableError, NoSuchNamespaceError):
                known.table = None
            return known.table

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except (StreamerError, TableUnavailableError):
            raise
        except FileNotFoundError as error:
            raise TableReadError(
                f"{self.describe()} lacks a file of its metadata: {shorten_error(error)}. Its "
                f"snapshot has expired, or somebody else has deleted it. {_AGAIN}"
            ) from None
        except UnreadableDeletesError as error:
            raise TableReadError(
                f"{self.describe()} deletes rows by the values of columns (equality deletes), "
                f"which this input does not read: {error}. Write the files anew by "
                "rewrite_data_files"
            ) from None
        except Exception as error:
            # The catalogs' libraries have exceptions of their own.
            self._known.table = self._known.catalog = None
            raise TableUnavailableError(f"{self.describe()}: {shorten_error(error)}") from error


def find_local_path(location: str) -> str:
    """Return the path of a file of the machine; empty for one in a store."""
    scheme, mark, rest = location.partition("://")
    if not mark:
        return location.removeprefix("file:")
    return rest if scheme == "file" else ""


def _parent_of(snapshot: Snapshot) -> int:
    parent = snapshot.parent_snapshot_id
    return NO_VERSION if parent is None else parent


def _is_child(snapshot: Snapshot, version: int) -> bool:
    """Return whether a snapshot is the one that follows another."""
    if version == NO_VERSION:
        # PyIceberg forgets the parent when it expires; the number of the commit stays.
        return snapshot.parent_snapshot_id is None and (snapshot.sequence_number or 0) <= 1
    return snapshot.parent_snapshot_id == version


class _Known:
    """Knowledge of one process about the table."""

    def __init__(self) -> None:
        self.catalog: Catalog | None = None
        self.table: Table | None = None
        self.snapshot: SnapshotFiles | None = None
        self.files: tuple[tuple[TableStep, int], list[DataFile]] | None = None
