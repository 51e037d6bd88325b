"""Rows of a table from messages: what fits is a row, and what does not is explained."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from streamer.connectors.tables.caseless_names import match_names
from streamer.connectors.tables.column_inference import (
    drop_untyped,
    extend_type,
    infer_columns,
    is_nested_deeper,
    list_field_names,
    widen_type,
)
from streamer.connectors.tables.column_types import name_column_type
from streamer.connectors.tables.column_values import (
    MisfitError,
    build_column,
    build_direct_column,
    fit_value,
    has_direct_type,
)
from streamer.connectors.tables.new_columns import ChooseType
from streamer.core.errors import MessageError

MAX_COLUMNS: Final = 2_000
"""Columns that a table may get from messages: one whose fields are keys would get ever more."""

MAX_LEVELS: Final = 32
"""Objects and lists in one another that a column may get from messages. Arrow reads 64 at most, and
readers of tables go into each one by a call."""

_ONLY_OBJECTS: Final = frozenset({dict})

_TOO_DEEP: Final = (
    f"nested deeper than {MAX_LEVELS} levels; let a mapping make a text of it, by format_json()"
)


class TableColumns(NamedTuple):
    """The columns that rows may have.

    Attributes:
        schema: those that the table has, or is to have when it is made.
        is_open: whether further fields of messages become columns.
        explain_name: returns why a name cannot be that of a column; empty when it can.
        required: columns of which no value may be null, whatever the table says.
        widens_maps: whether objects that are values of a map may get fields too.
        choose_type: chooses the type of a new column; None for the one that is inferred.
        ignores_case: whether fields belong to columns whose names differ by case alone.
    """

    schema: pa.Schema
    is_open: bool
    explain_name: Callable[[str], str] = lambda name: ""
    required: Sequence[str] = ()
    widens_maps: bool = True
    choose_type: ChooseType | None = None
    ignores_case: bool = False


class RowBatch(NamedTuple):
    """Rows of messages.

    Attributes:
        rows: one for each message that fits, in order.
        errors: why the others do not, by index.
    """

    rows: pa.RecordBatch
    errors: Mapping[int, str]


class LearnedColumns:
    """The columns of the messages before, where no table says them.

    It saves the inference of types for messages that are like those before. All others are treated
    as if nothing were learned, so what it knows never changes a result. Threads may share it.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._learned: tuple[pa.Schema, frozenset[str], frozenset[str]] | None = None

    def learn(self, schema: pa.Schema, declared: Collection[str]) -> None:
        """Note the columns of messages, where all types that were inferred are plain.

        Args:
            schema: the columns.
            declared: the names of those whose types the config has.
        """
        if all(field.name in declared or has_direct_type(field.type) for field in schema):
            self._learned = schema, frozenset(schema.names), frozenset(declared)

    def build_rows(self, documents: Sequence[Any]) -> pa.RecordBatch | None:
        """Return the rows of messages; None where one of them is not like those before."""
        if self._learned is None or not _ONLY_OBJECTS.issuperset(map(type, documents)):
            return None
        schema, names, declared = self._learned
        if not all(map(names.issuperset, documents)):
            return None
        columns: list[pa.Array] = []
        for field in schema:
            name = field.name
            values = [one.get(name) for one in documents]
            if name in declared:
                column, misfits = build_column(values, field.type)
                if misfits:
                    return None
            elif (column := build_direct_column(values, field.type)) is None:
                return None
            columns.append(column)
        return pa.RecordBatch.from_arrays(columns, schema=schema)


def build_rows(
    documents: Sequence[Any], columns: TableColumns, partial: Collection[int] = ()
) -> RowBatch:
    """Return the rows of messages.

    Args:
        documents: what is in the messages; an object is expected of each.
        columns: the table's.
        partial: the indexes of those that have required columns alone, whatever the table says.
    """
    errors: dict[int, str] = {}
    objects: Sequence[dict[str, Any]] = documents
    if not _ONLY_OBJECTS.issuperset(map(type, documents)):
        objects = [
            _take_object(document, index, errors) for index, document in enumerate(documents)
        ]
    if columns.ignores_case:
        objects = match_names(objects, columns.schema, errors)
    schema = _add_new_columns(objects, columns, errors)
    arrays = []
    for field in schema:
        values = [document.get(field.name) for document in objects]
        array, misfits = build_column(values, field.type)
        if misfits and columns.is_open and pa.types.is_nested(field.type):
            array, misfits = _build_widened(values, field.type, misfits, columns)
        for index, misfit in misfits.items():
            text = str(misfit)
            errors.setdefault(
                index, f"the field {field.name}{'' if text.startswith('.') else ' '}{text}"
            )
        if array.null_count and field.name in columns.required:
            _note_nulls(field.name, values, errors)
        elif array.null_count and not field.nullable:
            _note_nulls(field.name, values, errors, partial)
        arrays.append(array)
    for name in columns.required:
        if name not in schema.names:
            _note_nulls(name, [None] * len(objects), errors)
    rows = pa.RecordBatch.from_arrays(
        arrays,
        schema=pa.schema(
            [pa.field(field.name, array.type) for field, array in zip(schema, arrays, strict=True)]
        ),
    )
    if errors:
        kept = [index for index in range(len(documents)) if index not in errors]
        rows = rows.take(pa.array(kept, pa.int64()))
    return RowBatch(rows, errors)


def _take_object(document: Any, index: int, errors: dict[int, str]) -> dict[str, Any]:
    if isinstance(document, dict):
        return document
    kind = {list: "an array", str: "a text", type(None): "null"}.get(type(document), "no object")
    errors[index] = f"the message is {kind}; expected an object, whose fields are columns"
    return {}


def _build_widened(
    values: list[Any],
    kind: pa.DataType,
    misfits: Mapping[int, MisfitError],
    columns: TableColumns,
) -> tuple[pa.Array, Mapping[int, MisfitError]]:
    """Return a column to which objects in its values add fields, and what still does not fit."""
    widened, failed = kind, dict[int, MisfitError]()
    for index in misfits:
        if is_nested_deeper(values[index], MAX_LEVELS):
            failed[index] = MisfitError(f"is {_TOO_DEEP}")
            continue
        candidate = widen_type(kind, values[index], in_maps=columns.widens_maps)
        pruned = drop_untyped(candidate, values[index])
        if not _may_have_fields(kind, candidate, columns):
            continue
        try:
            fit_value(pruned, candidate)
        except MisfitError as error:
            failed[index] = error
            continue  # A message that is rejected adds nothing.
        values[index] = pruned
        widened = extend_type(kind, widened, candidate)
    array, left = build_column(values, widened)
    return array, {index: failed.get(index, error) for index, error in left.items()}


def _may_have_fields(kind: pa.DataType, widened: pa.DataType, columns: TableColumns) -> bool:
    """Return whether a table may have the nested fields of a type beside those of its column."""
    names, known = list(list_field_names(widened)), frozenset(list_field_names(kind))
    return len(names) <= MAX_COLUMNS and not any(
        columns.explain_name(name) for name in names if name not in known
    )


def _note_nulls(
    name: str, values: Sequence[Any], errors: dict[int, str], partial: Collection[int] = ()
) -> None:
    for index, value in enumerate(values):
        if value is None and index not in partial:
            errors.setdefault(index, f"the field {name} is null, or not there, and must not be")


def _add_new_columns(
    objects: Sequence[Mapping[str, Any]], columns: TableColumns, errors: dict[int, str]
) -> pa.Schema:
    """Return the columns with those that messages add; messages with impossible ones are errors."""
    schema, names = columns.schema, frozenset(columns.schema.names)
    if all(map(names.issuperset, objects)):
        return schema
    strange = [index for index, one in enumerate(objects) if not names.issuperset(one)]
    good = []
    for index in strange:
        problem = _explain_fields(objects[index], columns, names)
        if problem:
            errors[index] = problem
        else:
            good.append(objects[index])
    inferred = infer_columns(good, names)
    if columns.choose_type is not None:
        inferred = _choose_types(inferred, columns.choose_type, objects, errors)
    for name, kind in inferred.items():
        if len(schema) >= MAX_COLUMNS:
            break
        schema = schema.append(pa.field(name, kind))
    if len(schema) >= MAX_COLUMNS:
        kept = frozenset(schema.names)
        for index in strange:
            if not kept.issuperset(objects[index]):
                errors.setdefault(index, f"the table would get more than {MAX_COLUMNS} columns")
    return schema


def _choose_types(
    inferred: Mapping[str, pa.DataType],
    choose: ChooseType,
    objects: Sequence[Mapping[str, Any]],
    errors: dict[int, str],
) -> dict[str, pa.DataType]:
    """Return the types of new columns; messages that have one without a type are errors."""
    types: dict[str, pa.DataType] = {}
    for name, kind in inferred.items():
        having = [index for index, one in enumerate(objects) if one.get(name) is not None]
        try:
            types[name] = choose(name, kind, objects[having[0]])
        except MessageError as error:
            errors |= {at: f"the field {name} cannot be a column: {error}" for at in having}
    return types


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
        elif is_nested_deeper(value, MAX_LEVELS):
            return f"the field {name} is {_TOO_DEEP}"
    return ""


def describe_columns(schema: pa.Schema) -> dict[str, str]:
    """Return the types of columns by name, as a config writes them."""
    return {field.name: name_column_type(field.type) for field in schema}
