"""`duckdb`: runs a query in SQL over the messages of a batch.

The messages are the rows of a table; the rows that the query gives become messages. DuckDB runs in
a process of its own beside the worker, which sees the batch and what the config names, and whose
memory and time are bounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from streamer.connectors.kafka.cluster.sizes import parse_size, size_check
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.extras import skip_if_missing
from streamer.core.limits import current_limits
from streamer.core.message import Batch, Message, keep_place
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import (
    Access,
    BuildContext,
    Example,
    Field,
    Kind,
    Package,
    ParsedFields,
    Spec,
    duration_field,
)
from streamer.sdk.spec.sourced_text import TextProblem

QUERY: Final = "query"
COLUMNS: Final = "columns"
METADATA: Final = "metadata"
FILES: Final = "files"
PATH: Final = "path"
FORMAT: Final = "format"
TIMEOUT: Final = "timeout"
MEMORY_LIMIT: Final = "memory_limit"
TEMP_DIRECTORY: Final = "temp_directory"

_AUTO: Final = "auto"
_FORMATS: Final = ("parquet", "csv", "json")
_EXTENSIONS: Final = {"parquet": "parquet", "csv": "csv", "json": "json", "jsonl": "json"}
_MIN_MEMORY_BYTES: Final = 16 << 20
_MAX_MEMORY_BYTES: Final = 1 << 40
_CHECK_TIMEOUT_S: Final = 5.0
_NS_PER_S: Final = 1e9
_NO_COLUMNS: Final = "duckdb needs the types of columns for it: name them in `columns`"


def _check_columns(columns: Mapping[str, str]) -> str | None:
    with skip_if_missing():
        from streamer.connectors.duckdb.column_kinds import parse_batch_column

        for name, text in columns.items():
            try:
                parse_batch_column(text)
            except ValueError as error:
                return f"has {text!r} for {name}, which {error}"
    lowered = [name.lower() for name in columns]
    if len(set(lowered)) < len(lowered):
        twice = next(name for name in columns if lowered.count(name.lower()) > 1)
        return f"has {twice} twice: SQL does not tell capital letters from small ones"
    return None


def _check_query(query: str) -> str | None:
    with skip_if_missing():
        from streamer.connectors.duckdb.errors import QueryError
        from streamer.connectors.duckdb.query_text import parse_query

        try:
            parse_query(query)
        except QueryError as error:
            return _place_problem(error)
    return None


def _place_problem(error: Any) -> str:
    return TextProblem(str(error), error.line, error.column) if error.line else str(error)


def _problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    for name, file in parsed[FILES].items():
        if name.lower() == "batch":
            yield FILES, "has the table batch, which the messages are"
        if _file_format(file) is None:
            yield (
                f"{FILES}.{name}",
                f"has the path {file[PATH]}, whose name does not tell its format; set {FORMAT}",
            )
    for name in parsed[METADATA]:
        if name.lower() in map(str.lower, parsed[COLUMNS]):
            yield METADATA, f"has {name}, which is a column of {COLUMNS} too"
    if parsed[COLUMNS] and (problem := _bind_query(_Config(parsed))):
        yield QUERY, problem


def _references(parsed: ParsedFields) -> Iterator[tuple[str, Kind, str]]:
    with skip_if_missing():
        yield from ((QUERY, Kind.TABLE, label) for label in _Config(parsed).list_tables())


def _explain(parsed: ParsedFields) -> Iterator[str]:
    with skip_if_missing():
        config = _Config(parsed)
        kinds = [f"{name} {kind}" for name, kind in parsed[COLUMNS].items()]
        yield f"columns      {', '.join(kinds) or 'as the messages have them'}"
        for name, file in parsed[FILES].items():
            yield f"table        {name}: {file[PATH]}"
        for label in config.list_tables():
            yield f"table        {label}: of table_resources"
        yield from _plan_lines(config)


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "duckdb",
    "Runs a query in SQL over the messages of a batch, by DuckDB.",
    description=(
        "The messages of a batch, such as those of a window, are the rows of the table `batch`, "
        "and their fields are its columns. Each row that the query gives becomes a message: an "
        "object with the columns of the query, and the metadata of the batch's first message, "
        "such as `window_start`. A query without rows drops the batch.\n"
        "\n"
        "**Columns.** Without `columns` the fields of the messages decide: integers are `bigint`, "
        "or larger where they must be; other numbers are `double`, texts `string`, objects "
        "`struct`, and arrays `array`. A field that only has null may be compared with anything. "
        "Where the values of a field contradict each other, those of most messages decide. With "
        "`columns` the table has these columns and no others, null where a message lacks one; "
        "lint then checks the names in the query. Only columns that the query names are made. "
        "SQL does not tell `Car` from `car`; `columns` does.\n"
        "\n"
        "**Failures.** A message is marked as failed by itself when it is no object, or when a "
        "value does not fit its column without loss; the others take part. Messages that had "
        "failed before take no part and stay as they are. When the query fails, takes longer than "
        "`timeout` or needs more than `memory_limit`, all messages of the batch are marked, with "
        "DuckDB's words and the line of the config. Failed messages come behind the rows.\n"
        "\n"
        "**Order.** `ORDER BY` decides. Without it, rows that are neither grouped nor joined come "
        "in the order of the messages: DuckDB runs in one thread and keeps it. Any other order is "
        "the same for the same batch and version of DuckDB, but nothing promises it.\n"
        "\n"
        "**Other tables.** `files` names files, which are read anew for each batch, on the machine "
        "of the worker. A table of `table_resources` is there by its label; see "
        "[lookup tables](../../lookup-tables.md).\n"
        "\n"
        "**Safety.** A query reaches no file but those of `files`, no network, no environment, no "
        "extension and no setting. DuckDB runs in a process beside each worker, which the system "
        "lets have about twice `memory_limit`, and which is ended when it does not stop in time. "
        "The section `limits` bounds rows (`messages`) and bytes of an answer."
    ),
    fields=(
        Field(
            QUERY,
            "string",
            "A SELECT of DuckDB's SQL, over the table `batch`.",
            access=Access.QUERY,
            check=_check_query,
            examples=("SELECT light, count(*) AS n FROM batch GROUP BY light ORDER BY light",),
        ),
        Field(
            COLUMNS,
            "string",
            "The columns of `batch` with their types: `boolean`, `int`, `bigint`, `ubigint`, "
            "`hugeint`, `float`, `double`, `decimal(p,s)`, `string`, `binary`, `date`, "
            "`timestamp`, `timestamp_ntz`, `timestamp_ns`, `json` for any value, `array<…>`, "
            "`map<string,…>` and `struct<name:…>`.",
            default={},
            shape="map",
            check=_check_columns,
            examples=({"light": "string", "passengers": "bigint"},),
        ),
        Field(
            METADATA,
            "string",
            "Keys of metadata that are columns of `batch` too; a field of the same name is hidden.",
            default=(),
            shape="array",
            access=Access.NONE,
            examples=(["kafka_topic"],),
        ),
        Field(
            FILES,
            "object",
            "Files that are tables of the query, by the names of the tables.",
            default={},
            shape="map",
            children=(
                Field(PATH, "string", "The file.", access=Access.FILE),
                Field(
                    FORMAT,
                    "string",
                    "Its format: `parquet`, `csv` with a header, or `json` for objects, also one "
                    "on each line. With `auto` the end of its name decides.",
                    default=_AUTO,
                    options=(_AUTO, *_FORMATS),
                ),
            ),
            examples=({"stations": {"path": "./stations.parquet"}},),
        ),
        duration_field(
            TIMEOUT,
            "How long the query of one batch may take.",
            default="30s",
            check=lambda ns: None if ns and ns > 0 else "is not positive; expected such as 30s",
        ),
        Field(
            MEMORY_LIMIT,
            "string",
            "Memory that DuckDB may use for one query.",
            default="512MiB",
            check=size_check(_MIN_MEMORY_BYTES, _MAX_MEMORY_BYTES),
        ),
        Field(
            TEMP_DIRECTORY,
            "string",
            "A directory into which DuckDB writes what does not fit into memory. Without one, "
            "such a query fails.",
            default="",
            access=Access.FILE,
            advanced=True,
        ),
    ),
    check=_problems,
    references=_references,
    explains=_explain,
    examples=(
        Example(
            "Totals of a window",
            "buffer:\n"
            "  tumbling_window:\n"
            "    size: 1m\n"
            "    timestamp_mapping: root = this.at\n"
            "pipeline:\n"
            "  processors:\n"
            "    - duckdb:\n"
            "        query: |\n"
            "          SELECT light, count(*) AS cars, sum(passengers) AS passengers\n"
            "          FROM batch\n"
            "          GROUP BY light\n"
            "          ORDER BY light\n"
            "        columns:\n"
            "          light: string\n"
            "          passengers: bigint\n",
        ),
        Example(
            "A join with a lookup table",
            "pipeline:\n"
            "  processors:\n"
            "    - duckdb:\n"
            "        query: |\n"
            "          SELECT country, count(*) AS orders\n"
            "          FROM batch JOIN cities USING (city)\n"
            "          GROUP BY country\n"
            "          ORDER BY country\n"
            "table_resources:\n"
            "  - label: cities\n"
            "    csv:\n"
            "      path: cities.csv\n"
            "      key: city\n",
        ),
    ),
    begin={"query": "SELECT count(*) AS messages FROM batch"},
    categories=("Mapping", "Parsing"),
    limits="one SELECT; no PIVOT without the values of its columns",
    requires=(Package("duckdb"),),
)


def _file_format(file: ParsedFields) -> str | None:
    if file[FORMAT] != _AUTO:
        return str(file[FORMAT])
    return _EXTENSIONS.get(str(file[PATH]).lower().rpartition(".")[2])


class _Config:
    """The fields of the processor in the terms of `connectors.duckdb`."""

    def __init__(self, parsed: ParsedFields) -> None:
        self.parsed = parsed
        self.query: str = parsed[QUERY]
        self.columns = tuple(parsed[COLUMNS].items())
        self.metadata = tuple(parsed[METADATA])

    def list_tables(self) -> list[str]:
        """Return the labels of the tables of `table_resources` that the query names."""
        from streamer.connectors.duckdb.query_text import BATCH, parse_query

        files = {name.lower() for name in self.parsed[FILES]}
        names = (table.name for table in parse_query(self.query).tables)
        return [name for name in dict.fromkeys(names) if name.lower() not in {BATCH, *files}]

    def make_settings(self) -> Any:
        """Return the settings of a session.

        Raises:
            StreamerError: a file is out of reach.
        """
        from streamer.connectors.duckdb.session import SessionSettings, TableFile

        permissions, limits = self.parsed.permissions, current_limits()
        files = tuple(
            TableFile(name, permissions.file(file[PATH]), _file_format(file) or _FORMATS[0])
            for name, file in self.parsed[FILES].items()
        )
        return SessionSettings(
            self.query,
            parse_size(self.parsed[MEMORY_LIMIT]),
            permissions.file(self.parsed[TEMP_DIRECTORY]),
            files,
            limits.messages,
            limits.bytes,
        )


@lru_cache(maxsize=64)
def _plan_query(
    settings: Any, columns: Sequence[tuple[str, str]], metadata: Sequence[str]
) -> tuple[str, Any]:
    """Return DuckDB's plan of a query, or else the error why there is none."""
    from streamer.connectors.duckdb.batch_columns import ColumnBuilder
    from streamer.connectors.duckdb.client import QueryProcess
    from streamer.connectors.duckdb.column_kinds import parse_batch_columns
    from streamer.connectors.duckdb.errors import QueryError
    from streamer.connectors.duckdb.query_text import parse_query

    declared = parse_batch_columns(dict(columns))
    rows = ColumnBuilder(parse_query(settings.query), declared, metadata).empty_rows()
    process = QueryProcess(settings, _CHECK_TIMEOUT_S)
    try:
        return process.explain(rows, {}), None
    except QueryError as error:
        return "", error
    finally:
        process.close()


def _plan(config: _Config) -> tuple[str, Any]:
    return _plan_query(config.make_settings(), config.columns, config.metadata)


def _bind_query(config: _Config) -> str | None:
    """Return what is wrong with a query over columns that are known; None for nothing."""
    with skip_if_missing():
        try:
            if config.list_tables():
                return None  # Of tables that are loaded later, nobody knows the columns.
            _, error = _plan(config)
        except StreamerError:
            return None
        # What is wrong without a place is no matter of the query: a file is not there yet.
        return _place_problem(error) if error is not None and error.line else None
    return None


def _plan_lines(config: _Config) -> Iterator[str]:
    tables = config.list_tables()
    if not config.columns or tables:
        yield (
            f"plan         {_NO_COLUMNS}"
            if not tables
            else (f"plan         known when {', '.join(tables)} is loaded")
        )
        return
    plan, error = _plan(config)
    if error is not None:
        yield f"plan         none: {error}"
    for line in plan.splitlines():
        yield f"  {line}"


class DuckDbProcessor:
    """Runs the query over batches."""

    def __init__(self, parsed: ParsedFields, context: BuildContext) -> None:
        from streamer.connectors.duckdb.batch_query import BatchQuery
        from streamer.connectors.duckdb.column_kinds import parse_batch_columns

        config = _Config(parsed)
        settings = config.make_settings()
        seconds = (parsed[TIMEOUT] or 0) / _NS_PER_S
        declared = parse_batch_columns(dict(config.columns))
        self._query: BatchQuery = context.worker_resource(
            ("query", settings, seconds, config.columns, config.metadata),
            lambda: BatchQuery(settings, seconds, declared, config.metadata),
        )
        self._place = parsed.place(QUERY)
        self._is_block = "\n" in config.query
        self._origin = ComponentRef(context.component)

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return a message for each row of the query, and the messages that are none."""
        from streamer.connectors.duckdb.errors import QueryError

        skipped = [index for index, message in enumerate(batch) if message.error is not None]
        try:
            result = self._query.run(batch, skipped)
        except QueryError as error:
            return [self._fail_all(batch, skipped, error, ex)]
        failed = [
            self._origin.fail(batch[index], text, ex) for index, text in result.errors.items()
        ]
        first = batch[0]
        rows = [self._make_message(first, document) for document in result.documents]
        made = [*rows, *failed, *(batch[index] for index in skipped)]
        return [made] if made else []

    def _make_message(self, first: Message, document: Any) -> Message:
        message = Message.from_value(document, first.meta)
        return keep_place(first, message) or message

    def _fail_all(
        self, batch: Batch, skipped: Sequence[int], error: Any, ex: Execution
    ) -> list[Message]:
        """Mark the messages of a batch; the log has the failure once."""
        text = self._describe(error)
        made: list[Message] = []
        for index, message in enumerate(batch):
            if index in skipped:
                made.append(message)
            elif not made or all(one.error is None for one in made):
                made.append(self._origin.fail(message, text, ex))
            else:
                made.append(self._origin.mark(message, text, ex))
        return made

    def _describe(self, error: Any) -> str:
        """Return an error with the line of the config that it is about."""
        if not self._place.line:
            return f"line {error.line} of the query: {error}" if error.line else str(error)
        # The text of a block begins below the line on which its field is.
        below = max(error.line, 1) if self._is_block else 0
        return f"line {self._place.line + below} of the config: {error}"


def build(parsed: ParsedFields, context: BuildContext) -> DuckDbProcessor:
    """Take the query."""
    return DuckDbProcessor(parsed, context)
