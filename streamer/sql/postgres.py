"""PostgreSQL, by psycopg; values come and go as with Go's lib/pq.

Arguments are sent as texts whose types the server infers, so that a number may go into a column of
texts. Numbers, booleans and times of rows are values; all else (numeric, json, uuid, arrays, …) is
the text that the server sends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from streamer.sql.drivers import Rows, SqlError
from streamer.timestamps import Timestamp, format_rfc3339, parse_rfc3339
from streamer.value import format_float

_OFFSET: Final = re.compile(r"[+-]\d\d(:\d\d)?$")
_CONNECTING: Final = {"connect_timeout": "10"}


def _moment(raw: bytes) -> Any:
    text = raw.decode()
    date, _, clock = text.partition(" ")
    if not clock:
        clock = "00:00:00"
    offset = _OFFSET.search(clock)
    clock += "Z" if offset is None else "" if offset[1] else ":00"
    try:
        moment = parse_rfc3339(f"{date}T{clock}")
    except ValueError:
        return text  # `infinity`, or a year before Christ
    return format_rfc3339(moment.ns, moment.offset)


def _bytes(raw: bytes) -> str:
    return bytes.fromhex(raw.decode().removeprefix("\\x")).decode(errors="replace")


_LOADERS: Final[dict[int, Callable[[bytes], Any]]] = {
    16: lambda raw: raw == b"t",
    17: _bytes,
    **dict.fromkeys((20, 21, 23), int),
    **dict.fromkeys((700, 701), float),
    **dict.fromkeys((1082, 1114, 1184), _moment),
}


class PostgresConnection:
    """A connection to a server."""

    def __init__(self, connection: Any) -> None:
        """Take one of psycopg's, which commits every statement by itself."""
        self._connection = connection

    def run(self, statement: str, arguments: Sequence[Any]) -> Rows | None:
        """Run a statement with placeholders `$1`, `$2` and so on."""
        import psycopg

        given = [_sent(one) for one in arguments]
        try:
            with self._connection.cursor() as cursor:
                # Without arguments a text may hold several statements, as in lib/pq.
                cursor.execute(statement, given or None)
                result = cursor.pgresult
                return None if cursor.description is None or result is None else _rows(result)
        except psycopg.Error as e:
            raise SqlError(_told(e)) from None

    def script(self, text: str) -> None:
        """Run several statements."""
        self.run(text, ())

    def stream(self, query: str, arguments: Sequence[Any], size: int) -> Iterator[Rows]:
        """Run a query; the server keeps its rows until they are asked for."""
        self.run("BEGIN", ())
        try:
            text = query.rstrip().rstrip(";")
            self.run(f"DECLARE streamer NO SCROLL CURSOR FOR {text}", arguments)
            while (rows := self.run(f"FETCH {size} FROM streamer", ())) and rows.values:
                yield rows
        finally:
            if self.alive():
                self.run("ROLLBACK", ())

    def alive(self) -> bool:
        """Tell whether the connection was found broken."""
        return not self._connection.closed

    def close(self) -> None:
        """Close it."""
        self._connection.close()


class Postgres:
    """PostgreSQL as a driver."""

    most_arguments: int = 65_535

    def connect(self, dsn: str) -> PostgresConnection:
        """Connect to a server by libpq's URL, or by its words (`host=… dbname=…`)."""
        import psycopg

        try:
            # lib/pq wants TLS where nothing is said.
            given: dict[str, Any] = {"sslmode": "require", **_CONNECTING}
            given |= psycopg.conninfo.conninfo_to_dict(dsn)
            connection = psycopg.connect(**given, autocommit=True, cursor_factory=psycopg.RawCursor)
        except psycopg.Error as e:
            raise SqlError(_told(e)) from None
        return PostgresConnection(connection)

    def placeholders(self, statement: str) -> str:
        """Number the question marks; two of them stand for one."""
        number = 0

        def numbered(found: re.Match[str]) -> str:
            nonlocal number
            if found[0] == "??":
                return "?"
            number += 1
            return f"${number}"

        return re.sub(r"\?\??", numbered, statement)


def _rows(result: Any) -> Rows:
    columns = [result.fname(i).decode() for i in range(result.nfields)]
    loaders = [_LOADERS.get(result.ftype(i), bytes.decode) for i in range(result.nfields)]
    rows: list[Sequence[Any]] = []
    for number in range(result.ntuples):
        row = []
        for at, load in enumerate(loaders):
            raw = result.get_value(number, at)
            row.append(None if raw is None else load(raw))
        rows.append(row)
    return Rows(columns, rows)


def _sent(value: Any) -> Any:
    """Return an argument as a text of no type, or None."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return format_float(value)
    if isinstance(value, Timestamp):
        return str(value)
    return "\\x" + bytes(value).hex()


def _told(error: Any) -> str:
    primary = getattr(getattr(error, "diag", None), "message_primary", None)
    return f"pq: {primary}" if primary else " ".join(str(error).split())
