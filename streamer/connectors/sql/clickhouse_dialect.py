"""SQLAlchemy's dialect for ClickHouse, and connections of its native protocol.

Imported by `clickhouse` once a database is asked: both libraries are large.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from clickhouse_driver import Client, dbapi
from clickhouse_driver.dbapi.cursor import Cursor
from clickhouse_driver.errors import Error as DriverError
from sqlalchemy.engine.default import DefaultDialect

from streamer.core.timestamps import parse_rfc3339

_NATIVE_INSERT: Final = re.compile(
    r"(\s*INSERT\b.*\bVALUES\s*)\((?:\s*%s\s*,?)*\)\s*;?\s*", re.IGNORECASE | re.DOTALL
)
"""An INSERT whose values are arguments alone: its rows go as a block, with the columns' types."""
_MARK: Final = re.compile(r"%([s%])")
_TIME: Final = re.compile(r"(Nullable\()?(DateTime|Date)")
_BACKSLASHED: Final = str.maketrans({"\\": "\\\\", "'": "\\'", "\0": "\\0", "\n": "\\n"})
_STREAM_ROWS: Final = 65_536


class _NativeClient(Client):  # type: ignore[misc]
    """A client that takes times as texts, which is how JSON has them."""

    def send_data(self, sample_block: Any, data: Any, *args: Any, **options: Any) -> Any:
        """Send rows, with times for the columns that hold them."""
        kinds = [kind for _, kind in sample_block.columns_with_types]
        times = [place for place, kind in enumerate(kinds) if _TIME.match(kind)]
        return super().send_data(sample_block, _convert_times(data, times), *args, **options)


class NativeConnection(dbapi.Connection):  # type: ignore[misc]
    """A connection whose cursors share a client."""

    def __init__(self, **options: Any) -> None:
        """Take the options of a client; it connects once it is asked."""
        super().__init__(**options)
        self._client = _NativeClient(
            self.host,
            port=self.port,
            user=self.user,
            password=self.password,
            database=self.database,
            **self.connection_kwargs,
        )

    def cursor(self, cursor_factory: Any = None) -> Any:
        """Return a cursor."""
        return _NativeCursor(self._client, self)

    def close(self) -> None:
        """Close the connection to the server."""
        self.is_closed = True
        self._client.disconnect()


class _NativeCursor(Cursor):  # type: ignore[misc]
    """A cursor whose rows may still be on their way."""

    def fetchmany(self, size: int | None = None) -> Any:
        """Return the next rows."""
        with _DriverErrors():
            return super().fetchmany(size)


class ClickhouseDialect(DefaultDialect):
    """ClickHouse as a dialect: placeholders are `%s`, and there are no transactions."""

    name = "clickhouse"
    driver = "native"
    supports_statement_cache = True
    supports_native_boolean = True

    @classmethod
    def import_dbapi(cls) -> Any:
        """Return the module of the driver."""
        return dbapi

    def initialize(self, connection: Any) -> None:
        """Begin without a question to the server."""

    def do_rollback(self, dbapi_connection: Any) -> None:
        """Do nothing."""

    def do_commit(self, dbapi_connection: Any) -> None:
        """Do nothing."""

    def do_ping(self, dbapi_connection: Any) -> bool:
        """Return whether the server answers.

        Raises:
            dbapi.Error: it does not.
        """
        with _DriverErrors():
            dbapi_connection.cursor().execute("SELECT 1")
        return True

    def do_execute(self, cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:
        """Run a statement with arguments."""
        if _NATIVE_INSERT.fullmatch(statement):
            self.do_executemany(cursor, statement, [parameters], context)
            return
        _prepare_stream(cursor, context)
        with _DriverErrors():
            cursor.execute(_fill(statement, parameters))

    def do_execute_no_params(self, cursor: Any, statement: str, context: Any = None) -> None:
        """Run a statement as it is written."""
        _prepare_stream(cursor, context)
        with _DriverErrors():
            cursor.execute(statement)

    def do_executemany(
        self, cursor: Any, statement: str, parameters: Any, context: Any = None
    ) -> None:
        """Run a statement for many rows: as one block where it is an INSERT of arguments alone."""
        match = _NATIVE_INSERT.fullmatch(statement)
        with _DriverErrors():
            if match is None:
                for row in parameters:
                    cursor.execute(_fill(statement, row))
                return
            cursor.executemany(match[1].replace("%%", "%"), [tuple(row) for row in parameters])


class _DriverErrors:
    """Has errors of values, which are raised as they come, look like those of a driver."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, DriverError | OSError | EOFError | OverflowError):
            raise dbapi.OperationalError(str(error) or type(error).__name__) from None
        if isinstance(error, AttributeError | TypeError | ValueError | struct.error):
            raise dbapi.DataError(f"Type mismatch: {error}") from None


def _prepare_stream(cursor: Any, context: Any) -> None:
    if context is not None and context.execution_options.get("stream_results"):
        cursor.set_stream_results(True, _STREAM_ROWS)


def _convert_times(rows: Iterable[Sequence[Any]], places: Sequence[int]) -> Iterator[Any] | Any:
    if not places:
        return rows
    converted = []
    for row in rows:
        values = list(row)
        for place in places:
            if isinstance(values[place], str):
                values[place] = _parse_time(values[place])
        converted.append(values)
    return converted


def _parse_time(text: str) -> datetime:
    """Return the time that a text says, as ClickHouse or RFC 3339 writes it.

    Raises:
        ValueError: it is none.
    """
    whole = text.strip().replace(" ", "T", 1)
    whole += "T00:00:00Z" if "T" not in whole else ""
    if not re.search(r"(Z|[+-]\d\d:\d\d)$", whole):
        whole += "Z"
    since = timedelta(microseconds=parse_rfc3339(whole).ns // 1000)
    return datetime.fromtimestamp(0, UTC) + since


def _fill(statement: str, parameters: Sequence[Any]) -> str:
    """Return a statement with its arguments in it, as literals.

    Raises:
        ValueError: it has not as many placeholders as there are arguments.
    """
    left = iter(parameters)

    def literal(match: re.Match[str]) -> str:
        if match[1] == "%":
            return "%"
        try:
            return _literal(next(left))
        except StopIteration:
            raise ValueError("there are more placeholders than arguments") from None

    filled = _MARK.sub(literal, statement)
    if next(left, literal) is not literal:
        raise ValueError("there are more arguments than placeholders")
    return filled


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, bytes):
        return f"unhex('{value.hex()}')"
    if isinstance(value, datetime):
        moment = value.astimezone(UTC)
        if moment.microsecond:
            return f"toDateTime64('{moment:%Y-%m-%d %H:%M:%S.%f}', 6, 'UTC')"
        return f"toDateTime('{moment:%Y-%m-%d %H:%M:%S}', 'UTC')"
    if isinstance(value, date):
        return f"toDate('{value:%Y-%m-%d}')"
    return f"'{str(value).translate(_BACKSLASHED)}'"
