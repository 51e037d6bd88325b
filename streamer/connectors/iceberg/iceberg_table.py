"""An Iceberg table: appended to or merged by key, each micro-batch once.

A micro-batch is one transaction of the catalog: the rows, and a property of the table with the
number of the micro-batch. A snapshot may expire; the property stays. It is read back before a
micro-batch that may have been committed is committed again.
"""

from __future__ import annotations

import itertools
import os
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from uuid import uuid4

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import (
    BadRequestError,
    CommitFailedException,
    ForbiddenError,
    NoSuchNamespaceError,
    NoSuchTableError,
    UnauthorizedError,
    ValidationException,
)
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table, TableProperties, Transaction
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Snapshot, ancestors_of
from pyiceberg.table.sorting import NullOrder
from pyiceberg.table.update.snapshot import UpdateSnapshot
from pyiceberg.table.upsert_util import create_match_filter
from pyiceberg.transforms import parse_transform
from pyiceberg.utils.properties import property_as_bool

from streamer.connectors.iceberg.data_files import (
    IcebergFileWriter,
    read_data_file,
    read_entry,
)
from streamer.connectors.iceberg.gcs_token import GcsToken
from streamer.connectors.iceberg.null_lists import keep_null_lists
from streamer.connectors.iceberg.partition_spec import PartitionTerm, SortTerm
from streamer.connectors.tables.column_types import normalize_schema
from streamer.connectors.tables.commit_record import CommitRecord
from streamer.connectors.tables.row_operations import RowOperation
from streamer.connectors.tables.table_client import (
    ImpossibleTableError,
    RefusedRowsError,
    TableCommit,
    TableConflictError,
    TableUnavailableError,
    explain_partitions,
    refuse_all,
)
from streamer.connectors.tables.written_files import WrittenFile
from streamer.core.errors import StreamerError

_COMMITTED_PREFIX: Final = "streamer.committed."
"""Begins the property of a table that has the newest micro-batch of a writer."""

_BATCH_SUMMARY: Final = "streamer.micro-batch"
_WRITER_SUMMARY: Final = "streamer.writer"
_MAX_ERROR_CHARACTERS: Final = 500
_EXPIRY_INTERVAL_S: Final = 3_600


class CatalogConnection:
    """A catalog, which the clients of its tables share; it is opened when it is needed."""

    def __init__(
        self, name: str, properties: Mapping[str, str], token: GcsToken | None = None
    ) -> None:
        """Take a catalog.

        Args:
            name: of the catalog.
            properties: as PyIceberg names them.
            token: of the store of files; None where it needs none.
        """
        self._name, self._properties, self._token = name, properties, token
        self._catalog: Catalog | None = None

    def open(self) -> Catalog:
        """Return the catalog."""
        keep_null_lists()
        if self._catalog is None:
            more = {} if self._token is None else self._token.read_properties()
            self._catalog = load_catalog(self._name, **self._properties, **more)
        return self._catalog

    @property
    def is_stale(self) -> bool:
        """Whether tables that are open have a token that ends soon."""
        return self._token is not None and self._token.is_stale

    def reset(self) -> None:
        """Forget what is open: the next one who needs it opens it anew."""
        self._catalog = None

    @property
    def is_missing(self) -> bool:
        """Whether the catalog is a file that is not there yet; opening it would make the file."""
        return self._catalog is None and is_catalog_missing(self._properties)

    def count_namespaces(self) -> int:
        """Return how many namespaces the catalog has at its top.

        Raises:
            StreamerError: it refuses, or does not answer.
        """
        if self.is_missing:
            return 0
        try:
            return len(self.open().list_namespaces())
        except Exception as error:
            self.reset()
            raise StreamerError(f"the catalog: {shorten_error(error)}") from None


class WriteSettings(NamedTuple):
    """Settings of a table that is made and written.

    Attributes:
        partition_by: how a new table is partitioned.
        sort_by: the sort order of a new table.
        location: where a new table lies; empty for the place that the catalog gives it.
        keys: the columns that say which row is replaced or deleted; none to append.
        branch: the branch that gets the rows; it begins with the table as it is.
        merges_manifests: whether commits join small manifests; None for the table's property.
        max_snapshot_age_ms: of snapshots that stay, milliseconds; 0 for all of them.
    """

    partition_by: Sequence[PartitionTerm] = ()
    sort_by: Sequence[SortTerm] = ()
    location: str = ""
    keys: Sequence[str] = ()
    branch: str = MAIN_BRANCH
    merges_manifests: bool | None = None
    max_snapshot_age_ms: int = 0


_DEFAULT_SETTINGS: Final = WriteSettings()


class IcebergClient:
    """One Iceberg table; see `TableClient`."""

    widens_maps = True

    def __init__(
        self,
        connection: CatalogConnection,
        namespace: str,
        table: str,
        settings: WriteSettings = _DEFAULT_SETTINGS,
    ) -> None:
        """Take the table; nothing is opened yet.

        Args:
            connection: the catalog.
            namespace: of the table, with dots between its levels.
            table: its name.
            settings: how it is made and written.
        """
        self._settings = settings
        self._branch = settings.branch
        self._connection = connection
        self._namespace = tuple(namespace.split("."))
        self._identifier = (*self._namespace, table)
        self._keys = list(settings.keys)
        self._table: Table | None = None
        self._next_expiry = 0.0

    def describe(self) -> str:
        """Return where the table is."""
        return f"the Iceberg table {'.'.join(self._identifier)}"

    def load_columns(self) -> pa.Schema | None:
        """Return the columns as they are now; None where there is no table."""
        table = self._open()
        return None if table is None else normalize_schema(table.schema().as_arrow())

    def find_committed(self, writer: str) -> int:
        """Return the newest micro-batch that a writer has committed; see `TableClient`."""
        table = self._table or self._open()
        return -1 if table is None else int(table.properties.get(_COMMITTED_PREFIX + writer, -1))

    def commit(self, commit: TableCommit) -> None:
        """Commit a micro-batch; see `TableClient`."""
        table = self._open()
        written = commit.select(RowOperation.INSERT, RowOperation.UPSERT)
        if table is None and not written.num_rows and not commit.files:
            return  # There is nothing to delete.
        with self._translate_errors():
            if table is None and self._branch != MAIN_BRANCH:
                # A table without a snapshot has no other branch.
                self._create(commit).commit_transaction()
                table = self._open()
            if table is None:
                transaction = self._create(commit)
            else:
                known = normalize_schema(table.schema().as_arrow())
                if _has_further_fields(known, commit.rows.schema):
                    with table.update_schema() as update:
                        update.union_by_name(commit.rows.schema)
                self._begin_branch(table)
                transaction = table.transaction()
            self._write(transaction, commit, written, is_new=table is None)
            transaction.set_properties({_COMMITTED_PREFIX + commit.writer: str(commit.batch)})
            transaction.commit_transaction()
        self._table = None
        self._expire_snapshots()

    def _expire_snapshots(self) -> None:
        """Remove old snapshots, once in an hour; another commit does it where this one cannot."""
        age, now = self._settings.max_snapshot_age_ms, time.time()
        if not age or now < self._next_expiry:
            return
        self._next_expiry = now + _EXPIRY_INTERVAL_S
        with suppress(TableUnavailableError), self._translate_errors():
            table = self._open()
            oldest = datetime.fromtimestamp(now - age / 1_000, UTC)
            if table is not None:
                table.maintenance.expire_snapshots().older_than(oldest).commit()

    def _create(self, commit: TableCommit) -> Transaction:
        """Return the transaction of a table that is not there yet."""
        catalog = self._connection.open()
        catalog.create_namespace_if_not_exists(self._namespace)
        transaction = catalog.create_table_transaction(
            self._identifier, schema=commit.rows.schema, location=self._settings.location or None
        )
        if self._settings.partition_by:
            self._add_partitions(transaction, commit)
        if self._settings.sort_by:
            self._add_sort_order(transaction, commit)
        return transaction

    def _add_sort_order(self, transaction: Transaction, commit: TableCommit) -> None:
        try:
            with transaction.update_sort_order() as order:
                for (column, transform), is_descending, nulls_first in self._settings.sort_by:
                    add = order.desc if is_descending else order.asc
                    nulls = NullOrder.NULLS_FIRST if nulls_first else NullOrder.NULLS_LAST
                    add(column, parse_transform(transform), nulls)
        except ValueError as error:
            names = ", ".join(one.term.column for one in self._settings.sort_by)
            reason = f"the table cannot be made with a sort order by {names}: {error}"
            raise refuse_all(commit, reason) from None

    def _begin_branch(self, table: Table) -> None:
        """Make the branch of the table as it is, where there is none yet."""
        if self._branch == MAIN_BRANCH or self._branch in table.metadata.refs:
            return
        if table.metadata.current_snapshot() is None:
            table.append(table.schema().as_arrow().empty_table())
        current = table.metadata.current_snapshot()
        assert current is not None
        with table.manage_snapshots() as snapshots:
            snapshots.create_branch(current.snapshot_id, self._branch)

    def _add_partitions(self, transaction: Transaction, commit: TableCommit) -> None:
        try:
            with transaction.update_spec() as spec:
                for term in self._settings.partition_by:
                    spec.add_field(term.column, parse_transform(term.transform))
        except ValueError as error:
            names = ", ".join(term.column for term in self._settings.partition_by)
            raise refuse_all(commit, explain_partitions(names, str(error))) from None

    def _write(
        self, transaction: Transaction, commit: TableCommit, written: pa.Table, *, is_new: bool
    ) -> None:
        summary = {_BATCH_SUMMARY: str(commit.batch), _WRITER_SUMMARY: commit.writer}
        keyed = commit.select(RowOperation.UPSERT, RowOperation.DELETE)
        with warnings.catch_warnings():
            # It warns that a delete finds nothing, which is what most upserts do.
            warnings.simplefilter("ignore")
            if keyed.num_rows and not is_new:
                # PyIceberg's own upsert reads what is there first, by the schema of the snapshot:
                # it fails once a column was added, and costs more where most rows change.
                transaction.delete(
                    create_match_filter(keyed, self._keys),
                    snapshot_properties=summary,
                    branch=self._branch,
                )
            if entries := self._write_files(transaction, commit, written):
                update = transaction.update_snapshot(summary, branch=self._branch)
                with self._begin_append(transaction, update) as append:
                    for entry in entries:
                        append.append_data_file(entry)

    def _begin_append(self, transaction: Transaction, update: UpdateSnapshot) -> Any:
        """Return the snapshot that gets files; it joins small manifests, or it does not."""
        merges = self._settings.merges_manifests
        if merges is None:
            merges = property_as_bool(
                transaction.table_metadata.properties,
                TableProperties.MANIFEST_MERGE_ENABLED,
                TableProperties.MANIFEST_MERGE_ENABLED_DEFAULT,
            )
        if not merges:
            return update.fast_append()
        append = update.merge_append()
        append._merge_enabled = True  # The config says so, whatever the table does.
        return append

    def _write_files(
        self, transaction: Transaction, commit: TableCommit, written: pa.Table
    ) -> list[DataFile]:
        """Write the rows to files; return these, and those that workers have written."""
        entries = [read_entry(one) for one in commit.files]
        if written.num_rows:
            writer = IcebergFileWriter(transaction.table_metadata, transaction._table.io)
            parts = writer.split(written, written.num_rows) or []
            name = f"{commit.writer}-{commit.batch:010d}-driver-{uuid4().hex[:12]}"
            entries += writer.write_entries(parts, name)
        return entries

    def open_file_writer(self) -> IcebergFileWriter | None:
        """Return what writes data files for the table as it is now; see `TableClient`."""
        table = self._open()
        if table is None:
            return None
        writer = IcebergFileWriter(table.metadata, table.io)
        return writer if writer.is_plain else None

    def read_file(self, file: WrittenFile) -> pa.Table:
        """Return the rows of a file that a worker has written."""
        table = self._open()
        with self._translate_errors():
            if table is None:
                raise FileNotFoundError(f"{file.path} was of a table that is not there any more")
            return read_data_file(table.io, file)

    def delete_files(self, files: Sequence[WrittenFile]) -> None:
        """Delete files that are in no version of the table; see `TableClient`."""
        with suppress(Exception):
            table = self._open()
            if table is not None:
                for file in files:
                    table.io.delete(file.path)

    def find_forbidden(self, commit: TableCommit) -> Mapping[int, str]:
        """Return nothing: Iceberg has no constraints."""
        return {}

    def check(self) -> str:
        """Check that the table can be read, and has the columns that the config names.

        Returns:
            What is there, in words.

        Raises:
            StreamerError: it has not, or the catalog refuses; another try finds the same.
        """
        try:
            table = self._open()
        except TableUnavailableError as error:
            if isinstance(error.__cause__, UnauthorizedError | ForbiddenError):
                raise StreamerError(str(error)) from None
            raise
        if table is None:
            return "is not there yet, and is made with the first rows"
        names = table.schema().column_names
        if missing := [name for name in self._keys if name not in names]:
            raise StreamerError(
                f"identifier_fields has {missing[0]!r}; {self.describe()} has the columns "
                f"{', '.join(names)}"
            )
        snapshot = table.metadata.snapshot_by_name(self._branch)
        of_branch = "" if self._branch == MAIN_BRANCH else f" of the branch {self._branch}"
        newest = snapshot.snapshot_id if snapshot else "none"
        return f"has {len(names)} columns, snapshot {newest}{of_branch}"

    def read_commits(self, limit: int) -> list[CommitRecord]:
        """Return the newest snapshots; see `TableClient`."""
        table = self._open()
        if table is None:
            return []
        current = table.metadata.snapshot_by_name(self._branch)
        newest = itertools.islice(ancestors_of(current, table.metadata), limit)
        return [_make_record(one) for one in newest]

    def explain_name(self, name: str) -> str:
        """Return why a column cannot have a name; empty when it can."""
        return "it has a dot in it" if "." in name else "" if name else "it is empty"

    def _open(self) -> Table | None:
        """Return the table as it is now; None where there is none."""
        if self._connection.is_missing:
            # A check must not make the file.
            return None
        with self._translate_errors():
            if self._connection.is_stale:
                self._connection.reset()
                self._table = None
            try:
                if self._table is None:
                    self._table = self._connection.open().load_table(self._identifier)
                else:
                    self._table.refresh()
            except (NoSuchTableError, NoSuchNamespaceError):
                self._table = None
            return self._table

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except (StreamerError, TableUnavailableError, RefusedRowsError):
            raise
        except Exception as error:
            # The catalogs' libraries have exceptions of their own: of requests, of SQLAlchemy, of
            # boto3. The table is looked at anew, since the commit may have been taken.
            self._table = None
            self._connection.reset()
            text = f"{self.describe()}: {shorten_error(error)}"
            if isinstance(error, CommitFailedException | ValidationException):
                raise TableConflictError(text) from error
            if isinstance(error, BadRequestError | ValueError):
                raise ImpossibleTableError(text) from error
            raise TableUnavailableError(text) from error


def _has_further_fields(known: pa.Schema, schema: pa.Schema) -> bool:
    """Return whether a schema has columns, or fields in them, that another does not have."""
    return any(
        one.name not in known.names or known.field(one.name).type != one.type for one in schema
    )


def _make_record(snapshot: Snapshot) -> CommitRecord:
    summary = snapshot.summary
    values = {} if summary is None else dict(summary.additional_properties)
    return CommitRecord(
        snapshot.snapshot_id,
        snapshot.timestamp_ms,
        "unknown" if summary is None else summary.operation.value,
        int(values.get("added-records", 0)),
        int(values.get("added-data-files", 0)),
        int(values.get("added-files-size", 0)),
        0,
        values.get(_WRITER_SUMMARY, ""),
        int(values.get(_BATCH_SUMMARY, -1)),
    )


def is_catalog_missing(properties: Mapping[str, str]) -> bool:
    """Return whether a catalog is a file that is not there yet."""
    scheme, _, path = properties.get("uri", "").partition(":///")
    return scheme == "sqlite" and not os.path.exists(path)


def shorten_error(error: Any) -> str:
    """Return the text of an error in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:_MAX_ERROR_CHARACTERS]
