"""SQLite, by Python's own module."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlencode

from streamer.core.permissions import ALL, Permissions
from streamer.core.timestamps import Timestamp

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

# How long a statement waits for another's lock: many tasks write into one file.
_LOCK_TIMEOUT_S: Final = 60.0
_FILE_PREFIX: Final = "file:"


class SqliteDriver:
    """SQLite as a driver."""

    begin = "BEGIN"
    transaction_level = ""

    def __init__(self, permissions: Permissions = ALL) -> None:
        """Take whether files may be opened."""
        self._permissions = permissions

    def engine(self, dsn: str, **pool: Any) -> Engine:
        """Return an engine for a file: a path, or `file:path?mode=ro&_pragma=foreign_keys(1)`."""
        from sqlalchemy import create_engine

        path, pragmas = _split_dsn(self._permissions.file(dsn))

        def connect() -> sqlite3.Connection:
            connection = sqlite3.connect(
                path,
                uri=path.startswith(_FILE_PREFIX),
                timeout=_LOCK_TIMEOUT_S,
                isolation_level=None,
                check_same_thread=False,
            )
            for pragma in pragmas:
                connection.execute(f"PRAGMA {pragma}")
            return connection

        return create_engine("sqlite://", creator=connect, isolation_level="AUTOCOMMIT", **pool)

    def to_raw(self, statement: str) -> str:
        """Return the statement: its placeholders are question marks."""
        return statement

    def to_argument(self, value: Any) -> Any:
        """Return an argument as SQLite has it."""
        if isinstance(value, Timestamp):
            return str(value)
        if isinstance(value, bool | int):
            return int(value)
        return float(value) if isinstance(value, float) else value

    def from_value(self, value: Any) -> Any:
        """Return what a row holds, bytes as a text."""
        return value.decode(errors="replace") if isinstance(value, bytes) else value

    def run_script(self, connection: Connection, text: str) -> None:
        """Run several statements."""
        from sqlalchemy.exc import DBAPIError

        try:
            raw: Any = connection.connection.dbapi_connection
            raw.executescript(text)
        except (sqlite3.Error, sqlite3.Warning) as e:
            raise DBAPIError(text, None, e) from None

    def error_text(self, error: BaseException) -> str:
        """Return what SQLite says."""
        return str(error)

    def is_value_error(self, error: BaseException) -> bool:
        """Return whether values are why; the class of the failure says so."""
        return False


def _split_dsn(dsn: str) -> tuple[str, list[str]]:
    """Part a DSN from the pragmas in it, which only Go's driver knows."""
    path, mark, query = dsn.partition("?")
    if not mark:
        return dsn, []
    pairs = parse_qsl(query, keep_blank_values=True)
    pragmas = [value.replace("(", "=").rstrip(")") for name, value in pairs if name == "_pragma"]
    rest = [(name, value) for name, value in pairs if not name.startswith("_")]
    if not path.startswith(_FILE_PREFIX):
        path = _FILE_PREFIX + path
    return f"{path}?{urlencode(rest)}" if rest else path, pragmas
