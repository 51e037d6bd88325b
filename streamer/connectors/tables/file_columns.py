"""The columns of a table that an input reads, and the rows that it takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from streamer.connectors.tables.parquet_rows import (
    find_matching_groups,
    iter_numbered_batches,
    open_parquet,
    project_batch,
)
from streamer.connectors.tables.row_conditions import RowCondition, build_expression
from streamer.core.errors import StreamerError


class RowSelection(NamedTuple):
    """Columns and rows that an input reads.

    Attributes:
        columns: the columns; empty for all.
        conditions: what must hold for a row.
    """

    columns: tuple[str, ...] = ()
    conditions: tuple[RowCondition, ...] = ()

    def needed_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the columns that are read, those of conditions too, in the table's order."""
        if not self.columns:
            return schema
        needed = {*self.columns, *(one.column for one in self.conditions)}
        return pa.schema([field for field in schema if field.name in needed])

    def select(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that fit, with the columns that messages have."""
        condition = build_expression(self.conditions, rows.schema)
        if condition is not None:
            rows = rows.filter(condition)
        if self.columns:
            rows = rows.select([name for name in rows.schema.names if name in self.columns])
        return rows

    def fits_constants(self, constants: Mapping[str, pa.Scalar]) -> bool:
        """Return whether rows may fit that have these values in all of a file."""
        conditions = [one for one in self.conditions if one.column in constants]
        if not conditions:
            return True
        arrays = [pa.repeat(constants[one.column], 1) for one in conditions]
        rows = pa.RecordBatch.from_arrays(arrays, names=[one.column for one in conditions])
        return bool(rows.filter(build_expression(conditions, rows.schema)).num_rows)

    def check(self, schema: pa.Schema, what: str) -> None:
        """Check that a table has the columns.

        Raises:
            StreamerError: it has not, or a value does not fit its column.
        """
        if missing := [name for name in self.columns if name not in schema.names]:
            raise StreamerError(
                f"columns has {missing[0]!r}; {what} has the columns {', '.join(schema.names)}"
            )
        build_expression(self.conditions, schema)


def read_selected(
    source: Any,
    rows: tuple[int, int | None],
    schema: pa.Schema,
    constants: Mapping[str, pa.Scalar],
    selection: RowSelection,
) -> Iterator[pa.RecordBatch]:
    """Give the rows of a Parquet file that a selection takes, by the names of columns.

    Args:
        source: the file.
        rows: the number of the first row, and how many; None for all up to the end.
        schema: the columns of the table.
        constants: the values of columns that the file does not have.
        selection: what is read.
    """
    needed = selection.needed_schema(schema)
    file = open_parquet(source)
    present = set(file.schema_arrow.names) - constants.keys()
    names = [name for name in needed.names if name in present]
    condition = None
    if physical := _physical_conditions(selection.conditions, file.schema_arrow, needed, present):
        condition = build_expression(physical, needed)
    groups = find_matching_groups(source, condition)
    for _, batch in iter_numbered_batches(file, *rows, columns=names, groups=groups):
        selected = selection.select(project_batch(batch, needed, constants))
        if selected.num_rows:
            yield selected


def _physical_conditions(
    conditions: Sequence[RowCondition], file: pa.Schema, table: pa.Schema, present: set[str]
) -> list[RowCondition]:
    """Return the conditions on columns that the file has with the type of the table."""
    return [
        one
        for one in conditions
        if one.column in present and file.field(one.column).type == table.field(one.column).type
    ]
