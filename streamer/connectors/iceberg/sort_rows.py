"""Rows of one data file in the sort order of an Iceberg table.

Source: the table specification of Iceberg, section "Sorting".
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyarrow import compute
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import NullOrder, SortDirection, SortOrder

_ASCENDING: Final = "ascending"
_DESCENDING: Final = "descending"


def sort_rows(rows: pa.Table, schema: Schema, order: SortOrder) -> pa.Table:
    """Return rows in an order; those that it calls equal stay in the order of before.

    Args:
        rows: with the columns of the table.
        schema: of the table.
        order: of the table; one without fields changes nothing.
    """
    if order.is_unsorted or rows.num_rows < 2:
        return rows
    keys: dict[str, pa.ChunkedArray | pa.Array] = {}
    directions: list[tuple[str, str]] = []
    for number, field in enumerate(order.fields):
        source = schema.find_field(field.source_id)
        path = schema.find_column_name(field.source_id)
        assert path is not None
        column = _take_column(rows, path)
        if column is None:
            continue
        values = field.transform.pyarrow_transform(source.field_type)(column)
        nulls_first = field.null_order == NullOrder.NULLS_FIRST
        keys[f"null {number}"] = compute.is_null(values)
        directions.append((f"null {number}", _DESCENDING if nulls_first else _ASCENDING))
        keys[f"value {number}"] = values
        is_up = field.direction == SortDirection.ASC
        directions.append((f"value {number}", _ASCENDING if is_up else _DESCENDING))
    if not keys:
        return rows
    return rows.take(compute.sort_indices(pa.table(keys), sort_keys=directions))


def _take_column(rows: pa.Table, path: str) -> pa.ChunkedArray | None:
    """Return a column, or a field of the objects in one; None where the rows have it not."""
    name, *rest = path.split(".")
    if name not in rows.schema.names:
        return None
    column = rows.column(name)
    return compute.struct_field(column, rest) if rest else column
