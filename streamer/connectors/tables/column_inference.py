"""Types of columns that a table does not have yet, from the values of messages.

Integers are `bigint`, other numbers `double`; a column that has both is `double`. A text is a
`string`, whatever is in it: what looks like a time today may not tomorrow. Source of the rules:
Iceberg's and Delta Lake's own inference from JSON, without their guesses about texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from streamer.connectors.tables.column_types import TIMESTAMP, is_list_type
from streamer.core.timestamps import Timestamp
from streamer.core.value import Number


def infer_columns(
    documents: Iterable[Mapping[str, Any]], known: Iterable[str]
) -> dict[str, pa.DataType]:
    """Return the types of fields that are no columns yet, in the order in which they come.

    A field of which all values are null or empty has no type yet, and none is made for it. Where
    values of several messages contradict each other, the first one decides.

    Args:
        documents: what is in the messages.
        known: the names of the columns that the table has.
    """
    columns: dict[str, pa.DataType] = {}
    names = frozenset(known)
    for document in documents:
        if names.issuperset(document):
            continue
        for name, value in document.items():
            if name not in names and (kind := _infer_type(value)) is not None:
                columns[name] = merge_types(columns[name], kind) if name in columns else kind
    return columns


def _infer_type(value: Any) -> pa.DataType | None:
    """Return the type of a value; None where it could be anything."""
    match value:
        case bool():
            return pa.bool_()
        case Number():
            return pa.int64() if value.text.lstrip("-").isdecimal() else pa.float64()
        case int():
            return pa.int64()
        case float():
            return pa.float64()
        case str():
            return pa.string()
        case bytes():
            return pa.binary()
        case Timestamp():
            return TIMESTAMP
        case list():
            kinds = [kind for one in value if (kind := _infer_type(one)) is not None]
            return pa.list_(_merge_all(kinds)) if kinds else None
        case dict():
            typed = [(name, _infer_type(one)) for name, one in value.items()]
            fields = [pa.field(name, kind) for name, kind in typed if kind is not None]
            return pa.struct(fields) if fields else None
        case _:
            return None


def _merge_all(kinds: list[pa.DataType]) -> pa.DataType:
    merged = kinds[0]
    for kind in kinds[1:]:
        merged = merge_types(merged, kind)
    return merged


def merge_types(first: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return the type that holds the values of two; the first where none does."""
    if first == other:
        return first
    if {first, other} == {pa.int64(), pa.float64()}:
        return pa.float64()
    if is_list_type(first) and is_list_type(other):
        return pa.list_(merge_types(first.value_type, other.value_type))
    if pa.types.is_struct(first) and pa.types.is_struct(other):
        fields = {field.name: field.type for field in first}
        for field in other:
            kind = fields.get(field.name)
            fields[field.name] = field.type if kind is None else merge_types(kind, field.type)
        return pa.struct(list(fields.items()))
    return first
