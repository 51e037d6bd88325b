"""Fields of the inputs that read tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from streamer.core.durations import SECOND, format_duration
from streamer.core.timestamps import parse_rfc3339
from streamer.sdk.spec import Access, Field, ParsedFields, duration_field

if TYPE_CHECKING:
    from streamer.connectors.tables.file_columns import RowSelection
    from streamer.connectors.tables.table_reader import TableReader
    from streamer.connectors.tables.table_source import TableSource

COLUMNS: Final = "columns"
WHERE: Final = "where"
START_FROM: Final = "start_from"
READ_ONCE: Final = "read_once"
POLL_INTERVAL: Final = "poll_interval"
ON_CHANGE: Final = "on_change"

REFRESH: Final = ("1m", "to look for a newer version, and to load it then")
"""What lookup tables say of their refresh: its interval, and its purpose."""

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
STOP: Final = "stop"
SKIP: Final = "skip"
ROWS: Final = "rows"

METADATA_DESCRIPTION: Final = (
    "| metadata | |\n"
    "|---|---|\n"
    "| `table` | the name of the table |\n"
    "| `table_version` | the version, or the identifier of the snapshot |\n"
    "| `path` | the file of the row |\n"
    "| `operation` | `read` of a row that was there at the start, `insert` of one that came later; "
    "with `on_change: rows` also `delete`, `update_before` and `update_after` |"
)

ROWS_DESCRIPTION: Final = (
    "A row is an object. Times are texts as RFC 3339 has them, without `Z` where the column has no "
    "zone. Dates and decimals are texts. Columns of bytes are base64 in JSON. Such values fit "
    "the columns of the table outputs.\n"
    "\n"
    "First come the rows that the table has at the start, then those that each version adds. The "
    "workers read the files; a large one is read by several. Files have no order among "
    "themselves, so windows over the event time need an `allowed_lateness`. The checkpoint has the "
    "version, the file and the row. A restart continues there, and reads the same again."
)


def _check_where(rows: Sequence[Sequence[Any]]) -> str | None:
    from streamer.connectors.tables.row_conditions import parse_conditions

    try:
        parse_conditions(rows)
    except ValueError as error:
        return str(error)
    return None


def _check_start(text: str) -> str | None:
    if text in (EARLIEST, LATEST) or text.isdecimal():
        return None
    try:
        parse_rfc3339(text)
    except ValueError:
        return f"is {text!r}; expected earliest, latest, a number, or a time as of RFC 3339"
    return None


COLUMNS_FIELD: Final = Field(
    COLUMNS,
    "string",
    "The columns that messages have. Others are not read. Empty for all.",
    default=[],
    shape="array",
    examples=(["light", "cars"],),
)

WHERE_FIELD: Final = Field(
    WHERE,
    "unknown",
    "Conditions on rows, as PyArrow and delta-rs take filters: a column, an operator, and a value. "
    "All must hold. Operators are `=`, `!=`, `<`, `<=`, `>`, `>=`, `in` and `not in`. Partitions "
    "and groups of rows that have no such row are not read. `[column, =, null]` takes rows without "
    "a value.",
    default=[],
    shape="2darray",
    access=Access.NONE,
    check=_check_where,
    examples=([["light", "=", "north"], ["cars", ">=", 2]],),
)

POLL_INTERVAL_FIELD: Final = duration_field(
    POLL_INTERVAL,
    "How often to look for what was added.",
    default="5s",
    check=lambda ns: None if ns >= SECOND // 10 else "is too short; expected 100ms or more",
)


def start_from_field(number: str) -> Field:
    """Return the field that says where a stream without a checkpoint begins.

    Args:
        number: names the numbers of versions, for the description.
    """
    return Field(
        START_FROM,
        "string",
        "Where a stream without a checkpoint begins. `earliest`: with all rows that the table has. "
        f"`latest`: with what is added from now on. {number}: with what it adds. A time, such as "
        "`2026-01-01T00:00:00Z`: with what is added from then on.",
        default=EARLIEST,
        check=_check_start,
    )


READ_ONCE_FIELD: Final = Field(
    READ_ONCE,
    "bool",
    "Whether the input ends when it has read the table as it is at the first start.",
    default=False,
)

FILES_READ_ONCE_FIELD: Final = Field(
    READ_ONCE,
    "bool",
    "Whether the input ends with the last file that there is at the first start. Otherwise it goes "
    "on with the files that come.",
    default=True,
)

HIVE_PARTITIONING: Final = "hive_partitioning"
HIVE_PARTITIONING_FIELD: Final = Field(
    HIVE_PARTITIONING,
    "bool",
    "Whether directories such as `day=2026-01-01` are columns, whose values are texts.",
    default=False,
)

ON_CHANGE_FIELD: Final = Field(
    ON_CHANGE,
    "string",
    "What is done about a version that changes or deletes rows: by an update, a merge, an "
    "overwrite. `stop` ends the stream with an error. `skip` leaves the version out, with the "
    "rows that it adds. `rows` reads the rows of files that it removes and adds, with the metadata "
    "`operation`. Compactions change no rows, and are always left out.",
    default=STOP,
    options=(STOP, SKIP, ROWS),
)

TABLE_INPUT_FIELDS: Final = (
    COLUMNS_FIELD,
    WHERE_FIELD,
    READ_ONCE_FIELD,
    POLL_INTERVAL_FIELD,
    ON_CHANGE_FIELD,
)


def read_selection(parsed: ParsedFields) -> RowSelection:
    """Return what a config reads of rows."""
    from streamer.connectors.tables.file_columns import RowSelection
    from streamer.connectors.tables.row_conditions import parse_conditions

    return RowSelection(tuple(parsed[COLUMNS]), parse_conditions(parsed[WHERE]))


def make_table_source(parsed: ParsedFields, reader: TableReader) -> TableSource:
    """Return the input; the table is opened when the stream starts."""
    from streamer.connectors.tables.table_source import TableSource

    return TableSource(reader, parsed[START_FROM], parsed[READ_ONCE], parsed[POLL_INTERVAL])


def explain_table_input(parsed: ParsedFields) -> Iterator[str]:
    """Give lines for `explain`: where the input begins and ends, and what stops it."""
    begin = {EARLIEST: "all rows of the table", LATEST: "no row that is there"}
    first = begin.get(parsed[START_FROM], f"rows since {parsed[START_FROM]}")
    if parsed[READ_ONCE]:
        yield f"reads        {first}, and ends"
    else:
        often = format_duration(parsed[POLL_INTERVAL])
        yield f"reads        {first}, then those that are added; polled every {often}"
    reaction = {STOP: "stop the stream", SKIP: "are left out", ROWS: "are read as rows"}
    yield f"changes      {reaction[parsed[ON_CHANGE]]}; compactions are left out"
