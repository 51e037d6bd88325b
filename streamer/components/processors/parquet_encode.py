"""`parquet_encode`: makes one Parquet file of the messages of a batch.

It "encodes Parquet files from a batch of structured messages". The file is one message, with the
metadata of the batch's first.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.json.dump import dump_json
from streamer.core.message import Batch
from streamer.core.timestamps import Timestamp, parse_rfc3339
from streamer.core.value import type_name
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.processing.per_message import parse_document
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA: Final = "schema"
NAME: Final = "name"
TYPE: Final = "type"
REPEATED: Final = "repeated"
OPTIONAL: Final = "optional"
FIELDS: Final = "fields"
SCHEMA_METADATA: Final = "schema_metadata"
DEFAULT_COMPRESSION: Final = "default_compression"
DEFAULT_ENCODING: Final = "default_encoding"
DEFAULT_TIMESTAMP_UNIT: Final = "default_timestamp_unit"

_TYPES: Final = (
    *("BOOLEAN", "INT32", "INT64", "FLOAT", "DOUBLE", "BYTE_ARRAY", "UTF8", "TIMESTAMP"),
    *("ENUM", "JSON"),
)
_COMPRESSIONS: Final = {
    "uncompressed": "none",
    "snappy": "snappy",
    "gzip": "gzip",
    "brotli": "brotli",
    "zstd": "zstd",
    "lz4raw": "lz4",
}
_DELTA: Final = "DELTA_LENGTH_BYTE_ARRAY"
_UNITS: Final = {"NANOSECOND": "ns", "MICROSECOND": "us", "MILLISECOND": "ms"}
_UNIT_NS: Final = {"ns": 1, "us": 1000, "ms": 1_000_000}


def _column_problems(columns: Any, at: str) -> Iterator[tuple[str, str]]:
    for number, column in enumerate(columns):
        place = f"{at}.{number}"
        if not isinstance(column, Mapping) or not isinstance(column.get(NAME), str):
            yield SCHEMA, f"{place} is no column; expected an object with a name and a type"
            continue
        name, inner = column[NAME], column.get(FIELDS) or ()
        if column.get(REPEATED) and column.get(OPTIONAL):
            yield SCHEMA, f"column {name} cannot be both repeated and optional"
        if inner:
            yield from _column_problems(inner, f"{place}.{FIELDS}")
        elif column.get(TYPE) not in _TYPES:
            kind = column.get(TYPE)
            yield (
                SCHEMA,
                f"field {name} type of '{kind or ''}' not recognised; expected one of "
                f"{', '.join(_TYPES)}, or fields",
            )


def _problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    if parsed[SCHEMA_METADATA]:
        yield SCHEMA_METADATA, "is not available: a schema must be known before; set schema"
    elif not parsed[SCHEMA]:
        yield SCHEMA, "is not set; expected the columns of the file"
    else:
        yield from _column_problems(parsed[SCHEMA], SCHEMA)


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "parquet_encode",
    "Makes one Parquet file of the messages of a batch.",
    description=(
        "Every message is a row, and must be an object. The file is one message, with the metadata "
        "of the batch's first. When a row does not fit the schema, all messages of the batch are "
        "marked as failed."
    ),
    fields=(
        Field(
            SCHEMA,
            "object",
            "The columns.",
            optional=True,
            shape="array",
            children=(
                Field(NAME, "string", "The column's name.", access=Access.NONE),
                Field(
                    TYPE,
                    "string",
                    "Its type, when it has no fields of its own. A `TIMESTAMP` is given as RFC "
                    "3339, `JSON` as any value.",
                    optional=True,
                ),
                Field(REPEATED, "bool", "True if it holds an array.", default=False),
                Field(OPTIONAL, "bool", "True if it may be missing.", default=False),
                Field(
                    FIELDS,
                    "unknown",
                    "Its own columns, when it holds objects.",
                    optional=True,
                    shape="array",
                ),
            ),
        ),
        Field(
            SCHEMA_METADATA,
            "string",
            "Must be left empty: the metadata that a schema would be read from.",
            access=Access.NONE,
            default="",
            advanced=True,
        ),
        Field(
            DEFAULT_COMPRESSION,
            "string",
            "Compression of columns.",
            default="uncompressed",
            options=tuple(_COMPRESSIONS),
        ),
        Field(
            DEFAULT_ENCODING,
            "string",
            "Encoding of columns with text and bytes.",
            default=_DELTA,
            options=(_DELTA, "PLAIN"),
            advanced=True,
        ),
        Field(
            DEFAULT_TIMESTAMP_UNIT,
            "string",
            "The unit of timestamps.",
            default="NANOSECOND",
            options=tuple(_UNITS),
            advanced=True,
        ),
    ),
    check=_problems,
    examples=(
        Example(
            "A file of each batch",
            "pipeline:\n"
            "  processors:\n"
            "    - parquet_encode:\n"
            "        schema:\n"
            "          - {name: id, type: INT64}\n"
            "          - {name: content, type: UTF8, optional: true}\n"
            "        default_compression: zstd\n",
        ),
    ),
    status="experimental",
    begin={"schema": [{"name": "id", "type": "UTF8"}]},
    categories=("Parsing",),
    limits="repeated columns are written as lists; no schema_metadata",
)


def _arrow_type(column: Mapping[str, Any], unit: str) -> pa.DataType:
    import pyarrow as pa

    if column.get(FIELDS):
        kind = pa.struct([_arrow_field(inner, unit) for inner in column[FIELDS]])
    else:
        kind = {
            "BOOLEAN": pa.bool_(),
            "INT32": pa.int32(),
            "INT64": pa.int64(),
            "FLOAT": pa.float32(),
            "DOUBLE": pa.float64(),
            "BYTE_ARRAY": pa.binary(),
            "TIMESTAMP": pa.timestamp(unit, "UTC"),
        }.get(column[TYPE], pa.string())
    return pa.list_(pa.field("element", kind, nullable=False)) if column.get(REPEATED) else kind


def _arrow_field(column: Mapping[str, Any], unit: str) -> pa.Field:
    import pyarrow as pa

    return pa.field(column[NAME], _arrow_type(column, unit), nullable=bool(column.get(OPTIONAL)))


def _to_row(columns: Any, document: Any, unit: str) -> dict[str, Any]:
    if not isinstance(document, dict):
        raise MessageError(f"expected object, got {type_name(document)}")
    row = {}
    for column in columns:
        name = column[NAME]
        try:
            row[name] = _to_cell(column, document.get(name), unit)
        except MessageError as error:
            raise MessageError(f"field {name}: {error}") from None
    return row


def _to_cell(column: Mapping[str, Any], value: Any, unit: str) -> Any:
    if column.get(REPEATED):
        if value is not None and not isinstance(value, list):
            raise MessageError(f"expected array, got {type_name(value)}")
        return [_to_value(column, item, unit) for item in value or ()]
    if value is None:
        if not column.get(OPTIONAL):
            raise MessageError("missing and non-optional")
        return None
    return _to_value(column, value, unit)


def _to_value(column: Mapping[str, Any], value: Any, unit: str) -> Any:
    if column.get(FIELDS):
        return _to_row(column[FIELDS], value, unit)
    kind = column[TYPE]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "BOOLEAN" and isinstance(value, bool):
        return value
    if kind in ("INT32", "INT64") and is_number:
        if not math.isfinite(value):
            raise MessageError("the number is out of range")
        return int(value)
    if kind in ("FLOAT", "DOUBLE") and is_number:
        return float(value)
    if kind == "JSON":
        return dump_json(value).decode()
    if kind == "TIMESTAMP":
        return _to_time_ns(value) // _UNIT_NS[unit]
    if isinstance(value, str | bytes) and kind in ("BYTE_ARRAY", "UTF8", "ENUM"):
        raw = value.encode() if isinstance(value, str) else value
        return raw if kind == "BYTE_ARRAY" else raw.decode(errors="replace")
    expected_types = {"BOOLEAN": "bool", "BYTE_ARRAY": "bytes", "UTF8": "string", "ENUM": "string"}
    raise MessageError(
        f"expected {expected_types.get(kind, 'number')} value, got {type_name(value)}"
    )


def _to_time_ns(value: Any) -> int:
    if isinstance(value, Timestamp):
        return value.ns
    try:
        if isinstance(value, str):
            return parse_rfc3339(value).ns
    except ValueError as error:
        raise MessageError(str(error)) from None
    raise MessageError(f"expected timestamp value, got {type_name(value)}")


class ParquetEncodeProcessor:
    """Encodes batches."""

    def __init__(self, parsed: ParsedFields, origin: ComponentRef) -> None:
        self._columns = parsed[SCHEMA]
        self._unit = _UNITS[parsed[DEFAULT_TIMESTAMP_UNIT]]
        self._compression = _COMPRESSIONS[parsed[DEFAULT_COMPRESSION]]
        self._delta = parsed[DEFAULT_ENCODING] == _DELTA
        self._origin = origin

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return one message, or the batch with all messages marked."""
        try:
            rows = [
                _to_row(self._columns, parse_document(message), self._unit) for message in batch
            ]
            return [[batch[0].with_bytes(self._write_file(rows)).with_error(None)]]
        except MessageError as error:
            return [[self._origin.fail(message, str(error), ex) for message in batch]]

    def _write_file(self, rows: list[dict[str, Any]]) -> bytes:
        import pyarrow as pa
        from pyarrow import parquet

        schema = pa.schema([_arrow_field(column, self._unit) for column in self._columns])
        texts = [f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_binary(f.type)]
        out = io.BytesIO()
        try:
            parquet.write_table(
                pa.Table.from_pylist(rows, schema=schema),
                out,
                compression=self._compression,
                use_dictionary=False,
                column_encoding=dict.fromkeys(texts, _DELTA) if self._delta else None,
                coerce_timestamps=None,
            )
        except (pa.ArrowException, OverflowError) as error:
            raise MessageError(str(error)) from None
        return out.getvalue()


def build(parsed: ParsedFields, context: BuildContext) -> ParquetEncodeProcessor:
    """Take the schema."""
    return ParquetEncodeProcessor(parsed, ComponentRef(context.component))
