"""Files of snapshots of an Iceberg table: all that one has, or what it adds and removes.

A manifest is a list of files. They are read one at a time, so that a table of a million files needs
the memory of some thousand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pyiceberg.expressions import (
    AlwaysTrue,
    And,
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNull,
    LessThan,
    LessThanOrEqual,
    NotEqualTo,
    NotIn,
    NotNull,
)
from pyiceberg.expressions.visitors import (
    bind,
    expression_evaluator,
    inclusive_projection,
    manifest_evaluator,
)
from pyiceberg.io import FileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.delete_file_index import DeleteFileIndex
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.transforms import IdentityTransform

from streamer.connectors.tables.row_conditions import RowCondition

_COMPARISONS: Final[Mapping[str, Any]] = {
    "=": EqualTo,
    "!=": NotEqualTo,
    "<": LessThan,
    "<=": LessThanOrEqual,
    ">": GreaterThan,
    ">=": GreaterThanOrEqual,
    "in": In,
    "not in": NotIn,
}


class DeleteFile(NamedTuple):
    """A file with the numbers of rows that are deleted in other files.

    Attributes:
        path: of the file.
        format: such as `PARQUET` or `PUFFIN`.
    """

    path: str
    format: str


class IcebergDetail(NamedTuple):
    """Facts about a data file besides its size.

    Attributes:
        format: such as `PARQUET`.
        constants: values of columns that the file need not have, by the identifier of the field.
        deletes: files that delete some of its rows.
    """

    format: str
    constants: Mapping[int, Any]
    deletes: tuple[DeleteFile, ...]


class ListedFile(NamedTuple):
    """A data file of a manifest.

    Attributes:
        file: as the manifest has it.
        detail: what the reader of its rows needs.
        is_needed: whether it may have rows for the conditions.
    """

    file: DataFile
    detail: IcebergDetail
    is_needed: bool


class UnreadableDeletesError(ValueError):
    """A snapshot deletes rows by the values of columns, which cannot be read."""


class SnapshotFiles:
    """The files of one snapshot."""

    def __init__(
        self,
        metadata: TableMetadata,
        io: FileIO,
        snapshot: Snapshot,
        conditions: Sequence[RowCondition],
    ) -> None:
        """Take the snapshot; its list of manifests is read.

        Args:
            metadata: of the table.
            io: reads files.
            snapshot: the snapshot.
            conditions: what must hold for a row.

        Raises:
            FileNotFoundError: it has expired, and its files are deleted.
        """
        self._metadata, self._io, self.snapshot = metadata, io, snapshot
        self.schema = schema_of(metadata, snapshot)
        self._filter = _to_expression(conditions, self.schema)
        manifests = snapshot.manifests(io)
        self._deletes = [one for one in manifests if one.content == ManifestContent.DELETES]
        data = [one for one in manifests if one.content == ManifestContent.DATA]
        # The list of manifests may be in any order; this one is the same at every start.
        self.manifests = sorted(data, key=lambda one: (one.sequence_number, one.manifest_path))
        self.own_manifests = [
            one for one in self.manifests if one.added_snapshot_id == snapshot.snapshot_id
        ]
        self._delete_index: DeleteFileIndex | None = None

    @property
    def removes_rows(self) -> bool:
        """Whether the snapshot removes files, or rows of files."""
        return self.adds_deletes or any(one.deleted_files_count for one in self.own_manifests)

    @property
    def adds_deletes(self) -> bool:
        """Whether the snapshot deletes rows and leaves their files as they are."""
        own = self.snapshot.snapshot_id
        return any(one.added_files_count for one in self._deletes if one.added_snapshot_id == own)

    def list_live(self, manifest: ManifestFile) -> Iterator[ListedFile]:
        """Give all files of a manifest that the snapshot has."""
        index = self._load_delete_index(is_live=True)
        if not self._is_needed(manifest):
            return
        for entry in manifest.fetch_manifest_entry(self._io, discard_deleted=True):
            yield self._make_file(entry, index)

    def list_changed(
        self, manifest: ManifestFile, status: ManifestEntryStatus
    ) -> Iterator[ListedFile]:
        """Give the files that the snapshot adds or removes.

        Args:
            manifest: one of `own_manifests`.
            status: `ADDED` or `DELETED`.
        """
        own = self.snapshot.snapshot_id
        index = DeleteFileIndex()
        if status == ManifestEntryStatus.DELETED:
            # Of a file that is removed, some rows may have been deleted before.
            index = self._load_delete_index(is_live=False)
        for entry in manifest.fetch_manifest_entry(self._io, discard_deleted=False):
            if entry.status == status and entry.snapshot_id == own:
                yield self._make_file(entry, index)

    def _load_delete_index(self, *, is_live: bool) -> DeleteFileIndex:
        if self._delete_index is None:
            index = DeleteFileIndex()
            for manifest in self._deletes if is_live else self._deletes_before():
                for entry in manifest.fetch_manifest_entry(self._io, discard_deleted=True):
                    if entry.data_file.content == DataFileContent.EQUALITY_DELETES:
                        raise UnreadableDeletesError(entry.data_file.file_path)
                    index.add_delete_file(entry, partition_key=entry.data_file.partition)
            self._delete_index = index
        return self._delete_index

    def _deletes_before(self) -> list[ManifestFile]:
        """Return the manifests of deletes that were there before this snapshot."""
        parent = self.snapshot.parent_snapshot_id
        before = None if parent is None else self._metadata.snapshot_by_id(parent)
        if before is None:
            return []
        manifests = before.manifests(self._io)
        return [one for one in manifests if one.content == ManifestContent.DELETES]

    def _make_file(self, entry: ManifestEntry, index: DeleteFileIndex) -> ListedFile:
        file = entry.data_file
        deletes = index.for_data_file(
            entry.sequence_number or 0, file, partition_key=file.partition
        )
        listed = sorted(DeleteFile(one.file_path, one.file_format.name) for one in deletes)
        spec = self._metadata.specs()[file.spec_id or 0]
        constants = {
            field.source_id: file.partition[at]
            for at, field in enumerate(spec.fields)
            if isinstance(field.transform, IdentityTransform) and file.partition[at] is not None
        }
        detail = IcebergDetail(file.file_format.name, constants, tuple(listed))
        return ListedFile(file, detail, self._may_fit(file, spec))

    def _is_needed(self, manifest: ManifestFile) -> bool:
        spec = self._metadata.specs()[manifest.partition_spec_id]
        projected = inclusive_projection(self.schema, spec)(self._filter)
        return bool(manifest_evaluator(spec, self.schema, projected)(manifest))

    def _may_fit(self, file: DataFile, spec: PartitionSpec) -> bool:
        if isinstance(self._filter, AlwaysTrue) or not spec.fields:
            return True
        projected = inclusive_projection(self.schema, spec)(self._filter)
        partition = Schema(*spec.partition_type(self.schema).fields)
        return bool(expression_evaluator(partition, projected, True)(file.partition))


def schema_of(metadata: TableMetadata, snapshot: Snapshot) -> Schema:
    """Return the columns of a snapshot."""
    matching = [one for one in metadata.schemas if one.schema_id == snapshot.schema_id]
    return matching[0] if matching else metadata.schema()


def _to_expression(conditions: Sequence[RowCondition], schema: Schema) -> BooleanExpression:
    """Return conditions as Iceberg has them, as far as they help to leave files out."""
    whole: BooleanExpression = AlwaysTrue()
    for condition in conditions:
        try:
            one = _to_term(condition)
            bind(schema, one, case_sensitive=True)
        except (ValueError, TypeError):
            # Each row is looked at all the same.
            continue
        whole = And(whole, one)
    return whole


def _to_term(condition: RowCondition) -> BooleanExpression:
    make: Any = _COMPARISONS[condition.operator]
    if condition.value is None:
        make = IsNull if condition.operator == "=" else NotNull
        term: BooleanExpression = make(condition.column)
    else:
        term = make(condition.column, condition.value)
    return term


def to_delete_file(file: DeleteFile) -> DataFile:
    """Return a file of deletes as PyIceberg reads it."""
    return DataFile.from_args(file_path=file.path, file_format=FileFormat[file.format])
