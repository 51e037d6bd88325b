"""Tables of MySQL and MariaDB: their snapshot, and what the server must be set to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, Final

from streamer.connectors.cdc.mysql_values import load_column
from streamer.connectors.cdc.snapshot import Page
from streamer.connectors.sql.mysql_dsn import connect_arguments
from streamer.connectors.tls import TLS, tls_context
from streamer.core.errors import StreamerError
from streamer.sdk.spec import ParsedFields

_NEEDED: Final = {
    "log_bin": ("1", "ON"),
    "binlog_format": ("ROW",),
    "binlog_row_image": ("FULL",),
    "binlog_row_metadata": ("FULL",),
}
_READ_TIMEOUT_S: Final = 300
_PARSE_ERROR: Final = 1064


class MysqlError(StreamerError):
    """There is no connection, or the server refuses."""


@contextmanager
def mysql_errors() -> Iterator[None]:
    """Turn the errors of PyMySQL and of sockets into `MysqlError`s.

    Raises:
        MysqlError: for each of them.
    """
    try:
        yield
    except MysqlError:
        raise
    except Exception as e:  # the library raises all kinds at what is no server of MySQL
        text = f"Error {e.args[0]}: {e.args[1]}" if len(e.args) == 2 else str(e)
        raise MysqlError(" ".join(text.split()) or type(e).__name__) from None


def mysql_settings(parsed: ParsedFields) -> dict[str, Any]:
    """Return PyMySQL's arguments for the fields `dsn` and `tls`.

    Raises:
        StreamerError: they cannot be understood.
    """
    from pymysql.converters import conversions

    given = connect_arguments(parsed["dsn"])
    given["conv"] = dict(conversions)
    given.setdefault("connect_timeout", 10)
    if not given["database"]:
        raise MysqlError("the field dsn names no database")
    if (context := tls_context(parsed[TLS])) is not None:
        given.pop("ssl_disabled", None)
        given["ssl"] = context
    return given


def quote_name(name: str) -> str:
    """Return a name as a statement with `%s` for its arguments has it."""
    return "`" + name.replace("`", "``").replace("%", "%%") + "`"


class MysqlConnection:
    """A connection for queries, of which one thread makes use."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """Connect.

        Raises:
            MysqlError: there is no connection.
        """
        import pymysql

        with mysql_errors():
            given = {"read_timeout": _READ_TIMEOUT_S, **settings, "autocommit": True}
            self._connection = pymysql.connect(**given)
            self.schema = settings["database"]
        self.run("SET time_zone = '+00:00'")

    def close(self) -> None:
        """Close the connection."""
        with mysql_errors():
            if self._connection.open:
                self._connection.close()

    def run(self, statement: str, arguments: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a statement.

        Raises:
            MysqlError: it fails.
        """
        with mysql_errors(), self._connection.cursor() as cursor:
            cursor.execute(statement, tuple(arguments))
            return list(cursor.fetchall())

    def check_settings(self) -> None:
        """Check that the server's binary log has whole rows, with the names of columns.

        Raises:
            MysqlError: it has not; the text says what to set.
        """
        for name, expected in _NEEDED.items():
            rows = self.run("SHOW GLOBAL VARIABLES LIKE %s", [name])
            value = str(rows[0][1]) if rows else "not there"
            if value.upper() not in expected:
                right = expected[-1]
                remedy = (
                    "set it in the server's configuration, and start it again"
                    if name == "log_bin"
                    else f"run SET GLOBAL {name} = '{right}', and set it in its configuration"
                )
                raise MysqlError(f"the server has {name} {value}; expected {right}: {remedy}")

    def find_position(self) -> tuple[str, int]:
        """Return the file and the offset where the binary log ends now.

        Raises:
            MysqlError: the user may not know.
        """
        import pymysql

        for statement in ("SHOW BINARY LOG STATUS", "SHOW MASTER STATUS"):
            try:
                with self._connection.cursor() as cursor:
                    cursor.execute(statement)
                    row = cursor.fetchone()
            except pymysql.ProgrammingError as e:
                # Each of the two is unknown to some versions.
                if e.args[0] == _PARSE_ERROR:
                    continue
                raise MysqlError(f"Error {e.args[0]}: {e.args[1]}") from None
            except (pymysql.Error, OSError) as e:
                raise MysqlError(f"{e}") from None
            if row:
                return str(row[0]), int(row[1])
        raise MysqlError("the server has no binary log; set log_bin in its configuration")


class MysqlTable:
    """A table of which a snapshot is read."""

    def __init__(self, connection: MysqlConnection, name: str, rows: int) -> None:
        """Find the columns of a table.

        Args:
            connection: for queries.
            name: the table's.
            rows: of a page.

        Raises:
            MysqlError: there is no such table, or it has no primary key.
        """
        self.name = name
        self._connection = connection
        self._limit = rows
        where = "WHERE table_schema = %s AND table_name = %s"
        target = (connection.schema, name)
        self._columns: list[tuple[str, str]] = [
            (str(column), str(kind).lower())
            for column, kind in connection.run(
                f"SELECT column_name, data_type FROM information_schema.columns {where} "
                "ORDER BY ordinal_position",
                target,
            )
        ]
        if not self._columns:
            raise MysqlError(f"there is no table {name} in the database {connection.schema}")
        self._keys = [
            str(column)
            for (column,) in connection.run(
                f"SELECT column_name FROM information_schema.key_column_usage {where} "
                "AND constraint_name = 'PRIMARY' ORDER BY ordinal_position",
                target,
            )
        ]

    @property
    def place(self) -> str:
        """The identity of the table in the database."""
        return self.name

    def check_key(self) -> None:
        """Check that there is a primary key.

        Raises:
            MysqlError: there is none.
        """
        if not self._keys:
            raise MysqlError(
                f"the table {self.name} has no primary key, by which stream_snapshot reads; add "
                "one, or set stream_snapshot to false"
            )

    def read_page(self, key: Any) -> Page:
        """Return the rows behind a key, or the first ones where it is None."""
        keys = ", ".join(map(quote_name, self._keys))
        places = ", ".join(["%s"] * len(self._keys))
        where = "" if key is None else f" WHERE ({keys}) > ({places})"
        columns = ", ".join(
            # A float as a text has six digits; as a double it has all.
            f"({quote_name(name)} + 0e0) AS {quote_name(name)}"
            if kind == "float"
            else quote_name(name)
            for name, kind in self._columns
        )
        rows = self._connection.run(
            f"SELECT {columns} FROM {quote_name(self.name)}{where} ORDER BY {keys} "
            f"LIMIT {self._limit}",
            [_unpack_key(one) for one in key or ()],
        )
        names = [name for name, _ in self._columns]
        documents = [
            {
                name: load_column(kind, value)
                for (name, kind), value in zip(self._columns, row, strict=True)
            }
            for row in rows
        ]
        if len(rows) < self._limit:
            return Page(documents, None)
        return Page(documents, [_pack_key(rows[-1][names.index(name)]) for name in self._keys])


def _pack_key(value: Any) -> Any:
    """Return a part of a key as a JSON value."""
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    return value if isinstance(value, int | float | str) else str(value)


def _unpack_key(value: Any) -> Any:
    if isinstance(value, dict):
        return bytes.fromhex(value["bytes"]) if "bytes" in value else Decimal(value["decimal"])
    return value
