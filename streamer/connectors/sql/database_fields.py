"""The fields of all components for databases, and the database that they describe."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from streamer.bloblang import Mapping, compile_mapping
from streamer.connectors.sql.database import Database
from streamer.connectors.sql.drivers import (
    CLICKHOUSE,
    MSSQL,
    MYSQL,
    ORACLE,
    PGX,
    POSTGRES,
    TRINO,
    driver_problem,
    find_driver,
)
from streamer.connectors.sql.dsn import dsn_problem
from streamer.connectors.sql.pool_bounds import PoolBounds
from streamer.connectors.sql.row_changes import (
    UPSERT_BY,
    DeleteStatement,
    RowWriter,
    make_upsert_suffix,
)
from streamer.connectors.sql.statements import InsertStatement, SelectStatement
from streamer.sdk.spec import Access, BuildContext, Field, Package, ParsedFields, duration_field

DRIVER: Final = "driver"
DSN: Final = "dsn"
TABLE: Final = "table"
COLUMNS: Final = "columns"
WHERE: Final = "where"
PREFIX: Final = "prefix"
SUFFIX: Final = "suffix"
OPTIONS: Final = "options"
QUERY: Final = "query"
ARGS_MAPPING: Final = "args_mapping"
INIT_FILES: Final = "init_files"
INIT_STATEMENT: Final = "init_statement"
CONN_MAX_IDLE_TIME: Final = "conn_max_idle_time"
CONN_MAX_LIFE_TIME: Final = "conn_max_life_time"
CONN_MAX_IDLE: Final = "conn_max_idle"
CONN_MAX_OPEN: Final = "conn_max_open"

_WITHOUT_UPSERT: Final = (MSSQL, ORACLE, TRINO)

PACKAGES: Final = (
    Package("sqlalchemy"),
    Package("clickhouse_driver", DRIVER, (CLICKHOUSE,)),
    Package("oracledb", DRIVER, (ORACLE,)),
    Package("psycopg", DRIVER, (PGX, POSTGRES)),
    Package("pymssql", DRIVER, (MSSQL,)),
    Package("pymysql", DRIVER, (MYSQL,)),
    Package("trino", DRIVER, (TRINO,)),
)
"""What all components need that have these fields."""

TARGET_FIELDS: Final = (
    Field(
        DRIVER,
        "string",
        "The kind of database: `mysql` (tested on MariaDB 10.11), `postgres`, `pgx` (the same), "
        "`sqlite`, `clickhouse` (tested on ClickHouse 18.16), `trino` (tested on a stand-in that "
        "speaks its protocol), `mssql` or `oracle` (neither was tested on a server).",
        access=Access.DATABASE,
        check=driver_problem,
        examples=("mysql", "postgres", "sqlite", "clickhouse"),
    ),
    Field(
        DSN,
        "string",
        "URL of the database: `postgres://user:password@host:port/name?sslmode=disable` (TLS "
        "is required by default), `user:password@tcp(host:port)/name` for MySQL, "
        "`file:path/to/file.db` for SQLite, `clickhouse://user:password@host:9000/name` for "
        "ClickHouse, by its native protocol, `https://user:password@host?catalog=name&schema=name` "
        "for Trino, `sqlserver://user:password@host:1433?database=name` for SQL Server, or "
        "`oracle://user:password@host:1521/service` for Oracle.",
        access=Access.DATABASE_URL,
        secret=True,
        check=dsn_problem,
        examples=("postgres://user:password@localhost:5432/name?sslmode=disable", "file:data.db"),
    ),
)

CONNECTION_FIELDS: Final = (
    Field(
        INIT_FILES,
        "string",
        "Files of SQL to run before the first statement, each once in every worker; `*` and `**` "
        "may be used. They must do no harm when they run again. A failure is logged, and no more.",
        access=Access.FILE,
        optional=True,
        shape="array",
        advanced=True,
        examples=(["./init/*.sql"],),
    ),
    Field(
        INIT_STATEMENT,
        "string",
        "SQL to run before the first statement, after `init_files`, likewise.",
        access=Access.REMOTE,
        optional=True,
        advanced=True,
        examples=("CREATE TABLE IF NOT EXISTS things (id text PRIMARY KEY, number integer);",),
    ),
    duration_field(
        CONN_MAX_IDLE_TIME,
        "Maximum idle time of a connection. It is measured from its creation and checked at "
        "its next use, like `conn_max_life_time`.",
        optional=True,
        advanced=True,
    ),
    duration_field(
        CONN_MAX_LIFE_TIME,
        "Maximum age of a connection. An older one is replaced at its next use; until then it "
        "stays open.",
        optional=True,
        advanced=True,
    ),
    Field(
        CONN_MAX_IDLE,
        "int",
        "Maximum number of idle connections of each worker; 0 for none (or one, if "
        "`conn_max_open` is set). A connection that the server has closed is replaced.",
        default=2,
        optional=True,
        advanced=True,
    ),
    Field(
        CONN_MAX_OPEN,
        "int",
        "Maximum number of connections of each worker; 0 for no limit.",
        optional=True,
        advanced=True,
    ),
)

TABLE_FIELD: Final = Field(TABLE, "string", "The table.", examples=("things",))
PREFIX_FIELD: Final = Field(
    PREFIX, "string", "Text before the statement.", optional=True, advanced=True
)


def args_field(of: str, *, optional: bool) -> Field:
    """Return the field of a mapping that gives arguments, one for each of what `of` says."""
    return Field(
        ARGS_MAPPING,
        "string",
        f"A Bloblang mapping whose result is an array with a value for each {of}.",
        mapping=True,
        optional=optional,
        examples=("root = [ this.id, this.user.name ]", 'root = [ meta("user.id") ]'),
    )


def _suffix_field(example: str) -> Field:
    return Field(
        SUFFIX,
        "string",
        "Text after the statement.",
        optional=True,
        advanced=True,
        examples=(example,),
    )


INSERT_FIELDS: Final = (
    TABLE_FIELD,
    Field(COLUMNS, "string", "The columns.", shape="array", examples=(["id", "name"],)),
    args_field("column", optional=False),
    Field(
        UPSERT_BY,
        "string",
        "The columns that say which row it is, with a unique index or as the primary key: a row "
        "that is there is replaced in all other columns. The same row may be written again, so a "
        "micro-batch that is replayed changes nothing. It stands for a `suffix` with `ON CONFLICT "
        "(…) DO UPDATE SET …` (`ON DUPLICATE KEY UPDATE …` for MySQL).",
        optional=True,
        shape="array",
        examples=(["id"], ["user_id", "window_start"]),
    ),
    PREFIX_FIELD,
    _suffix_field("ON CONFLICT (id) DO NOTHING"),
    Field(
        OPTIONS,
        "string",
        "Words between INSERT and INTO.",
        optional=True,
        shape="array",
        advanced=True,
        examples=(["OR REPLACE"],),
    ),
)

SELECT_FIELDS: Final = (
    TABLE_FIELD,
    Field(COLUMNS, "string", "The columns.", shape="array", examples=(["*"], ["id", "name"])),
    Field(
        WHERE,
        "string",
        "Which rows; all of them without it. Placeholders are question marks, whatever the "
        "database.",
        access=Access.REMOTE,
        optional=True,
        examples=("kind = ? AND made_at > ?",),
    ),
    args_field("placeholder of `where`", optional=True),
    PREFIX_FIELD,
    _suffix_field("ORDER BY id"),
)


def insert_problems(parsed: ParsedFields) -> Iterable[tuple[str, str]]:
    """Return what is wrong with the fields of an insert, as pairs of field and text."""
    key = parsed[UPSERT_BY]
    if key is None:
        return
    if parsed[DRIVER] == CLICKHOUSE:
        yield UPSERT_BY, "ClickHouse replaces no rows; leave it out and use a ReplacingMergeTree"
    elif parsed[DRIVER] in _WITHOUT_UPSERT:
        yield UPSERT_BY, f"is not available for {parsed[DRIVER]}; use sql_raw with a MERGE"
    if not key:
        yield UPSERT_BY, "is empty; name the columns of the key, or leave it out"
    for name in key:
        if name not in parsed[COLUMNS]:
            yield UPSERT_BY, f"has {name!r}, which is none of the columns; add it to columns"
    if parsed[SUFFIX]:
        yield UPSERT_BY, f"stands for a {SUFFIX}; leave out one of them"


def make_row_writer(database: Database, parsed: ParsedFields) -> RowWriter:
    """Return what writes the rows that the fields of an insert describe."""
    key, columns = parsed[UPSERT_BY] or (), parsed[COLUMNS]
    suffix = parsed[SUFFIX] or ""
    if key:
        suffix = make_upsert_suffix(parsed[DRIVER], columns, key)
    insert = InsertStatement(
        parsed[TABLE], columns, parsed[PREFIX] or "", suffix, parsed[OPTIONS] or ()
    )
    delete = DeleteStatement(parsed[TABLE], key) if key else None
    return RowWriter(database, insert, delete, [columns.index(name) for name in key])


def read_select(parsed: ParsedFields) -> SelectStatement:
    """Return the statement that the fields of a select describe."""
    return SelectStatement(
        parsed[TABLE],
        parsed[COLUMNS],
        parsed[WHERE] or "",
        parsed[PREFIX] or "",
        parsed[SUFFIX] or "",
    )


def args_mapping(parsed: ParsedFields) -> Mapping | None:
    """Compile the mapping of arguments, if there is one."""
    return compile_mapping(parsed[ARGS_MAPPING]) if parsed[ARGS_MAPPING] else None


def shared_database(parsed: ParsedFields, context: BuildContext) -> Database:
    """Return the database of a component; it lasts as long as the worker.

    Raises:
        StreamerError: there is no such driver, or a file cannot be read.
    """
    return context.worker_resource("database", _database_factory(parsed))


def own_database(parsed: ParsedFields) -> Database:
    """Return a database that lasts as long as whoever asks for it."""
    return _database_factory(parsed)()


def _database_factory(parsed: ParsedFields) -> Callable[[], Database]:
    idle = parsed[CONN_MAX_IDLE]
    bounds = PoolBounds(
        2 if idle is None else idle,
        parsed[CONN_MAX_OPEN] or 0,
        parsed[CONN_MAX_IDLE_TIME] or 0,
        parsed[CONN_MAX_LIFE_TIME] or 0,
    )
    return lambda: Database(
        find_driver(parsed[DRIVER], parsed.permissions),
        parsed[DSN],
        bounds,
        parsed[INIT_FILES] or (),
        parsed[INIT_STATEMENT] or "",
        parsed.permissions,
    )
