"""SQLite, by Python's own module."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from streamer.sql.drivers import Rows, SqlError
from streamer.timestamps import Timestamp

# How long a statement waits for another's lock: many tasks write into one file.
_PATIENCE: Final = 60.0
_FILE: Final = "file:"


class SqliteConnection:
    """A connection to a file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Take one that commits every statement by itself."""
        self._connection = connection

    def run(self, statement: str, arguments: Sequence[Any]) -> Rows | None:
        """Run a statement."""
        try:
            cursor = self._connection.execute(statement, [_bound(one) for one in arguments])
            if cursor.description is None:
                return None
            columns = [column[0] for column in cursor.description]
            return Rows(columns, [tuple(map(_value, row)) for row in cursor])
        except (sqlite3.Error, sqlite3.Warning, OverflowError) as e:
            raise SqlError(str(e)) from None

    def script(self, text: str) -> None:
        """Run several statements."""
        try:
            self._connection.executescript(text)
        except (sqlite3.Error, sqlite3.Warning) as e:
            raise SqlError(str(e)) from None

    def stream(self, query: str, arguments: Sequence[Any], size: int) -> Iterator[Rows]:
        """Run a query; return its rows as they come."""
        try:
            cursor = self._connection.execute(query, [_bound(one) for one in arguments])
            columns = [column[0] for column in cursor.description or ()]
            while rows := cursor.fetchmany(size):
                yield Rows(columns, [tuple(map(_value, row)) for row in rows])
        except (sqlite3.Error, sqlite3.Warning, OverflowError) as e:
            raise SqlError(str(e)) from None

    def alive(self) -> bool:
        """Tell that a file never goes away."""
        return True

    def close(self) -> None:
        """Close it."""
        self._connection.close()


class Sqlite:
    """SQLite as a driver."""

    most_arguments: int = 32_766

    def connect(self, dsn: str) -> SqliteConnection:
        """Open a file: a path, or a URL `file:path?mode=ro&_pragma=foreign_keys(1)`."""
        path, pragmas = _split(dsn)
        try:
            connection = sqlite3.connect(
                path,
                uri=path.startswith(_FILE),
                timeout=_PATIENCE,
                isolation_level=None,
                check_same_thread=False,
            )
            for pragma in pragmas:
                connection.execute(f"PRAGMA {pragma}")
        except sqlite3.Error as e:
            raise SqlError(str(e)) from None
        return SqliteConnection(connection)

    def placeholders(self, statement: str) -> str:
        """Return the statement: its placeholders are question marks."""
        return statement


def _split(dsn: str) -> tuple[str, list[str]]:
    """Part a DSN from the pragmas in it, which only Go's driver knows."""
    path, mark, query = dsn.partition("?")
    if not mark:
        return dsn, []
    pairs = parse_qsl(query, keep_blank_values=True)
    pragmas = [value.replace("(", "=").rstrip(")") for name, value in pairs if name == "_pragma"]
    rest = [(name, value) for name, value in pairs if not name.startswith("_")]
    if not path.startswith(_FILE):
        path = _FILE + path
    return f"{path}?{urlencode(rest)}" if rest else path, pragmas


def _bound(value: Any) -> Any:
    """Return an argument as SQLite has it."""
    if isinstance(value, Timestamp):
        return str(value)
    if isinstance(value, bool | int):
        return int(value)
    return float(value) if isinstance(value, float) else value


def _value(value: Any) -> Any:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
