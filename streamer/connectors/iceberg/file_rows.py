"""Rows of a data file of Iceberg, by the identifiers of fields.

A column may have been renamed, moved or widened since the file was written. PyIceberg's own
conversion of rows is taken for that: three of its functions that are not public, which
`tests/connectors/iceberg` holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import compute
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import _read_deletes, _to_requested_schema, pyarrow_to_schema
from pyiceberg.schema import Schema, prune_columns
from pyiceberg.table.name_mapping import NameMapping
from pyiceberg.types import ListType, MapType

from streamer.connectors.iceberg.snapshot_files import DeleteFile, IcebergDetail, to_delete_file
from streamer.connectors.tables.file_columns import RowSelection
from streamer.connectors.tables.parquet_rows import iter_numbered_batches, open_parquet


class IcebergColumns(NamedTuple):
    """The columns of a version.

    Attributes:
        schema: those that are read.
        names: the fields of files that were written without identifiers; None for none.
        format_version: of the table.
        io: reads files.
    """

    schema: Schema
    names: NameMapping | None
    format_version: int
    io: FileIO


def read_file_rows(
    path: str,
    rows: tuple[int, int | None],
    columns: IcebergColumns,
    detail: IcebergDetail,
    selection: RowSelection,
) -> Iterator[pa.RecordBatch]:
    """Give the rows of a data file that a selection takes and that are not deleted.

    Args:
        path: of the file.
        rows: the number of the first row, and how many; None for all up to the end.
        columns: the columns of the table.
        detail: what is known of the file.
        selection: what is read.
    """
    deleted = _read_deleted_rows(path, detail.deletes, columns.io)
    # Before the third version of the format, times have microseconds.
    is_micros = columns.format_version <= 2
    with columns.io.new_input(path).open() as source:
        file = open_parquet(source)
        version: Any = columns.format_version
        schema = pyarrow_to_schema(
            file.schema_arrow, columns.names, is_micros, format_version=version
        )
        present = prune_columns(schema, _leaf_ids(columns.schema), select_full_types=False)
        names = [one.name for one in present.columns] or file.schema_arrow.names[:1]
        missing = {
            number: value
            for number, value in detail.constants.items()
            if number not in schema.field_ids and number in columns.schema.field_ids
        }
        for number, batch in iter_numbered_batches(file, *rows, columns=names):
            kept = _leave_out(batch, number, deleted)
            if not kept.num_rows:
                continue
            converted = _to_requested_schema(
                columns.schema,
                present,
                kept,
                downcast_ns_timestamp_to_us=is_micros,
                projected_missing_fields=missing,
                allow_timestamp_tz_mismatch=True,
            )
            selected = selection.select(converted)
            if selected.num_rows:
                yield selected


def _leaf_ids(schema: Schema) -> set[int]:
    return {
        one for one in schema.field_ids if not isinstance(schema.find_type(one), MapType | ListType)
    }


def _read_deleted_rows(path: str, deletes: Sequence[DeleteFile], io: FileIO) -> pa.Array | None:
    """Return the numbers of the rows of a file that are deleted; None for none."""
    numbers: list[pa.Array] = []
    for delete in deletes:
        chunked = _read_deletes(io, to_delete_file(delete)).get(path)
        if chunked is not None:
            numbers += chunked.chunks
    return pa.concat_arrays([one.cast(pa.int64()) for one in numbers]) if numbers else None


def _leave_out(batch: pa.RecordBatch, first: int, deleted: pa.Array | None) -> pa.RecordBatch:
    if deleted is None:
        return batch
    numbers = pa.array(range(first, first + batch.num_rows), pa.int64())
    return batch.filter(compute.invert(compute.is_in(numbers, value_set=deleted)))
