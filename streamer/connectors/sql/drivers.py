"""Protocol of drivers, and the list of them. Drivers are imported when one is needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from streamer.core.errors import StreamerError
from streamer.core.permissions import ALL, Permissions

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

MYSQL: Final = "mysql"
POSTGRES: Final = "postgres"
PGX: Final = "pgx"
SQLITE: Final = "sqlite"
CLICKHOUSE: Final = "clickhouse"
MSSQL: Final = "mssql"
ORACLE: Final = "oracle"
TRINO: Final = "trino"

# All that Redpanda Connect knows.
DRIVERS: Final = (
    MYSQL,
    POSTGRES,
    PGX,
    CLICKHOUSE,
    MSSQL,
    SQLITE,
    ORACLE,
    "snowflake",
    TRINO,
    "gocosmos",
    "spanner",
    "databricks",
)

_AVAILABLE: Final = (CLICKHOUSE, MSSQL, MYSQL, ORACLE, PGX, POSTGRES, SQLITE, TRINO)


class QueryRows(NamedTuple):
    """The result of a query.

    Attributes:
        columns: the names of the columns.
        values: the rows, each with a Bloblang value for each column.
    """

    columns: Sequence[str]
    values: list[Sequence[Any]]

    def objects(self) -> list[dict[str, Any]]:
        """Return an object for each row; of columns of one name, the last one counts."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.values]


class Driver(Protocol):
    """A kind of database, as SQLAlchemy's dialect for a driver of Python has it.

    Attributes:
        begin: the statement that begins a transaction; empty where SQLAlchemy does it, or nobody.
        transaction_level: the isolation level by which SQLAlchemy does it; empty otherwise.
    """

    begin: str
    transaction_level: str

    def engine(self, dsn: str, **pool: Any) -> Engine:
        """Return an engine whose connections commit every statement by itself.

        Args:
            dsn: where the database is, as Redpanda Connect's driver has it.
            pool: what SQLAlchemy's pool is told.

        Raises:
            SqlError: the DSN cannot be understood.
        """

    def to_raw(self, statement: str) -> str:
        """Return a statement that has arguments with the placeholders of Python's driver."""

    def to_argument(self, value: Any) -> Any:
        """Return an argument as Python's driver wants it."""

    def from_value(self, value: Any) -> Any:
        """Return what a row holds as a Bloblang value."""

    def run_script(self, connection: Connection, text: str) -> None:
        """Run several statements, separated by semicolons, without arguments."""

    def error_text(self, error: BaseException) -> str:
        """Return what the database says of a failure."""

    def is_value_error(self, error: BaseException) -> bool:
        """Return whether values are the cause, though the driver's class of error is another."""


def find_driver(name: str, permissions: Permissions = ALL) -> Driver:
    """Return a driver by the name that configs give it.

    Raises:
        StreamerError: there is none of that name.
    """
    if name in (POSTGRES, PGX):
        from streamer.connectors.sql.postgres import PostgresDriver

        return PostgresDriver()
    if name == SQLITE:
        from streamer.connectors.sql.sqlite import SqliteDriver

        return SqliteDriver(permissions)
    if name == MYSQL:
        from streamer.connectors.sql.mysql import MysqlDriver

        return MysqlDriver(permissions)
    if name == CLICKHOUSE:
        from streamer.connectors.sql.clickhouse import ClickhouseDriver

        return ClickhouseDriver()
    if name == MSSQL:
        from streamer.connectors.sql.mssql import MssqlDriver

        return MssqlDriver()
    if name == ORACLE:
        from streamer.connectors.sql.oracle import OracleDriver

        return OracleDriver()
    if name == TRINO:
        from streamer.connectors.sql.trino import TrinoDriver

        return TrinoDriver()
    raise StreamerError(driver_problem(name))


def driver_problem(name: str) -> str | None:
    """Return what is wrong with a driver's name."""
    if name in _AVAILABLE:
        return None
    if name in DRIVERS:
        return f"{name!r} is not available; available are {', '.join(_AVAILABLE)}"
    return f"is {name!r}; expected one of {', '.join(_AVAILABLE)}"
