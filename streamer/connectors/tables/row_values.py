"""Rows of tables as values of messages: what `column_values` makes columns of, the other way.

What a message gets fits the column that it comes from, so a copy of a table is the same table. A
decimal is a text, since a float would lose digits; a time is RFC 3339, without `Z` where the column
has no zone; bytes stay bytes, which JSON has as base64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any, Final

import pyarrow as pa

from streamer.core.timestamps import format_rfc3339

_UNIT_NS: Final = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_Convert = Callable[[Any], Any]


def row_values(rows: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Give an object for each row."""
    names = rows.schema.names
    if not names:
        yield from ({} for _ in range(rows.num_rows))
        return
    for row in zip(*map(column_values, rows.columns), strict=True):
        yield dict(zip(names, row, strict=True))


def column_values(column: pa.Array) -> list[Any]:
    """Return the values of a column, as Bloblang has them; None for null.

    Example:
        >>> column_values(pa.array([20454], pa.date32()))
        ['2026-01-01']
    """
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    convert = _find_conversion(column.type)
    values = column.cast(_plain_type(column.type)).to_pylist()
    return values if convert is None else [None if one is None else convert(one) for one in values]


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """Return a type with numbers in the place of times, and texts in that of decimals."""
    types = pa.types
    if types.is_timestamp(kind) or types.is_time64(kind) or types.is_duration(kind):
        return pa.int64()
    if types.is_date64(kind):
        return pa.date32()
    if types.is_time32(kind):
        return pa.int32()
    if types.is_float16(kind):
        return pa.float32()
    if types.is_decimal(kind):
        return pa.string()
    if _is_list(kind):
        return pa.list_(kind.value_field.with_type(_plain_type(kind.value_type)))
    if types.is_map(kind):
        return pa.map_(_plain_type(kind.key_type), _plain_type(kind.item_type))
    if types.is_struct(kind):
        return pa.struct([one.with_type(_plain_type(one.type)) for one in kind])
    return kind


def _is_list(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def _find_conversion(kind: pa.DataType) -> _Convert | None:
    """Return what makes a value of one that is not null; None where it stays as it is."""
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        # Their values are Python's, such as a UUID.
        return str
    if types.is_timestamp(kind):
        return _timestamp_conversion(kind)
    if types.is_date(kind):
        return _format_date
    if types.is_time(kind):
        unit = _UNIT_NS[kind.unit]
        return lambda value: _format_clock(value * unit)
    if types.is_floating(kind):
        # As JSON has it.
        return lambda value: value if math.isfinite(value) else None
    if _is_list(kind):
        inner = _find_conversion(kind.value_type)
        if inner is None:
            return None
        return lambda values: [None if one is None else inner(one) for one in values]
    if types.is_map(kind):
        convert = _find_conversion(kind.item_type) or _keep
        return lambda pairs: {str(key): None if one is None else convert(one) for key, one in pairs}
    if types.is_struct(kind):
        inners = {one.name: inner for one in kind if (inner := _find_conversion(one.type))}
        return (lambda value: _convert_struct(value, inners)) if inners else None
    return None


def _keep(value: Any) -> Any:
    return value


def _convert_struct(value: dict[str, Any], inners: dict[str, _Convert]) -> dict[str, Any]:
    for name, convert in inners.items():
        if value[name] is not None:
            value[name] = convert(value[name])
    return value


def _timestamp_conversion(kind: pa.TimestampType) -> _Convert:
    unit = _UNIT_NS[kind.unit]
    if kind.tz is None:
        return lambda value: format_rfc3339(value * unit).removesuffix("Z")
    return lambda value: format_rfc3339(value * unit)


def _format_date(value: date) -> str:
    return value.isoformat()


def _format_clock(ns: int) -> str:
    """Return a time of the day in the form of RFC 3339, without a zone."""
    text = format_rfc3339(ns).removesuffix("Z")
    return text.partition("T")[2]
