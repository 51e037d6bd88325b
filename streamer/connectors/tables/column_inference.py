"""Types of columns that a table does not have yet, from the values of messages.

Integers are `bigint`, other numbers `double`; a column that has both is `double`. A text is a
`string`, whatever is in it: what looks like a time today may not tomorrow. Source of the rules:
Iceberg's and Delta Lake's own inference from JSON, without their guesses about texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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
            if name not in names and (kind := infer_type(value)) is not None:
                columns[name] = merge_types(columns[name], kind) if name in columns else kind
    return columns


def infer_type(value: Any) -> pa.DataType | None:
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
            kinds = [kind for one in value if (kind := infer_type(one)) is not None]
            return pa.list_(_merge_all(kinds)) if kinds else None
        case dict():
            typed = [(name, infer_type(one)) for name, one in value.items()]
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
    if pa.types.is_map(first) and pa.types.is_map(other):
        return pa.map_(first.key_type, merge_types(first.item_type, other.item_type))
    return first


def extend_type(known: pa.DataType | None, current: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return a type with the nested fields of another; what a table has stays as it is.

    Args:
        known: the type that the table has; None where it has none yet.
        current: that type, with the fields that were added so far.
        other: the type with further fields.

    Example:
        >>> known = pa.struct([("n", pa.int64())])
        >>> extend_type(known, known, pa.struct([("n", pa.float64()), ("x", pa.string())]))
        StructType(struct<n: int64, x: string>)
    """
    if known is None:
        return merge_types(current, other)
    if current == other:
        return current
    if is_list_type(current) and is_list_type(other):
        return pa.list_(extend_type(known.value_type, current.value_type, other.value_type))
    if pa.types.is_map(current) and pa.types.is_map(other):
        item = extend_type(known.item_type, current.item_type, other.item_type)
        return pa.map_(current.key_type, item)
    if pa.types.is_struct(current) and pa.types.is_struct(other):
        of_table = {field.name: field.type for field in known}
        fields = {field.name: field.type for field in current}
        for field in other:
            before = fields.get(field.name)
            fields[field.name] = (
                field.type
                if before is None
                else extend_type(of_table.get(field.name), before, field.type)
            )
        return pa.struct(list(fields.items()))
    return current


def widen_type(kind: pa.DataType, value: Any, *, in_maps: bool = True) -> pa.DataType:
    """Return the type of a column with the fields that objects in a value have beside its own.

    Args:
        kind: the type.
        value: a value.
        in_maps: whether objects that are values of a map get fields too.

    Example:
        >>> widen_type(pa.list_(pa.struct([("n", pa.int64())])), [{"n": 1, "x": "a"}])
        ListType(list<item: struct<n: int64, x: string>>)
    """
    if pa.types.is_struct(kind) and isinstance(value, dict):
        fields = {field.name: field.type for field in kind}
        for name, one in value.items():
            is_known = name in fields
            inner = widen_type(fields[name], one, in_maps=in_maps) if is_known else infer_type(one)
            if inner is not None:
                fields[name] = inner
        return pa.struct(list(fields.items()))
    if is_list_type(kind) and isinstance(value, list):
        item = kind.value_type
        for one in value:
            item = widen_type(item, one, in_maps=in_maps)
        return pa.list_(item)
    if pa.types.is_map(kind) and isinstance(value, dict) and in_maps:
        item = kind.item_type
        for one in value.values():
            item = widen_type(item, one)
        return pa.map_(kind.key_type, item)
    return kind


def drop_untyped(kind: pa.DataType, value: Any) -> Any:
    """Return a value without nested fields that a column does not have, and that have no type.

    Example:
        >>> drop_untyped(pa.struct([("n", pa.int64())]), {"n": 1, "x": [], "y": None})
        {'n': 1}
    """
    if pa.types.is_struct(kind) and isinstance(value, dict):
        fields = {field.name: field.type for field in kind}
        return {
            name: drop_untyped(fields[name], one) if name in fields else one
            for name, one in value.items()
            if name in fields or infer_type(one) is not None
        }
    if is_list_type(kind) and isinstance(value, list):
        return [drop_untyped(kind.value_type, one) for one in value]
    if pa.types.is_map(kind) and isinstance(value, dict):
        return {key: drop_untyped(kind.item_type, one) for key, one in value.items()}
    return value


def is_nested_deeper(value: Any, levels: int) -> bool:
    """Return whether a value has more levels of objects and lists than a number of them.

    Example:
        >>> is_nested_deeper([[1]], 2), is_nested_deeper([[{}]], 2)
        (False, True)
    """
    if not isinstance(value, dict | list):
        return False
    if not levels:
        return True
    inner = value.values() if isinstance(value, dict) else value
    return any(is_nested_deeper(one, levels - 1) for one in inner)


def list_field_names(kind: pa.DataType) -> Iterator[str]:
    """Give the names of the fields that are nested in a type, at each depth."""
    if pa.types.is_struct(kind):
        for field in kind:
            yield field.name
            yield from list_field_names(field.type)
    elif pa.types.is_map(kind):
        yield from list_field_names(kind.item_type)
    elif is_list_type(kind):
        yield from list_field_names(kind.value_type)
