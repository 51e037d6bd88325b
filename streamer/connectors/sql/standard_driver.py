"""Databases that SQLAlchemy has dialects for, and that need little more: what they have in common.

Values are those of Python's drivers: numbers and texts as they are, times as texts of RFC 3339.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from streamer.connectors.sql.errors import SqlError
from streamer.core.timestamps import Timestamp
from streamer.core.urls import address_problem

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

_SECOND_NS: Final = 10**9
_NUMBER: Final = re.compile(r"\d+")
CONNECT_TIMEOUT_S: Final = 10


class StandardDriver:
    """A kind of database as a driver.

    Attributes:
        begin: empty: transactions are SQLAlchemy's.
        transaction_level: the isolation level of transactions; empty where there are none.
        value_errors: numbers of the server's errors that are of the values of a statement.
    """

    begin = ""
    transaction_level = "READ COMMITTED"
    value_errors: frozenset[int] = frozenset()

    def engine(self, dsn: str, **pool: Any) -> Engine:
        """Return an engine whose connections commit every statement by itself.

        Raises:
            SqlError: the DSN cannot be understood.
        """
        from sqlalchemy import create_engine

        name, connect, options = self.dialect(dsn)
        return create_engine(
            f"{name}://",
            creator=connect,
            isolation_level="AUTOCOMMIT",
            pool_pre_ping=True,
            **options,
            **pool,
        )

    def dialect(self, dsn: str) -> tuple[str, Callable[[], Any], dict[str, Any]]:
        """Return the name of SQLAlchemy's dialect, what connects, and options of the engine.

        Raises:
            SqlError: the DSN cannot be understood.
        """
        raise NotImplementedError

    def to_raw(self, statement: str) -> str:
        """Return the statement: its placeholders are the driver's own."""
        return statement

    def to_argument(self, value: Any) -> Any:
        """Return an argument as Python's drivers have it: whole microseconds of times."""
        if isinstance(value, Timestamp):
            return datetime.fromtimestamp(value.ns // _SECOND_NS, UTC).replace(
                microsecond=value.ns % _SECOND_NS // 1000
            )
        if isinstance(value, bool):
            return int(value)
        if isinstance(value, int):
            return int(value)
        return float(value) if isinstance(value, float) else value

    def from_value(self, value: Any) -> Any:
        """Return what a row holds as a Bloblang value."""
        if value is None or isinstance(value, str | int | float):
            return value
        if isinstance(value, bytes | bytearray | memoryview):
            return bytes(value).decode(errors="replace")
        if isinstance(value, datetime):
            text = value.isoformat()
            return text.replace("+00:00", "Z") if value.tzinfo is not None else f"{text}Z"
        if isinstance(value, date):
            return f"{value.isoformat()}T00:00:00Z"
        if isinstance(value, Decimal | time):
            return str(value)
        if isinstance(value, dict):
            return {str(key): self.from_value(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [*map(self.from_value, value)]
        return str(value)

    def run_script(self, connection: Connection, text: str) -> None:
        """Run statements, as many as the server takes at once."""
        connection.exec_driver_sql(text, execution_options={"no_parameters": True}).close()

    def error_text(self, error: BaseException) -> str:
        """Return what the server says, or the driver."""
        return " ".join(str(error).split())

    def error_number(self, error: BaseException) -> int:
        """Return the server's number of an error; 0 without one."""
        return 0

    def is_value_error(self, error: BaseException) -> bool:
        """Return whether values are why: drivers have no class for some of those."""
        return self.error_number(error) in self.value_errors


def split_url(dsn: str, schemes: tuple[str, ...], form: str, port: int) -> SplitResult:
    """Return the parts of a DSN that is a URL.

    Args:
        dsn: the DSN.
        schemes: those that are known.
        form: what it looks like, for the error.
        port: the default port.

    Raises:
        SqlError: it is another text, or its host and port are none.
    """
    url = urlsplit(dsn)
    if url.scheme not in schemes or not url.netloc:
        raise SqlError(f"the DSN is not as {form}")
    place = url.netloc.rpartition("@")[2]
    if problem := address_problem(place if re.search(r":\d+$", place) else f"{place}:{port}"):
        raise SqlError(f"the DSN {problem}")
    return url


def read_login(url: SplitResult) -> tuple[str, str]:
    """Return user and password of a DSN; empty without them."""
    return unquote(url.username or ""), unquote(url.password or "")


def read_parameters(url: SplitResult, known: tuple[str, ...]) -> dict[str, str]:
    """Return the parameters of a DSN by their names in lower case.

    Raises:
        SqlError: there are others than those that are known.
    """
    parameters = {
        name.lower(): value for name, value in parse_qsl(url.query, keep_blank_values=True)
    }
    for name in parameters:
        if name not in known:
            raise SqlError(f"{name} in the DSN is not available; known are {', '.join(known)}")
    return parameters


def first_number(text: str) -> int:
    """Return the first number in a text; 0 without one."""
    match = _NUMBER.search(text)
    return int(match[0]) if match else 0
