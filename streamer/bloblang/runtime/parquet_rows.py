"""Rows of Parquet files as documents.

Times are the numbers that they are stored as, or timestamps; decimals are texts; columns of bytes
without a meaning stay bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from streamer.bloblang.limits import check_decompressed_size, check_elements, check_messages
from streamer.core.timestamps import format_rfc3339

if TYPE_CHECKING:
    import pyarrow as pa

_PLAIN: Final = frozenset((bool, bytes, dict, float, int, list, str))
_SIZES: Final = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1000, "ns": 1}


_BATCH_ROWS: Final = 4096
_NESTED_BATCH_ROWS: Final = 64
"""Rows at once where texts of nested columns may each be as long as a page."""


def read_rows(raw: bytes) -> Iterator[pa.RecordBatch]:
    """Return the rows of a file, piece by piece, as long as they are within the limits.

    Columns whose values are numbers of entries in a dictionary stay that: a value of a kilobyte
    that stands in each of a million rows is in memory once.

    Raises:
        ArgumentError: there are more values than `limits.elements`.
        QueryError: there are more rows than `limits.messages`, or bytes than `limits.bytes`.
        pyarrow.ArrowException: it is no Parquet file.
        OSError: so it is as well.
    """
    import pyarrow as pa
    from pyarrow import parquet

    file = parquet.ParquetFile(pa.BufferReader(raw))
    head = file.metadata
    check_messages(head.num_rows)
    groups = [head.row_group(number) for number in range(head.num_row_groups)]
    columns = [group.column(at) for group in groups for at in range(group.num_columns)]
    check_elements(sum(max(column.num_values, 0) for column in columns), "a Parquet file")
    check_decompressed_size(sum(max(column.total_uncompressed_size, 0) for column in columns))
    repeated = {
        column.path_in_schema
        for column in columns
        if column.physical_type == "BYTE_ARRAY" and _is_dictionary_encoded(column)
    }
    flat = {name for name in repeated if name in file.schema_arrow.names}
    if flat:
        file = parquet.ParquetFile(pa.BufferReader(raw), read_dictionary=sorted(flat))
    size = 0
    for rows in file.iter_batches(_NESTED_BATCH_ROWS if repeated - flat else _BATCH_ROWS):
        size += sum(map(_decoded_bytes, rows.columns))
        check_decompressed_size(size)
        yield rows


def _is_dictionary_encoded(column: Any) -> bool:
    return any("DICTIONARY" in encoding for encoding in column.encodings)


def _decoded_bytes(column: pa.Array) -> int:
    """Return how many bytes a column's values take when each stands for itself."""
    import pyarrow as pa
    from pyarrow import compute

    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    lengths = compute.binary_length(column.dictionary)
    return compute.sum(lengths.take(column.indices)).as_py() or 0


def row_documents(rows: pa.RecordBatch, *, as_stored: bool) -> Iterator[dict[str, Any]]:
    """Return a document for each row.

    Args:
        rows: the rows.
        as_stored: whether times are numbers; otherwise they are texts as RFC 3339 has them.
    """
    names = rows.schema.names
    columns = [_column_values(column, as_stored) for column in rows.columns]
    for row in zip(*columns, strict=True):
        yield dict(zip(names, row, strict=True))


def _column_values(column: pa.Array, as_stored: bool) -> list[Any]:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_dictionary(kind) and len(column.dictionary) > len(column):
        return _column_values(column.dictionary_decode(), as_stored)
    if pa.types.is_dictionary(kind):
        entries = _column_values(column.dictionary, as_stored)
        return [None if at is None else entries[at] for at in column.indices.to_pylist()]
    # Times as numbers first: Python's know no nanoseconds.
    return [
        _convert_value(value, kind, as_stored)
        for value in column.cast(_storage_type(kind)).to_pylist()
    ]


def _storage_type(kind: pa.DataType) -> pa.DataType:
    """Return a type with numbers in the place of times, and texts in that of decimals."""
    import pyarrow as pa

    types = pa.types
    if types.is_timestamp(kind) or types.is_time64(kind) or types.is_duration(kind):
        return pa.int64()
    if types.is_date32(kind) or types.is_time32(kind):
        return pa.int32()
    if types.is_float16(kind):
        return pa.float32()
    if types.is_decimal(kind):
        return pa.string()
    if types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_storage_type(kind.value_type)))
    if types.is_struct(kind):
        return pa.struct([field.with_type(_storage_type(field.type)) for field in kind])
    return kind


def _convert_value(value: Any, kind: pa.DataType, as_stored: bool) -> Any:
    import pyarrow as pa

    types = pa.types
    if value is None:
        return None
    if types.is_list(kind):
        return [_convert_value(one, kind.value_type, as_stored) for one in value]
    if types.is_struct(kind):
        return {
            field.name: _convert_value(value[field.name], field.type, as_stored) for field in kind
        }
    if types.is_map(kind):
        item = kind.item_type
        return {str(key): _convert_value(one, item, as_stored) for key, one in value}
    if types.is_timestamp(kind) and not as_stored:
        return format_rfc3339(value * _SIZES[kind.unit])
    if types.is_floating(kind) and not math.isfinite(value):
        return None  # as JSON has it
    if type(value) not in _PLAIN:
        raise ValueError(f"a value of the type {kind} has no form in JSON")
    return value
