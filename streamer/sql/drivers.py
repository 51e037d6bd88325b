"""What a driver must offer, and which there are. Drivers are imported when one is needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol

from streamer.errors import StreamerError

POSTGRES: Final = "postgres"
SQLITE: Final = "sqlite"

# All that Redpanda Connect knows.
DRIVERS: Final = (
    "mysql",
    POSTGRES,
    "clickhouse",
    "mssql",
    SQLITE,
    "oracle",
    "snowflake",
    "trino",
    "gocosmos",
    "spanner",
    "databricks",
)


class SqlError(StreamerError):
    """A statement failed, or there is no connection; the text is the database's."""


class Rows(NamedTuple):
    """What a query gave.

    Attributes:
        columns: the names of the columns.
        values: the rows, each with a Bloblang value for each column.
    """

    columns: Sequence[str]
    values: list[Sequence[Any]]

    def objects(self) -> list[dict[str, Any]]:
        """Return an object for each row; of columns of one name, the last one counts."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.values]


class Connection(Protocol):
    """A connection of a driver; every statement is a transaction, unless one was begun."""

    def run(self, statement: str, arguments: Sequence[Any]) -> Rows | None:
        """Run a statement; return its rows, or None when it is one that has none.

        Raises:
            SqlError: it failed.
        """

    def script(self, text: str) -> None:
        """Run several statements, separated by semicolons, without arguments.

        Raises:
            SqlError: one failed.
        """

    def stream(self, query: str, arguments: Sequence[Any], size: int) -> Iterator[Rows]:
        """Run a query; return its rows as they come, about `size` at a time.

        Raises:
            SqlError: it failed.
        """

    def alive(self) -> bool:
        """Tell whether the connection can be used further, without asking the server."""

    def close(self) -> None:
        """Close it."""


class Driver(Protocol):
    """A kind of database."""

    most_arguments: int
    """How many arguments one statement may have."""

    def connect(self, dsn: str) -> Connection:
        """Connect.

        Raises:
            SqlError: it is not there, or refuses.
        """

    def placeholders(self, statement: str) -> str:
        """Put the driver's own placeholders in the place of question marks."""


def driver(name: str) -> Driver:
    """Return a driver by the name that configs give it.

    Raises:
        StreamerError: there is none of that name.
    """
    if name == POSTGRES:
        from streamer.sql.postgres import Postgres

        return Postgres()
    if name == SQLITE:
        from streamer.sql.sqlite import Sqlite

        return Sqlite()
    raise StreamerError(driver_problem(name))


def driver_problem(name: str) -> str | None:
    """Return what is wrong with a driver's name."""
    if name in (POSTGRES, SQLITE):
        return None
    if name in DRIVERS:
        return f"{name!r} is not available yet; available are {POSTGRES} and {SQLITE}"
    return f"is {name!r}; expected {POSTGRES} or {SQLITE}"
