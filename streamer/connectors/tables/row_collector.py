"""Rows of many tasks as one table: with all columns, and without rows that do not fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import orjson
import pyarrow as pa

from streamer.connectors.tables.arrow_streams import decode_batches
from streamer.connectors.tables.caseless_names import rename_columns
from streamer.connectors.tables.column_inference import extend_type
from streamer.connectors.tables.column_values import build_column
from streamer.connectors.tables.row_operations import (
    RowOperation,
    repeat_operation,
    take_operations,
)
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
        operation: what was to become of it.
    """

    source: int
    body: bytes
    reason: str
    operation: RowOperation


class CollectedRows(NamedTuple):
    """The rows of tasks.

    Attributes:
        rows: those that fit, in order.
        operations: what becomes of each, as a number.
        refused: those that do not fit.
    """

    rows: pa.Table
    operations: pa.Array
    refused: list[RefusedRow]


class _Source(NamedTuple):
    number: int
    rows: pa.Table
    operations: pa.Array


def collect_rows(
    bodies: Sequence[bytes],
    columns: TableColumns,
    operations: Sequence[RowOperation] | None = None,
) -> CollectedRows:
    """Return the rows of tasks as one table, and those that do not fit.

    Two tasks may have found another type for a new column, or a new field in one. A number that is
    whole in one and not in the other makes it `double`; else the first in order decides.

    Args:
        bodies: what the tasks have encoded, in order; or a row as JSON, which was refused before.
        columns: those that the table has, and is to have.
        operations: what becomes of the rows of each that do not say it; None to insert them.
    """
    refused: list[RefusedRow] = []
    sources: list[_Source] = []
    for number, body in enumerate(bodies):
        operation = RowOperation.INSERT if operations is None else operations[number]
        if not body:
            continue  # Its rows are in files.
        if body.startswith(_STREAM_MARK):
            for table in decode_batches(body):
                sources.append(_Source(number, *take_operations(table, operation)))
            continue
        is_deleted = operation == RowOperation.DELETE
        made = build_rows([parse_json(body)], columns, [0] if is_deleted else [])
        refused += [RefusedRow(number, body, why, operation) for why in made.errors.values()]
        some = pa.Table.from_batches([made.rows])
        sources.append(_Source(number, some, repeat_operation(operation, some.num_rows)))
    schema = pa.schema([field.with_nullable(True) for field in columns.schema])
    if columns.ignores_case:
        names = {name.casefold(): name for name in schema.names}
        sources = [one._replace(rows=rename_columns(one.rows, names)) for one in sources]
    if columns.is_open:
        for source in sources:
            schema = _merge_schemas(columns.schema, schema, source.rows.schema)
    tables, fitting = [schema.empty_table()], []
    for source in sources:
        fitted, misfits = _fit_table(source.rows, schema)
        bad = sorted(misfits)
        if bad:
            kept = pa.array([at for at in range(fitted.num_rows) if at not in misfits], pa.int64())
            refused += _refuse(source, bad, misfits)
            source = source._replace(operations=source.operations.take(kept))
            fitted = fitted.take(kept)
        tables.append(fitted)
        fitting.append(source.operations)
    whole = pa.concat_arrays(fitting) if fitting else pa.array([], pa.int8())
    return CollectedRows(pa.concat_tables(tables), whole, refused)


def _refuse(source: _Source, bad: list[int], misfits: Mapping[int, str]) -> Iterator[RefusedRow]:
    rows = dump_rows(source.rows.take(pa.array(bad, pa.int64())))
    for body, at in zip(rows, bad, strict=True):
        operation = RowOperation(source.operations[at].as_py())
        yield RefusedRow(source.number, body, misfits[at], operation)


def dump_rows(rows: pa.Table) -> list[bytes]:
    """Return rows as JSON."""
    documents = rows.to_pylist(maps_as_pydicts="lossy")
    return [orjson.dumps(one, default=str) for one in documents]


def _merge_schemas(known: pa.Schema, schema: pa.Schema, other: pa.Schema) -> pa.Schema:
    """Return a schema with the columns of another; a new column gets a type that holds both.

    Args:
        known: the columns of the table, whose types stay; objects in them may get fields.
        schema: these columns, and those that were added so far.
        other: the columns of another task.
    """
    for field in other:
        index = schema.get_field_index(field.name)
        if index < 0:
            schema = schema.append(field)
            continue
        place = known.get_field_index(field.name)
        fixed = known.field(place).type if place >= 0 else None
        merged = extend_type(fixed, schema.field(index).type, field.type)
        schema = schema.set(index, schema.field(index).with_type(merged))
    return schema


def _fit_table(table: pa.Table, schema: pa.Schema) -> tuple[pa.Table, Mapping[int, str]]:
    """Return a table with all columns of a schema, and why some rows do not fit, by index."""
    columns, errors = [], dict[int, str]()
    for field in schema:
        index = table.schema.get_field_index(field.name)
        if index < 0:
            columns.append(pa.nulls(table.num_rows, field.type))
            continue
        column = table.column(index)
        if column.type != field.type:
            if extend_type(column.type, column.type, field.type) == field.type:
                # It has fewer nested fields, and no other difference.
                column = column.cast(field.type)
            else:
                values = column.to_pylist(maps_as_pydicts="lossy")
                column, misfits = build_column(values, field.type)
                for at, misfit in misfits.items():
                    text = str(misfit)
                    joint = "" if text.startswith(".") else " "
                    errors.setdefault(at, f"the field {field.name}{joint}{text}")
        columns.append(column)
    for name in table.schema.names:
        if name not in schema.names:
            for at, value in enumerate(table.column(name)):
                if value.is_valid:
                    errors.setdefault(at, f"the field {name} is no column of the table")
    return pa.table(columns, schema=schema), errors
