"""A Delta table: appended to or merged by key, each micro-batch once.

The commit of a micro-batch has a transaction identifier of the protocol (`txn`: the application,
and a version that grows), which is the writer and the number of the micro-batch. It is read back
before a micro-batch that may have been committed is committed again. Source: Delta's protocol,
section "Transaction Identifiers".
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, QueryBuilder, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from pyarrow import compute

from streamer.connectors.delta.data_files import DeltaFileWriter, make_action, read_data_file
from streamer.connectors.delta.delta_log import open_files, read_commit
from streamer.connectors.tables.column_types import name_column_type, normalize_schema
from streamer.connectors.tables.commit_record import CommitRecord
from streamer.connectors.tables.row_operations import RowOperation
from streamer.connectors.tables.table_client import (
    RefusedRowsError,
    TableCommit,
    TableConflictError,
    TableUnavailableError,
    explain_partitions,
    refuse_all,
)
from streamer.connectors.tables.written_files import WrittenFile
from streamer.core.errors import StreamerError

_FORBIDDEN_CHARACTERS: Final = " ,;{}()\n\t="
"""Characters that no column's name may have, unless the table maps names."""

_COLOR: Final = re.compile(r"\x1b\[[0-9;]*m")
_ROW_NUMBER: Final = "#"
_OPERATION: Final = "row operation"
"""The column of operations beside the rows of a merge; the space is in no column's name."""

_SOURCE: Final = "s"
_TARGET: Final = "t"
_BATCH_METADATA: Final = "streamer.microBatch"
_WRITER_METADATA: Final = "streamer.writer"
_MAX_COMMIT_RETRIES: Final = 15
_CONSTRAINT_PREFIX: Final = "delta.constraints."
_VIOLATION_MARK: Final = "failed validation check"
"""Is in the message of delta-rs about rows that a constraint forbids."""

_RACE_MARK: Final = "already exists at that location"
"""Is in the message about a table that another program has made first."""


class DeltaClient:
    """One Delta table; see `TableClient`."""

    widens_maps = False  # The engine of delta-rs could not read the files of before any more.

    def __init__(
        self,
        uri: str,
        storage_options: Mapping[str, str],
        *,
        partition_by: Sequence[str] = (),
        keys: Sequence[str] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Take the table; nothing is opened yet.

        Args:
            uri: a directory, or a URL such as `s3://bucket/table`.
            storage_options: for the store, as the library `object_store` names them.
            partition_by: the columns by which a new table is partitioned.
            keys: the columns that say which row is replaced or deleted; none to append.
            clock: Unix seconds.
        """
        self._uri = uri
        self._options = dict(storage_options)
        self._partition_by = list(partition_by)
        self._keys = list(keys)
        self._clock = clock
        self._table: DeltaTable | None = None

    def describe(self) -> str:
        """Return where the table is."""
        return f"the Delta table {self._uri}"

    def load_columns(self) -> pa.Schema | None:
        """Return the columns as they are now; None where there is no table."""
        table = self._open()
        return None if table is None else normalize_schema(pa.schema(table.schema().to_arrow()))

    def find_committed(self, writer: str) -> int:
        """Return the newest micro-batch that a writer has committed; see `TableClient`."""
        table = self._table or self._open()
        if table is None:
            return -1
        with self._translate_errors():
            version = table.transaction_version(writer)
        return -1 if version is None else version

    def commit(self, commit: TableCommit) -> None:
        """Commit a micro-batch; see `TableClient`."""
        properties = CommitProperties(
            custom_metadata={_BATCH_METADATA: str(commit.batch), _WRITER_METADATA: commit.writer},
            max_commit_retries=_MAX_COMMIT_RETRIES,
            app_transactions=[Transaction(commit.writer, commit.batch, int(self._clock() * 1_000))],
        )
        table = self._open()
        if table is None and (problem := self._explain_partitions(commit.rows.schema)):
            raise refuse_all(commit, problem)
        try:
            self._write(table, commit, properties)
        except TableUnavailableError as error:
            if (
                table is not None
                and _VIOLATION_MARK in str(error.__cause__)
                and (forbidden := self.find_forbidden(commit))
            ):
                raise RefusedRowsError(forbidden) from None
            raise

    def _explain_partitions(self, schema: pa.Schema) -> str:
        """Return why a new table cannot have its partitions; empty where it can."""
        for name in self._partition_by:
            problem = ""
            if name not in schema.names:
                problem = f"the messages have no field {name}"
            elif pa.types.is_nested(kind := schema.field(name).type):
                problem = f"{name} is {name_column_type(kind)}, and a partition has one value"
            if problem:
                return explain_partitions(", ".join(self._partition_by), problem)
        return ""

    def _write(
        self, table: DeltaTable | None, commit: TableCommit, properties: CommitProperties
    ) -> None:
        is_keyed = commit.is_keyed
        with self._translate_errors():
            if table is None and is_keyed:
                if not commit.select(RowOperation.INSERT, RowOperation.UPSERT).num_rows:
                    return  # There is nothing to delete.
                # A merge wants a table; that it is there and empty loses nothing.
                table = DeltaTable.create(
                    self._uri,
                    commit.rows.schema,
                    partition_by=self._partition_by or None,
                    storage_options=self._options or None,
                )
                self._table = table
            if table is not None and is_keyed:
                self._merge(table, commit, properties)
                return
            if table is not None and commit.files:
                self._add_files(table, commit, properties)
                return
            self._append(table, commit.rows, properties)

    def _append(
        self, table: DeltaTable | None, rows: pa.Table, properties: CommitProperties | None
    ) -> None:
        write_deltalake(
            self._uri if table is None else table,
            rows,
            mode="append",
            schema_mode="merge",
            partition_by=(
                self._partition_by if table is None else table.metadata().partition_columns
            )
            or None,
            storage_options=self._options or None,
            commit_properties=properties,
        )

    def _add_files(
        self, table: DeltaTable, commit: TableCommit, properties: CommitProperties
    ) -> None:
        """Add files that workers have written, and the rows that came without one."""
        known = normalize_schema(pa.schema(table.schema().to_arrow()))
        if any(
            one.name not in known.names or known.field(one.name).type != one.type
            for one in commit.rows.schema
        ):
            # A commit of files adds no columns; that they are there before loses nothing.
            self._append(table, commit.rows.slice(0, 0), None)
            table.update_incremental()
        files = list(commit.files)
        if commit.rows.num_rows:
            writer = DeltaFileWriter(table, self._uri, self._options)
            parts = writer.split(commit.rows, commit.rows.num_rows) or []
            name = f"{commit.writer}-{commit.batch:010d}-driver-{uuid4().hex[:12]}"
            files += writer.write(parts, name)
        table.create_write_transaction(
            [make_action(one) for one in files],
            "append",
            table.schema(),
            table.metadata().partition_columns,
            commit_properties=properties,
        )

    def open_file_writer(self) -> DeltaFileWriter | None:
        """Return what writes data files for the table as it is now; see `TableClient`."""
        table = self._open()
        if table is None:
            return None
        with self._translate_errors():
            writer = DeltaFileWriter(table, self._uri, self._options)
        return writer if writer.is_plain else None

    def read_file(self, file: WrittenFile) -> pa.Table:
        """Return the rows of a file that a worker has written."""
        with self._translate_errors():
            columns = self.load_columns() or pa.schema([])
            return read_data_file(open_files(self._uri, self._options), file, columns)

    def delete_files(self, files: Sequence[WrittenFile]) -> None:
        """Delete files that are in no version of the table; see `TableClient`."""
        with suppress(OSError, DeltaError):
            opened = open_files(self._uri, self._options)
            for file in files:
                opened.delete_file(file.path)

    def _merge(self, table: DeltaTable, commit: TableCommit, properties: CommitProperties) -> None:
        """Replace and delete rows of the same keys, and insert the others."""
        known = normalize_schema(pa.schema(table.schema().to_arrow()))
        if any(
            known.field(one.name).type != one.type
            for one in commit.rows.schema
            if one.name in known.names
        ):
            # A merge that adds nested fields makes objects of rows beside them null.
            self._append(table, commit.rows.slice(0, 0), None)
            table.update_incremental()
        predicate = " AND ".join(f"{_TARGET}.`{key}` = {_SOURCE}.`{key}`" for key in self._keys)
        operations = compute.unique(commit.operations).to_pylist()
        rows, mixed = commit.rows, len(operations) > 1
        if mixed:
            rows = rows.append_column(_OPERATION, commit.operations)
            predicate = f"{_SOURCE}.`{_OPERATION}` > {RowOperation.INSERT:d} AND {predicate}"
        merging = table.merge(
            rows,
            predicate,
            source_alias=_SOURCE,
            target_alias=_TARGET,
            merge_schema=True,
            commit_properties=properties,
        )

        def condition(text: str) -> dict[str, Any]:
            """Return the arguments of a clause; without a mixture it holds for each row."""
            if not mixed:
                return {}
            return {"predicate": f"{_SOURCE}.`{_OPERATION}` {text}"}

        hidden = {"except_cols": [_OPERATION]} if mixed else {}
        if RowOperation.DELETE in operations:
            merging = merging.when_matched_delete(**condition(f"= {RowOperation.DELETE:d}"))
        if operations != [RowOperation.DELETE]:
            changed = condition(f"< {RowOperation.DELETE:d}")
            merging = merging.when_matched_update_all(**changed, **hidden)
            merging = merging.when_not_matched_insert_all(**changed, **hidden)
        merging.execute()

    def find_forbidden(self, commit: TableCommit) -> Mapping[int, str]:
        """Return the rows that the constraints of the table forbid; see `TableClient`."""
        table = self._open()
        configuration = {} if table is None else table.metadata().configuration
        rules = {
            name.removeprefix(_CONSTRAINT_PREFIX): rule
            for name, rule in configuration.items()
            if name.startswith(_CONSTRAINT_PREFIX)
        }
        reasons: dict[int, str] = {}
        if not rules:
            return reasons
        numbers = pa.array(range(commit.rows.num_rows), pa.int64())
        numbered = commit._replace(rows=commit.rows.append_column(_ROW_NUMBER, numbers))
        with tempfile.TemporaryDirectory() as directory, self._translate_errors():
            # The engine of delta-rs queries Delta tables only.
            write_deltalake(directory, numbered.select(RowOperation.INSERT, RowOperation.UPSERT))
            engine = QueryBuilder().register("rows", DeltaTable(directory))
            for name, rule in rules.items():
                query = f'SELECT "{_ROW_NUMBER}" AS n FROM rows WHERE ({rule}) IS NOT TRUE'
                for number in pa.table(engine.execute(query).read_all()).column("n").to_pylist():
                    reasons.setdefault(number, f"the table's constraint {name} forbids it: {rule}")
        return reasons

    def check(self) -> str:
        """Check that the table can be read, and has the columns that the config names.

        Returns:
            What was found, in words.

        Raises:
            StreamerError: it has not; another try finds the same.
        """
        table = self._open()
        if table is None:
            return "is not there yet, and is made with the first rows"
        names = table.schema().to_arrow().names
        for field, columns in (("key", self._keys), ("partition_by", self._partition_by)):
            if missing := [name for name in columns if name not in names]:
                raise StreamerError(
                    f"{field} has {missing[0]!r}; {self.describe()} has the columns "
                    f"{', '.join(names)}"
                )
        partitions = table.metadata().partition_columns
        if self._partition_by and partitions != self._partition_by:
            raise StreamerError(
                f"partition_by is {', '.join(self._partition_by)}; {self.describe()} is "
                f"partitioned by {', '.join(partitions) or 'nothing'}, which cannot be changed"
            )
        return f"has {len(names)} columns, version {table.version()}"

    def read_commits(self, limit: int) -> list[CommitRecord]:
        """Return the newest commits; see `TableClient`."""
        table = self._open()
        if table is None:
            return []
        files, newest = open_files(self._uri, self._options), table.version()
        records: list[CommitRecord] = []
        with self._translate_errors():
            for version in range(newest, max(newest - limit, -1), -1):
                try:
                    commit = read_commit(files, version)
                except FileNotFoundError:
                    break  # The log was cleaned.
                rows = [one.rows for one in commit.added]
                metrics = commit.info.get("operationMetrics") or {}
                records.append(
                    CommitRecord(
                        version,
                        int(commit.info.get("timestamp", 0)),
                        commit.operation,
                        -1 if -1 in rows else sum(rows),
                        len(rows),
                        sum(one.size for one in commit.added),
                        int(metrics.get("num_retries", 0)),
                        str(commit.info.get(_WRITER_METADATA, "")),
                        int(commit.info.get(_BATCH_METADATA, -1)),
                    )
                )
        return records

    def explain_name(self, name: str) -> str:
        """Return why a column cannot have a name; empty when it can."""
        if not name:
            return "it is empty"
        bad = next((mark for mark in name if mark in _FORBIDDEN_CHARACTERS), "")
        return f"Delta allows no {bad!r} in names" if bad else ""

    def _open(self) -> DeltaTable | None:
        """Return the table at its newest version; None where there is none."""
        with self._translate_errors():
            try:
                if self._table is None:
                    self._table = DeltaTable(self._uri, storage_options=self._options or None)
                else:
                    self._table.update_incremental()
            except TableNotFoundError:
                self._table = None
            return self._table

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except (DeltaError, OSError) as error:
            # What it had read may be of another time.
            self._table = None
            text = f"{self.describe()}: {_shorten(error)}"
            if isinstance(error, CommitFailedError) or _RACE_MARK in text:
                raise TableConflictError(text) from error
            raise TableUnavailableError(text) from error


def _shorten(error: Any) -> str:
    """Return the text of an error in one line, without what the library adds for its authors."""
    return " ".join(_COLOR.sub("", str(error)).split())[:500]
