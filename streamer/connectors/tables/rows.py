"""Rows of a table from messages: what fits is a row, and what does not is explained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from streamer.connectors.tables.column_inference import infer_columns
from streamer.connectors.tables.column_types import name_column_type
from streamer.connectors.tables.column_values import build_column

MAX_COLUMNS: Final = 2_000
"""Columns that a table may get from messages: one whose fields are keys would get ever more."""


class TableColumns(NamedTuple):
    """The columns that rows may have.

    Attributes:
        schema: those that the table has, or is to have when it is made.
        is_open: whether further fields of messages become columns.
        explain_name: returns why a name cannot be that of a column; empty when it can.
        required: columns of which no value may be null, whatever the table says.
    """

    schema: pa.Schema
    is_open: bool
    explain_name: Callable[[str], str] = lambda name: ""
    required: Sequence[str] = ()


class RowBatch(NamedTuple):
    """Rows of messages.

    Attributes:
        rows: one for each message that fits, in order.
        errors: why the others do not, by index.
    """

    rows: pa.RecordBatch
    errors: Mapping[int, str]


def build_rows(documents: Sequence[Any], columns: TableColumns) -> RowBatch:
    """Return the rows of messages.

    Args:
        documents: what is in the messages; an object is expected of each.
        columns: the table's.
    """
    errors: dict[int, str] = {}
    objects: list[dict[str, Any]] = []
    for index, document in enumerate(documents):
        if isinstance(document, dict):
            objects.append(document)
        else:
            kind = {list: "an array", str: "a text", type(None): "null"}.get(
                type(document), "no object"
            )
            errors[index] = f"the message is {kind}; expected an object, whose fields are columns"
            objects.append({})
    schema = _add_new_columns(objects, columns, errors)
    arrays = []
    for field in schema:
        values = [document.get(field.name) for document in objects]
        array, misfits = build_column(values, field.type)
        for index, misfit in misfits.items():
            text = str(misfit)
            errors.setdefault(
                index, f"the field {field.name}{'' if text.startswith('.') else ' '}{text}"
            )
        if array.null_count and (not field.nullable or field.name in columns.required):
            _note_nulls(field.name, values, errors)
        arrays.append(array)
    for name in columns.required:
        if name not in schema.names:
            _note_nulls(name, [None] * len(objects), errors)
    rows = pa.RecordBatch.from_arrays(
        arrays, schema=pa.schema([field.with_nullable(True) for field in schema])
    )
    if errors:
        kept = [index for index in range(len(documents)) if index not in errors]
        rows = rows.take(pa.array(kept, pa.int64()))
    return RowBatch(rows, errors)


def _note_nulls(name: str, values: Sequence[Any], errors: dict[int, str]) -> None:
    for index, value in enumerate(values):
        if value is None:
            errors.setdefault(index, f"the field {name} is null, or not there, and must not be")


def _add_new_columns(
    objects: Sequence[Mapping[str, Any]], columns: TableColumns, errors: dict[int, str]
) -> pa.Schema:
    """Return the columns with those that messages add; messages with impossible ones are errors."""
    schema, names = columns.schema, frozenset(columns.schema.names)
    strange = [index for index, one in enumerate(objects) if not names.issuperset(one)]
    if not strange:
        return schema
    good = []
    for index in strange:
        problem = _explain_fields(objects[index], columns, names)
        if problem:
            errors[index] = problem
        else:
            good.append(objects[index])
    for name, kind in infer_columns(good, names).items():
        if len(schema) >= MAX_COLUMNS:
            break
        schema = schema.append(pa.field(name, kind))
    if len(schema) >= MAX_COLUMNS:
        kept = frozenset(schema.names)
        for index in strange:
            if not kept.issuperset(objects[index]):
                errors.setdefault(index, f"the table would get more than {MAX_COLUMNS} columns")
    return schema


def _explain_fields(
    document: Mapping[str, Any], columns: TableColumns, names: frozenset[str]
) -> str:
    """Return why a message has a field that cannot be a column; empty where it has none."""
    for name, value in document.items():
        if name in names:
            continue
        if not columns.is_open:
            if value is not None:
                return (
                    f"the field {name} is no column of the table, which has "
                    f"{', '.join(columns.schema.names[:20])}"
                )
        elif problem := columns.explain_name(name):
            return f"the field {name!r} cannot be a column: {problem}"
    return ""


def describe_columns(schema: pa.Schema) -> dict[str, str]:
    """Return the types of columns by name, as a config writes them."""
    return {field.name: name_column_type(field.type) for field in schema}
