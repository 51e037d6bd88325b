"""Rows of many tasks as one table: with all columns, and without rows that do not fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import orjson
import pyarrow as pa

from streamer.connectors.tables.arrow_streams import decode_batches
from streamer.connectors.tables.column_inference import merge_types
from streamer.connectors.tables.column_values import build_column
from streamer.connectors.tables.rows import TableColumns, build_rows
from streamer.core.json.parse import parse_json

_STREAM_MARK = b"\xff\xff\xff\xff"
"""The first bytes of an Arrow stream. What was refused before comes again as JSON."""


class RefusedRow(NamedTuple):
    """A row that does not fit.

    Attributes:
        source: the index of the bytes that it was in.
        body: the row as JSON.
        reason: why it does not fit.
    """

    source: int
    body: bytes
    reason: str


def collect_rows(
    bodies: Sequence[bytes], columns: TableColumns
) -> tuple[pa.Table | None, list[RefusedRow]]:
    """Return the rows of tasks as one table, and those that do not fit.

    Two tasks may have found another type for a new column. A number that is whole in one and not
    in the other makes it `double`; else the first in order decides.

    Args:
        bodies: what the tasks have encoded, in order; or a row as JSON, which was refused before.
        columns: those that the table has, and is to have.

    Returns:
        The rows, None where there are none; and those that do not fit.
    """
    refused: list[RefusedRow] = []
    sources: list[tuple[int, pa.Table]] = []
    for number, body in enumerate(bodies):
        if body.startswith(_STREAM_MARK):
            sources += ((number, table) for table in decode_batches(body))
            continue
        made = build_rows([parse_json(body)], columns)
        refused += [RefusedRow(number, body, why) for why in made.errors.values()]
        sources.append((number, pa.Table.from_batches([made.rows])))
    schema, fixed = columns.schema, frozenset(columns.schema.names)
    for _, table in sources:
        schema = _merge_schemas(schema, table.schema, fixed)
    schema = pa.schema([field.with_nullable(True) for field in schema])
    tables = []
    for number, table in sources:
        fitted, misfits = _fit_table(table, schema)
        tables.append(fitted)
        refused += (RefusedRow(number, dump_row(row), why) for row, why in misfits)
    rows = pa.concat_tables(tables) if tables else None
    return (rows if rows is not None and rows.num_rows else None), refused


def dump_row(row: object) -> bytes:
    """Return a row as JSON."""
    return orjson.dumps(row, default=str)


def _merge_schemas(schema: pa.Schema, other: pa.Schema, fixed: Iterable[str]) -> pa.Schema:
    """Return a schema with the columns of another; a new column gets a type that holds both."""
    for field in other:
        index = schema.get_field_index(field.name)
        if index < 0:
            schema = schema.append(field)
        elif field.name not in fixed:
            merged = merge_types(schema.field(index).type, field.type)
            schema = schema.set(index, schema.field(index).with_type(merged))
    return schema


def _fit_table(table: pa.Table, schema: pa.Schema) -> tuple[pa.Table, list[tuple[object, str]]]:
    """Return a table with all columns of a schema, and the rows that do not fit with the reason."""
    columns, errors = [], dict[int, str]()
    for field in schema:
        index = table.schema.get_field_index(field.name)
        if index < 0:
            columns.append(pa.nulls(table.num_rows, field.type))
            continue
        column = table.column(index)
        if column.type != field.type:
            column, misfits = build_column(column.to_pylist(), field.type)
            for at, misfit in misfits.items():
                errors.setdefault(at, f"the field {field.name} {misfit}")
        columns.append(column)
    fitted = pa.table(columns, schema=schema)
    if not errors:
        return fitted, []
    bad = sorted(errors)
    kept = [at for at in range(table.num_rows) if at not in errors]
    rows = table.take(pa.array(bad, pa.int64())).to_pylist()
    return fitted.take(pa.array(kept, pa.int64())), [
        (row, errors[at]) for row, at in zip(rows, bad, strict=True)
    ]
