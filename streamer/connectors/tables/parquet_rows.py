"""Rows of a Parquet file between two row numbers, with the columns that a table has.

Groups of rows that lie before the first row are passed over, and so are those of which the
statistics say that no row fits the conditions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import compute, parquet

_BATCH_ROWS: Final = 4_096


def open_parquet(source: Any) -> parquet.ParquetFile:
    """Open a file; times of Spark's old form (INT96) have microseconds, as tables have.

    Args:
        source: a file-like object that can seek.
    """
    return parquet.ParquetFile(source, coerce_int96_timestamp_unit="us")


def iter_numbered_batches(
    file: parquet.ParquetFile,
    first: int,
    count: int | None,
    columns: Sequence[str] | None = None,
    groups: frozenset[int] | None = None,
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Give rows of a file, each batch with the number of its first row.

    Args:
        file: the file.
        first: the number of the first row.
        count: how many rows; None for all up to the end.
        columns: the names of the columns; None for all.
        groups: the groups of rows that are read; None for all.
    """
    end = file.metadata.num_rows if count is None else min(first + count, file.metadata.num_rows)
    number = 0
    for group in range(file.metadata.num_row_groups):
        begin, number = number, number + file.metadata.row_group(group).num_rows
        if number <= first or begin >= end or (groups is not None and group not in groups):
            continue
        at = begin
        for batch in file.iter_batches(_BATCH_ROWS, row_groups=[group], columns=columns):
            if at >= end:
                break
            over = min(max(first - at, 0), batch.num_rows)
            part = batch.slice(over, min(end - at, batch.num_rows) - over)
            if part.num_rows:
                yield at + over, part
            at += batch.num_rows


def find_matching_groups(
    source: Any, condition: compute.Expression | None
) -> frozenset[int] | None:
    """Return the groups of rows that may have rows for a condition; None for all.

    Args:
        source: the file.
        condition: over the columns of the file; None for none.
    """
    if condition is None:
        return None
    fragment = ds.ParquetFileFormat().make_fragment(source)
    try:
        parts = fragment.split_by_row_group(condition)
    except (pa.ArrowException, KeyError):
        # The types of an older file do not compare; each row is looked at all the same.
        return None
    return frozenset(group.id for part in parts for group in part.row_groups)


def project_batch(
    rows: pa.RecordBatch, schema: pa.Schema, constants: Mapping[str, pa.Scalar]
) -> pa.RecordBatch:
    """Return rows with the columns of a table: converted, added, or left out.

    Args:
        rows: as a file has them.
        schema: the columns of the table.
        constants: values of columns that the file does not have.

    Raises:
        pyarrow.ArrowInvalid: a value does not fit the column.
    """
    names = set(rows.schema.names)
    columns = []
    for field in schema:
        if field.name in constants:
            columns.append(pa.repeat(constants[field.name], rows.num_rows).cast(field.type))
        elif field.name not in names:
            columns.append(pa.nulls(rows.num_rows, field.type))
        else:
            column = rows.column(field.name)
            columns.append(column if column.type == field.type else column.cast(field.type))
    if not columns:
        return rows.select([])
    made = pa.schema([field.with_nullable(True) for field in schema])
    return pa.RecordBatch.from_arrays(columns, schema=made)
