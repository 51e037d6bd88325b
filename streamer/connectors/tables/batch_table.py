"""A batch of messages as one Arrow table, and the rows of a table as documents of messages.

It is the one way between messages and what works on columns: frames of Python, and SQL over a
batch. Columns are inferred as those of table outputs are; see `column_inference`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple
from uuid import UUID

import pyarrow as pa
from pyarrow import compute

from streamer.connectors.tables.rows import TableColumns, build_rows
from streamer.core.errors import MessageError
from streamer.core.json.bulk import documents_of
from streamer.core.json.dump import dump_json
from streamer.core.message import Batch
from streamer.core.timestamps import format_rfc3339
from streamer.core.value import INT64_MAX, INT64_MIN, UINT64_MAX, Number, UInt

NO_COLUMNS: Final = pa.schema([])
_NS_PER_UNIT: Final = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_types: Final = pa.types


class BatchTable(NamedTuple):
    """A batch as a table.

    Attributes:
        rows: a row for each message that is one, in order.
        indexes: the index of each row's message in the batch.
        errors: why the other messages are no rows, by index.
    """

    rows: pa.RecordBatch
    indexes: Sequence[int]
    errors: Mapping[int, str]


def make_batch_table(batch: Batch, declared: pa.Schema = NO_COLUMNS) -> BatchTable:
    """Return the messages of a batch as rows.

    Args:
        batch: the messages; an object is expected of each.
        declared: columns whose types are known. They are there whatever the messages have; fields
            beside them become further columns, with the type that is inferred.

    Example:
        >>> from streamer.core.message import Message
        >>> made = make_batch_table([Message(b'{"n":1}'), Message(b'{"n":2.5}'), Message(b"[]")])
        >>> made.rows.to_pydict(), made.errors[2]
        ({'n': [1.0, 2.5]}, 'the message is an array; expected an object, whose fields are columns')
    """
    errors: dict[int, str] = {}
    try:
        documents = documents_of(batch, keep=True)
    except (ValueError, MessageError):
        documents = _read_documents(batch, errors)
    made = build_rows(documents, TableColumns(declared, is_open=True))
    errors = {**made.errors, **errors}
    indexes: Sequence[int] = range(len(batch))
    if errors:
        indexes = [index for index in indexes if index not in errors]
    rows = made.rows
    if rows.num_rows != len(indexes):
        # A payload that is no JSON stood for an empty object until here.
        places = [index for index in range(len(batch)) if index not in made.errors]
        kept = [at for at, index in enumerate(places) if index not in errors]
        rows = rows.take(pa.array(kept, pa.int64()))
    return BatchTable(rows, indexes, errors)


def _read_documents(batch: Batch, errors: dict[int, str]) -> list[Any]:
    documents: list[Any] = []
    for index, message in enumerate(batch):
        try:
            documents.append(message.doc)
        except MessageError as error:
            errors[index] = str(error)
            documents.append({})
    return documents


def make_row_documents(table: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """Return a document for each row of a table, of values that messages have.

    Instants are texts as RFC 3339 has them, and those without a zone count as UTC; dates and times
    of day are texts of ISO 8601, durations whole nanoseconds. Decimals are exact numbers. What is
    no number, or endless, is null, as JSON has no form for it.

    Raises:
        ValueError: a column has a type that messages do not have, or two columns have one name.

    Example:
        >>> from datetime import date
        >>> make_row_documents(pa.table({"day": [date(2026, 1, 2)], "n": [float("nan")]}))
        [{'day': '2026-01-02', 'n': None}]
    """
    names = table.schema.names
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"two columns have the name {twice!r}; each field needs its own")
    if not names:
        return [{} for _ in range(table.num_rows)]
    columns = [_column_values(table.column(at), names[at]) for at in range(len(names))]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _column_values(column: Any, name: str) -> list[Any]:
    if isinstance(column, pa.ChunkedArray):
        return [value for chunk in column.chunks for value in _array_values(chunk, name)]
    return _array_values(column, name)


def _array_values(array: pa.Array, name: str) -> list[Any]:
    """Return the values of a column, or of what is nested in one."""
    kind = array.type
    if _types.is_boolean(kind) or _types.is_null(kind) or _is_text(kind) or _is_bytes(kind):
        return list(array.to_pylist())
    if _types.is_integer(kind):
        return _integer_values(array, kind)
    if _types.is_floating(kind):
        values = array.cast(pa.float32()) if _types.is_float16(kind) else array
        return [None if one is None else _finite(one) for one in values.to_pylist()]
    if _types.is_timestamp(kind):
        factor = _NS_PER_UNIT[kind.unit]
        stored = array.cast(pa.int64()).to_pylist()
        return [None if one is None else format_rfc3339(one * factor) for one in stored]
    if _types.is_date(kind):
        days = array.cast(pa.date32()).to_pylist()
        return [None if one is None else one.isoformat() for one in days]
    if _types.is_time(kind):
        return _time_values(array, kind)
    if _types.is_duration(kind):
        factor = _NS_PER_UNIT[kind.unit]
        stored = array.cast(pa.int64()).to_pylist()
        return [None if one is None else one * factor for one in stored]
    if _types.is_decimal(kind):
        return [None if one is None else _decimal_number(one) for one in array.to_pylist()]
    return _nested_values(array, kind, name)


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        _types.is_string(kind) or _types.is_large_string(kind) or _types.is_string_view(kind)
    )


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        _types.is_binary(kind)
        or _types.is_large_binary(kind)
        or _types.is_binary_view(kind)
        or _types.is_fixed_size_binary(kind)
    )


def _integer_values(array: pa.Array, kind: pa.DataType) -> list[Any]:
    if array.null_count == 0:
        values = array.to_numpy(zero_copy_only=False).tolist()
    else:
        values = array.to_pylist()
    if not _types.is_uint64(kind):
        return list(values)
    return [UInt(one) if one is not None and one > INT64_MAX else one for one in values]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _time_values(array: pa.Array, kind: pa.DataType) -> list[Any]:
    """Return times of day as texts, with as many digits of a second as they need."""
    factor = _NS_PER_UNIT[kind.unit]
    stored = array.cast(pa.int32() if _types.is_time32(kind) else pa.int64()).to_pylist()
    # The time of an instant of the first day.
    return [None if one is None else format_rfc3339(one * factor)[11:-1] for one in stored]


def _decimal_number(value: Any) -> Any:
    if value == value.to_integral_value() and value.as_tuple().exponent >= 0:
        whole = int(value)
        if INT64_MIN <= whole <= INT64_MAX:
            return whole
        if 0 < whole <= UINT64_MAX:
            return UInt(whole)
    return Number(format(value, "f"), float(value))


def _nested_values(array: pa.Array, kind: pa.DataType, name: str) -> list[Any]:
    if _types.is_dictionary(kind):
        return _array_values(array.dictionary_decode(), name)
    if _types.is_struct(kind):
        fields = [
            _array_values(array.field(at), f"{name}.{kind.field(at).name}")
            for at in range(kind.num_fields)
        ]
        names = [kind.field(at).name for at in range(kind.num_fields)]
        rows = zip(*fields, strict=True) if fields else ((),) * len(array)
        return [
            dict(zip(names, row, strict=True)) if valid else None
            for row, valid in zip(rows, array.is_valid().to_pylist(), strict=True)
        ]
    if _types.is_map(kind):
        return _map_values(array, name)
    if _is_list(kind):
        return _list_values(array, name)
    if isinstance(kind, pa.BaseExtensionType):
        stored = _array_values(array.storage, name)
        if kind.extension_name != "arrow.uuid":
            return stored
        return [None if one is None else str(UUID(bytes=one)) for one in stored]
    raise ValueError(f"the column {name} has the type {kind}, which messages do not have; cast it")


def _is_list(kind: pa.DataType) -> bool:
    return bool(
        _types.is_list(kind)
        or _types.is_large_list(kind)
        or _types.is_fixed_size_list(kind)
        or _types.is_list_view(kind)
        or _types.is_large_list_view(kind)
    )


def _list_values(array: pa.Array, name: str) -> list[Any]:
    # What nulls stand over is left out of the items.
    items = iter(_array_values(array.flatten(), f"{name}[]"))
    lengths = compute.list_value_length(array).to_pylist()
    return [None if length is None else list(islice(items, length)) for length in lengths]


def _map_values(array: pa.Array, name: str) -> list[Any]:
    keys = _array_values(array.keys, name)
    items = _array_values(array.items, f"{name}{{}}")
    texts = [one if isinstance(one, str) else dump_json(one).decode() for one in keys]
    offsets = array.offsets.to_pylist()
    return [
        dict(zip(texts[start:end], items[start:end], strict=True)) if valid else None
        for start, end, valid in zip(
            offsets, offsets[1:], array.is_valid().to_pylist(), strict=False
        )
    ]
