"""Reads a Delta table: all rows of a version, and what later versions add; see `TableReader`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import pyarrow as pa
from deltalake import DeltaTable
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import DeltaError, TableNotFoundError

from streamer.connectors.delta.delta_log import (
    Commit,
    LogFile,
    decode_path,
    has_commit,
    open_files,
    read_commit,
    read_partition_value,
)
from streamer.connectors.tables.file_columns import RowSelection, read_selected
from streamer.connectors.tables.input_fields import ROWS, SKIP
from streamer.connectors.tables.parquet_rows import open_parquet
from streamer.connectors.tables.table_client import TableUnavailableError
from streamer.connectors.tables.table_reader import (
    DELETE,
    INSERT,
    READ,
    DataFile,
    TablePiece,
    TableReadError,
    TableRows,
    TableStep,
)
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.timestamps import parse_rfc3339

_GROUP_FILES: Final = 10_000
"""Files of a snapshot that are objects of Python at once."""

_CHANGE_COLUMN: Final = "_change_type"
_CHANGES: Final = {
    "insert": INSERT,
    "delete": DELETE,
    "update_preimage": "update_before",
    "update_postimage": "update_after",
}
_UNREADABLE_FEATURES: Final = {
    "deletionVectors": "files of which rows are deleted by vectors (write them anew by "
    "REORG TABLE … APPLY (PURGE), and set delta.enableDeletionVectors to false)",
    "columnMapping": "a mapping of column names (delta.columnMapping.mode)",
    "variantType": "columns of the type variant",
}
_NS_PER_MS: Final = 1_000_000


class DeltaColumns(NamedTuple):
    """The columns of a version.

    Attributes:
        schema: all columns.
        partition_columns: those whose values the log has, and not the files.
    """

    schema: pa.Schema
    partition_columns: tuple[str, ...]


@dataclass(frozen=True)
class DeltaReader:
    """One Delta table, to be read; see `TableReader`.

    Attributes:
        uri: a directory, or a URL such as `s3://bucket/table`.
        options: for the store, as the library `object_store` names them.
        selection: what is read of each row.
        on_change: what is done about versions that change rows: `stop`, `skip`, or `rows`.
    """

    uri: str
    options: Mapping[str, str]
    selection: RowSelection
    on_change: str
    _known: _Known = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_known", _Known())

    def __reduce__(self) -> Any:
        return DeltaReader, (self.uri, dict(self.options), self.selection, self.on_change)

    def describe(self) -> str:
        """Return where the table is."""
        return f"the Delta table {self.uri}"

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.uri.rstrip("/").rpartition("/")[2]

    def identity(self) -> str:
        """Return the identifier that the table got when it was made."""
        table = self._known.table or self._open()
        return "" if table is None else str(table.metadata().id)

    def newest_version(self) -> int | None:
        """Return the newest version; None where there is no table."""
        newest = self._known.newest
        if newest is None:
            table = self._open()
            return None if table is None else int(table.version())
        # To open a table reads the names of all its files.
        with self._translate_errors():
            while has_commit(self._files(), newest + 1):
                newest += 1
        self._known.newest = newest
        return newest

    def find_start(self, text: str) -> int:
        """Return the version before the one that a number or a time names.

        Raises:
            TableReadError: the table does not have it any more.
        """
        table = self._open()
        assert table is not None
        if text.isdecimal():
            version = int(text)
            if version <= table.version():
                self._read_commit(version)
            return version - 1
        since = parse_rfc3339(text).ns // _NS_PER_MS
        with self._translate_errors():
            history = table.history()
        times = {int(one["version"]): int(one["timestamp"]) for one in history}
        at_or_after = [version for version, time in times.items() if time >= since]
        if not at_or_after:
            return int(table.version())
        first = min(at_or_after)
        if first == min(times) > 0:
            oldest = datetime.fromtimestamp(times[first] / 1000, UTC).isoformat()
            raise TableReadError(
                f"start_from is {text}; the log of {self.describe()} begins with version {first}, "
                f"of {oldest}. Name a later time, or earliest for all rows"
            )
        return first - 1

    def versions_after(self, version: int) -> Iterator[int]:
        """Give the versions that follow one, up to the newest.

        Raises:
            TableReadError: the table is at an earlier version now.
        """
        newest = self.newest_version()
        if newest is None:
            return
        if newest < version:
            raise TableReadError(
                f"{self.describe()} is at version {newest}, and this stream has read version "
                f"{version}: it is an older copy, or was made anew. Restore the table, or delete "
                "the stream's checkpoint to read it from the beginning"
            )
        yield from range(version + 1, newest + 1)

    def count_groups(self, step: TableStep) -> int:
        """Return the number of lists of files."""
        if not step.is_snapshot:
            return 1
        return int(-(-self._list_snapshot(step.version).num_rows // _GROUP_FILES))

    def list_files(self, step: TableStep, group: int) -> Sequence[DataFile]:
        """Return a list of files, of a snapshot by age, of a commit as the log has them.

        Raises:
            TableReadError: the version changes rows, or is gone.
        """
        if not step.is_snapshot:
            return self._list_commit(step)
        files = self._list_snapshot(step.version).slice(group * _GROUP_FILES, _GROUP_FILES)
        columns = self.context_of(step)
        listed = []
        for row in files.to_pylist():
            partition = {
                name: pa.scalar(row.get(f"partition.{name}"), columns.schema.field(name).type)
                for name in columns.partition_columns
            }
            rows = -1 if row["num_records"] is None else row["num_records"]
            with self._translate_errors():
                path = decode_path(row["path"])
            listed.append(self._make_file(path, rows, row["size_bytes"], READ, partition))
        return listed

    def _list_snapshot(self, version: int) -> pa.Table:
        """Return the files of a version, in the order of their age."""
        if self._known.snapshot is None or self._known.snapshot[0] != version:
            table = self._load(version)
            with self._translate_errors():
                files = pa.table(table.get_add_actions(flatten=True))
            names = ["path", "size_bytes", "num_records", "modification_time"]
            names += [f"partition.{one}" for one in table.metadata().partition_columns]
            files = files.select([name for name in names if name in files.schema.names])
            order = [("modification_time", "ascending"), ("path", "ascending")]
            self._known.snapshot = (version, files.sort_by(order))
        assert self._known.snapshot is not None
        return self._known.snapshot[1]

    def _list_commit(self, step: TableStep) -> list[DataFile]:
        # What a snapshot needs is not needed any more; of a large table it takes much memory.
        self._known.snapshot = self._known.table = None
        commit = self._read_commit(step.version)
        columns = self._columns_after(step.version, commit)
        if not (commit.removed or commit.changes):
            return [self._log_file(one, INSERT, columns) for one in commit.added]
        if self.on_change == SKIP:
            return []
        if self.on_change != ROWS:
            raise TableReadError(
                f"version {step.version} of {self.describe()} ({commit.operation}) changes or "
                "deletes rows, and this input reads what is appended. Set on_change: skip to "
                "leave such versions out, or on_change: rows to get their rows with the metadata "
                "operation"
            )
        if commit.changes:
            return [self._log_file(one, "", columns) for one in commit.changes]
        removed = [self._log_file(one, DELETE, columns) for one in commit.removed]
        return removed + [self._log_file(one, INSERT, columns) for one in commit.added]

    def _log_file(self, file: LogFile, operation: str, columns: DeltaColumns) -> DataFile:
        if file.has_deleted_rows:
            raise TableReadError(
                f"{self.describe()} has {_UNREADABLE_FEATURES['deletionVectors']}, which this "
                f"input does not read: {file.path}"
            )
        partition = {
            name: read_partition_value(file.partition.get(name), columns.schema.field(name).type)
            for name in columns.partition_columns
        }
        return self._make_file(file.path, file.rows, file.size, operation, partition)

    def _make_file(
        self, path: str, rows: int, size: int, operation: str, partition: Mapping[str, pa.Scalar]
    ) -> DataFile:
        if not self.selection.fits_constants(partition):
            rows = 0
        return DataFile(path, rows, size, operation, partition)

    def count_rows(self, file: DataFile) -> int:
        """Return the number of rows by the footer of a file."""
        with self._translate_file_errors(file), self._files().open_input_file(file.path) as source:
            return int(open_parquet(source).metadata.num_rows)

    def context_of(self, step: TableStep) -> DeltaColumns:
        """Return the columns of a version."""
        known = self._known.columns
        if known is not None and known[0] == step.version:
            return known[1]
        if step.is_snapshot:
            return self._load_columns(step.version)
        return self._columns_after(step.version, self._read_commit(step.version))

    def _columns_after(self, version: int, commit: Commit) -> DeltaColumns:
        """Return the columns of a version by its commit, and by the version before it."""
        known = self._known.columns
        if known is not None and known[0] == version:
            return known[1]
        if commit.schema:
            schema = pa.schema(DeltaSchema.from_json(commit.schema).to_arrow())
            columns = DeltaColumns(schema, tuple(commit.partition_columns))
            self._known.columns = (version, columns)
            return columns
        if known is not None and known[0] == version - 1:
            self._known.columns = (version, known[1])
            return known[1]
        return self._load_columns(version)

    def _load_columns(self, version: int) -> DeltaColumns:
        table = self._load(version)
        schema = pa.schema(table.schema().to_arrow())
        columns = DeltaColumns(schema, tuple(table.metadata().partition_columns))
        self._known.columns = (version, columns)
        return columns

    def read(self, piece: TablePiece, ex: Execution) -> Iterator[TableRows]:
        """Read rows of a file.

        Raises:
            TableReadError: it is gone, or damaged.
        """
        columns: DeltaColumns = piece.context
        schema, selection = columns.schema, self.selection
        has_operations = not piece.file.operation
        if has_operations:
            schema = schema.append(pa.field(_CHANGE_COLUMN, pa.string()))
            if selection.columns:
                selection = selection._replace(columns=(*selection.columns, _CHANGE_COLUMN))
        rows = (piece.first, piece.row_count)
        with (
            self._translate_file_errors(piece.file),
            self._files().open_input_file(piece.file.path) as source,
        ):
            for batch in read_selected(source, rows, schema, piece.file.detail, selection):
                if not has_operations:
                    yield TableRows(batch)
                    continue
                words = batch.column(_CHANGE_COLUMN).to_pylist()
                operations = [_CHANGES.get(word, word) for word in words]
                yield TableRows(batch.drop_columns([_CHANGE_COLUMN]), operations)

    def check(self) -> str:
        """Check that the table can be read; return what is there, in words.

        Raises:
            StreamerError: it has no such columns, or features that cannot be read.
        """
        table = self._open()
        if table is None:
            return "is not there yet"
        schema = pa.schema(table.schema().to_arrow())
        self.selection.check(schema, self.describe())
        return f"has {len(schema)} columns, version {table.version()}"

    def _files(self) -> Any:
        if self._known.files is None:
            self._known.files = open_files(self.uri, self.options)
        return self._known.files

    def _read_commit(self, version: int) -> Commit:
        known = self._known.commit
        if known is not None and known[0] == version:
            return known[1]
        with self._translate_errors():
            try:
                commit = read_commit(self._files(), version)
            except FileNotFoundError:
                raise TableReadError(
                    f"the log of {self.describe()} does not have version {version} any more: it "
                    "was cleaned before this stream has read it. Delete the stream's checkpoint "
                    "to read the table from the beginning, and keep the log for longer "
                    "(delta.logRetentionDuration)"
                ) from None
            except ValueError as error:
                raise TableReadError(
                    f"version {version} in the log of {self.describe()} is damaged: {error}"
                ) from None
        self._known.commit = (version, commit)
        return commit

    def _load(self, version: int) -> DeltaTable:
        """Return the table at a version.

        Raises:
            TableReadError: it cannot be restored any more.
        """
        newest = self._known.table or self._open()
        if newest is not None and newest.version() == version:
            self._check_features(newest)
            return newest
        with self._translate_errors():
            try:
                table = DeltaTable(
                    self.uri, version=version, storage_options=dict(self.options) or None
                )
            except DeltaError as error:
                if newest is None or newest.version() < version:
                    raise
                raise TableReadError(
                    f"{self.describe()} is at version {newest.version()}, and its log does not "
                    f"give version {version} any more, which this stream reads "
                    f"({_shorten(error)}). Delete the stream's checkpoint to read the table from "
                    "the beginning, and keep the log for longer (delta.logRetentionDuration)"
                ) from None
        self._check_features(table)
        return table

    def _check_features(self, table: DeltaTable) -> None:
        used = set(table.protocol().reader_features or ())
        if table.metadata().configuration.get("delta.columnMapping.mode", "none") == "none":
            used.discard("columnMapping")
        else:
            used.add("columnMapping")
        if "deletionVectors" in used and not self._has_vectors(table):
            # It may have some later: they are refused by the commit that has them.
            used.discard("deletionVectors")
        if unreadable := sorted(used & _UNREADABLE_FEATURES.keys()):
            raise TableReadError(
                f"{self.describe()} has {_UNREADABLE_FEATURES[unreadable[0]]}, which this input "
                "does not read; or copy the table"
            )

    def _has_vectors(self, table: DeltaTable) -> bool:
        with self._translate_errors():
            vectors = pa.RecordBatchReader.from_stream(table.deletion_vectors())
            return any(batch.num_rows for batch in vectors)

    def _open(self) -> DeltaTable | None:
        """Return the table at its newest version; None where there is none."""
        with self._translate_errors():
            try:
                table = DeltaTable(self.uri, storage_options=dict(self.options) or None)
            except TableNotFoundError:
                return None
        self._known.table, self._known.newest = table, table.version()
        return table

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except (StreamerError, TableUnavailableError):
            raise
        except ValueError as error:
            raise TableReadError(f"{self.describe()} cannot be read: {_shorten(error)}") from None
        except (DeltaError, OSError) as error:
            raise TableUnavailableError(f"{self.describe()}: {_shorten(error)}") from error

    @contextmanager
    def _translate_file_errors(self, file: DataFile) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise TableReadError(
                f"{file.path} of {self.describe()} is gone: VACUUM, or somebody else, has deleted "
                "it before this stream has read it. Restore the file; or delete the stream's "
                "checkpoint to read the table from the beginning, and keep files for longer "
                "(delta.deletedFileRetentionDuration)"
            ) from None
        except (pa.ArrowException, DeltaError, ValueError) as error:
            raise TableReadError(
                f"{file.path} of {self.describe()} cannot be read: {_shorten(error)}"
            ) from None


class _Known:
    """Knowledge of one process about the table."""

    def __init__(self) -> None:
        self.files: Any = None
        self.table: DeltaTable | None = None
        self.newest: int | None = None
        self.snapshot: tuple[int, pa.Table] | None = None
        self.columns: tuple[int, DeltaColumns] | None = None
        self.commit: tuple[int, Commit] | None = None


def _shorten(error: Any) -> str:
    """Return the text of an error in one line."""
    return " ".join(str(error).split())[:500]
