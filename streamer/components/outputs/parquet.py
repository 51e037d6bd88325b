"""`parquet`: writes rows to Parquet files in directories that messages name, each row once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from streamer.bloblang import compile_interpolation
from streamer.connectors.files.message_path import (
    BASE,
    BASE_FIELD,
    PATH,
    SUCCESS_FILE,
    SUCCESS_FILE_FIELD,
    MessagePath,
    path_problems,
)
from streamer.connectors.locations.output_path import location_path_problems
from streamer.connectors.locations.stores import location_packages
from streamer.connectors.tables.table_fields import COLUMNS, COLUMNS_FIELD, read_columns
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec

if TYPE_CHECKING:
    from streamer.connectors.tables.parquet_output import ParquetOutput

COMPRESSION: Final = "compression"
MAX_FILE_ROWS: Final = "max_file_rows"


def _problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    yield from path_problems(parsed)
    yield from location_path_problems(parsed)


SPEC: Final = Spec(
    Kind.OUTPUT,
    "parquet",
    "Writes rows to Parquet files.",
    description=(
        "A message is one row: an object whose fields are the columns. Each micro-batch writes a "
        "file into each directory that its messages name. The file gets its name when it is whole "
        "and on the disk, so readers never see a part of one. A micro-batch that comes again after "
        "a crash replaces its files, so each row comes once.\n"
        "\n"
        "A new field is a column: integers are `bigint`, other numbers `double`, texts `string`, "
        "objects `struct`, and lists `array`. The checkpoint has the columns, so files agree in "
        "their types. Name the types of columns that may begin with a whole number in `columns`. A "
        "message that does not fit is rejected by itself, and the others are written.\n"
        "\n"
        "A stream without windows writes many small files, unless `trigger_interval` is a minute "
        "or so. `path` may be a URL of objects: see [Places](../../places.md). Not in Connect, "
        "which has the processor `parquet_encode`."
    ),
    fields=(
        Field(
            PATH,
            "string",
            "The directory to write to. It is made when it does not exist.",
            access=Access.FILE,
            interpolated=True,
            check=lambda text: None if text else "is empty; expected the path of a directory",
            examples=("./rows", './rows/dt=${! json("at").slice(0, 10) }/'),
        ),
        BASE_FIELD,
        COLUMNS_FIELD,
        Field(
            COMPRESSION,
            "string",
            "The compression of columns.",
            default="zstd",
            options=("zstd", "snappy", "gzip", "lz4", "none"),
        ),
        Field(
            MAX_FILE_ROWS,
            "int",
            "The most rows of a file; then another one begins.",
            default=5_000_000,
            advanced=True,
            check=lambda number: None if number >= 1 else f"is {number}; expected 1 or more",
        ),
        SUCCESS_FILE_FIELD,
    ),
    check=_problems,
    explains=lambda parsed: (
        f"files        {parsed[PATH]}, up to {parsed[MAX_FILE_ROWS]:,} rows in each",
        "columns      of the first messages; further fields are columns of later files",
    ),
    examples=(
        Example(
            "A directory for each day",
            "output:\n  parquet:\n    path: './rows/dt=${! json(\"at\").slice(0, 10) }/'\n",
        ),
    ),
    categories=("Local", "Tables"),
    runs="driver",
    delivery="exactly once",
    requires=location_packages(PATH),
)


def build(parsed: ParsedFields, context: BuildContext) -> ParquetOutput:
    """Compile the path."""
    from streamer.connectors.tables.parquet_output import ParquetOutput
    from streamer.connectors.tables.rows import LearnedColumns

    return ParquetOutput(
        MessagePath(compile_interpolation(parsed[PATH]), parsed[BASE], is_directory=True),
        read_columns(parsed[COLUMNS]),
        compression=parsed[COMPRESSION],
        max_file_rows=parsed[MAX_FILE_ROWS],
        success_file=parsed[SUCCESS_FILE],
        permissions=parsed.permissions,
        learned=context.worker_resource("columns", LearnedColumns),
    )
