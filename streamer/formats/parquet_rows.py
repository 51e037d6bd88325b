"""Rows of Parquet files as documents.

Times are the numbers that they are stored as, or timestamps; decimals are texts; columns of bytes
without a meaning stay bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from streamer.timestamps import format_rfc3339

if TYPE_CHECKING:
    import pyarrow as pa

_SIZES: Final = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1000, "ns": 1}


def documents(rows: pa.RecordBatch, *, as_stored: bool) -> Iterator[dict[str, Any]]:
    """Return a document for each row.

    Args:
        rows: the rows.
        as_stored: whether times are numbers; otherwise they are texts as RFC 3339 has them.
    """
    names = rows.schema.names
    columns = [_values(column, as_stored) for column in rows.columns]
    for row in zip(*columns, strict=True):
        yield dict(zip(names, row, strict=True))


def _values(column: pa.Array, as_stored: bool) -> list[Any]:
    kind = column.type
    # Times as numbers first: Python's know no nanoseconds.
    return [_told(value, kind, as_stored) for value in column.cast(_stored(kind)).to_pylist()]


def _stored(kind: pa.DataType) -> pa.DataType:
    """Return a type with numbers in the place of times, and texts in that of decimals."""
    import pyarrow as pa

    types = pa.types
    if types.is_timestamp(kind) or types.is_time64(kind):
        return pa.int64()
    if types.is_date32(kind) or types.is_time32(kind):
        return pa.int32()
    if types.is_decimal(kind):
        return pa.string()
    if types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_stored(kind.value_type)))
    if types.is_struct(kind):
        return pa.struct([field.with_type(_stored(field.type)) for field in kind])
    return kind


def _told(value: Any, kind: pa.DataType, as_stored: bool) -> Any:
    import pyarrow as pa

    types = pa.types
    if value is None:
        return None
    if types.is_list(kind):
        return [_told(one, kind.value_type, as_stored) for one in value]
    if types.is_struct(kind):
        return {field.name: _told(value[field.name], field.type, as_stored) for field in kind}
    if types.is_map(kind):
        item = kind.item_type
        return {str(key): _told(one, item, as_stored) for key, one in value}
    if types.is_timestamp(kind) and not as_stored:
        return format_rfc3339(value * _SIZES[kind.unit])
    return value
