"""`parquet_decode`: makes a message of each row of the Parquet files that messages are.

It "decodes Parquet files into a batch of structured messages".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamer.failure import Origin
from streamer.message import Batch, Execution, Message
from streamer.spec import BuildContext, Example, Field, Kind, Parsed, Spec
from streamer.timestamps import format_rfc3339

if TYPE_CHECKING:
    import pyarrow as pa

HANDLE_LOGICAL_TYPES: Final = "handle_logical_types"

_SIZES: Final = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1000, "ns": 1}

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "parquet_decode",
    "Makes a message of each row of the Parquet files that messages are.",
    description=(
        "The rows of a file are messages with its metadata, in one batch with those of the other "
        "files of the batch. Columns of bytes without a meaning are base64 in JSON, and decimals "
        "are texts."
    ),
    fields=(
        Field(
            HANDLE_LOGICAL_TYPES,
            "string",
            "Whether times are the numbers that they are stored as (`v1`), or timestamps (`v2`).",
            default="v1",
            options=("v1", "v2"),
        ),
        Field(
            "byte_array_as_string",
            "bool",
            "Has no effect: columns of texts are always texts.",
            default=False,
            deprecated=True,
        ),
    ),
    examples=(
        Example(
            "Rows of Parquet files",
            "input:\n"
            "  file:\n"
            "    paths: ['./data/*.parquet']\n"
            "    scanner: {to_the_end: {}}\n"
            "pipeline:\n"
            "  processors:\n"
            "    - parquet_decode: {}\n",
        ),
    ),
    status="experimental",
    categories=("Parsing",),
)


class ParquetDecodeProcessor:
    """Decodes files."""

    def __init__(self, as_stored: bool, origin: Origin) -> None:
        self._as_stored = as_stored
        self._origin = origin

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return one batch of all rows; what is no file is marked and stays."""
        made: Batch = []
        for message in batch:
            made += self._rows(message, ex)
        return [made] if made else []

    def _rows(self, message: Message, ex: Execution) -> Batch:
        import pyarrow as pa
        from pyarrow import parquet

        try:
            table = parquet.read_table(pa.BufferReader(message.raw))
            rows: list[tuple[Any, ...]] = []
            for chunk in table.to_batches():
                rows += zip(*(self._column(column) for column in chunk.columns), strict=True)
        except (pa.ArrowException, OSError, ValueError) as error:
            return [self._origin.fail(message, " ".join(str(error).split()), ex)]
        names = table.column_names
        return [message.with_doc(dict(zip(names, row, strict=True))) for row in rows]

    def _column(self, column: pa.Array) -> list[Any]:
        kind = column.type
        # Times as numbers first: Python's know no nanoseconds.
        return [
            _told(value, kind, self._as_stored) for value in column.cast(_stored(kind)).to_pylist()
        ]


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


def build(parsed: Parsed, context: BuildContext) -> ParquetDecodeProcessor:
    """Take what becomes of times."""
    as_stored = parsed[HANDLE_LOGICAL_TYPES] == "v1"
    return ParquetDecodeProcessor(as_stored, Origin(context.component))
