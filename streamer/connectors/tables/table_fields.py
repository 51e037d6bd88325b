"""Fields of all outputs whose messages become rows of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from streamer.core.extras import skip_if_missing
from streamer.sdk.spec import Field, ParsedFields

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS: Final = "columns"
MODE: Final = "mode"
KEY: Final = "key"
PARTITION_BY: Final = "partition_by"
SCHEMA_EVOLUTION: Final = "schema_evolution"
ENABLED: Final = "enabled"

APPEND: Final = "append"
UPSERT: Final = "upsert"
DELETE: Final = "delete"

ROWS_DESCRIPTION: Final = (
    "A message is one row: an object whose fields are the columns. Workers encode the rows, and "
    "write the files of many rows. The driver commits those of a micro-batch together, so that "
    "readers see all of them or none. The commit has the number of the micro-batch. After a crash "
    "the number is read back, and rows come once.\n"
    "\n"
    "A field that the table does not have becomes a column: integers are `bigint`, other numbers "
    "`double`, texts `string`, objects `struct`, and lists `array`. What the first messages have "
    "decides, so name the types of columns that may begin with a whole number in `columns`. A "
    "value fits when nothing of it is lost: 3.0 fits `bigint`, and 3.5 does not. A message that "
    "does not fit is rejected by itself; it goes where [rejected messages](../rejections.md) go, "
    "and the others are written. An object in a column gets the further fields of messages too, at "
    "each depth. Digits of a time below a microsecond are cut off.\n"
    "\n"
    "Each micro-batch with rows is a commit, with at least one file. For a stream without windows "
    "let `trigger_interval` be a minute or so; a window buffer commits when windows close."
)


def _check_columns(columns: Mapping[str, str]) -> str | None:
    with skip_if_missing():
        from streamer.connectors.tables.column_types import parse_column_type

        for name, text in columns.items():
            try:
                parse_column_type(text)
            except ValueError as error:
                return f"has {text!r} for {name}, which {error}"
    return None


COLUMNS_FIELD: Final = Field(
    COLUMNS,
    "string",
    "The types of columns, as Spark SQL names them: `boolean`, `int`, `bigint`, `float`, `double`, "
    "`decimal(p,s)`, `string`, `binary`, `date`, `timestamp`, `timestamp_ntz`, `array<…>`, "
    "`map<string,…>` and `struct<name:…>`. They are made with the table, in this order, or added "
    "to it. Others come from messages.",
    default={},
    shape="map",
    check=_check_columns,
    examples=({"light": "string", "total": "double", "window_end": "timestamp"},),
)

MODE_FIELD: Final = Field(
    MODE,
    "string",
    "`append` adds a row for each message. `upsert` replaces the row with the same `key`: a window "
    "that is emitted again, since late events came, corrects its row. `delete` removes that row, "
    "and needs nothing else of the message. Each message may have its own mode. Of `upsert` and "
    "`delete`, the last one for a key in a micro-batch counts. An appended row replaces nothing.",
    default=APPEND,
    options=(APPEND, UPSERT, DELETE),
    interpolated=True,
    examples=(APPEND, '${! if this.op == "d" { "delete" } else { "upsert" } }'),
)

KEY_FIELD: Final = Field(
    KEY,
    "string",
    "The columns by which `upsert` and `delete` find a row. A message in which one of them is "
    "null, or missing, is rejected.",
    default=[],
    shape="array",
    examples=(["light", "window_end"],),
)

PARTITION_BY_FIELD: Final = Field(
    PARTITION_BY,
    "string",
    "The columns by which a new table is partitioned, each value a directory.",
    default=[],
    shape="array",
    examples=(["dt"],),
)

SCHEMA_EVOLUTION_FIELD: Final = Field(
    SCHEMA_EVOLUTION,
    "object",
    "Changes of the table by messages.",
    default={},
    advanced=True,
    children=(
        Field(
            ENABLED,
            "bool",
            "Whether a table that is not there is made, and further fields of messages become "
            "columns. Without it a message with another field is rejected.",
            default=True,
        ),
    ),
)


def table_problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    """Give what is wrong with the fields together."""
    if parsed[MODE] in (UPSERT, DELETE) and not parsed[KEY]:
        yield KEY, f"is empty; mode {parsed[MODE]} needs the columns by which a row is found"
    if parsed[KEY] and parsed[MODE] == APPEND:
        yield KEY, "has no effect without mode: upsert"
    for name in (KEY, PARTITION_BY):
        if name in parsed and len(set(parsed[name])) < len(parsed[name]):
            yield name, "has a column twice"


def read_columns(columns: Mapping[str, str]) -> pa.Schema:
    """Return the columns that a config names."""
    import pyarrow as pa

    from streamer.connectors.tables.column_types import parse_column_type

    return pa.schema([(name, parse_column_type(text)) for name, text in columns.items()])
