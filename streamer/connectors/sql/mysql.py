"""MySQL and MariaDB, by PyMySQL; values come and go as with Go's go-sql-driver.

Numbers of rows are values; a time is one where the DSN has `parseTime=true`; all else (decimal,
json, …) is the text that the server sends.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from streamer.connectors.sql.mysql_dsn import connect_arguments
from streamer.core.permissions import ALL, Permissions
from streamer.core.timestamps import Timestamp

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

# What is a question mark only, or what holds one that is none: texts, names and comments.
_MARKS: Final = re.compile(
    r"""('(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`[^`]*`|--\s[^\n]*|\#[^\n]*|/\*.*?\*/)|(\?)""",
    re.DOTALL,
)
_GREETING_TIMEOUT_S: Final = 10.0
_VALUE_ERRORS: Final = frozenset(
    (
        *(1292, 1411, 1690),  # a value that is no time or number, or is out of range
        *(3140, 3819, 4025),  # one that is no JSON; a CHECK of MySQL's, and one of MariaDB's
    )
)
"""Numbers of errors that are of the values of a statement."""


class MysqlDriver:
    """MySQL as a driver."""

    begin = "BEGIN"
    transaction_level = ""

    def __init__(self, permissions: Permissions = ALL) -> None:
        """Take whether Unix sockets may be opened."""
        self._permissions = permissions

    def engine(self, dsn: str, **pool: Any) -> Engine:
        """Return an engine for `user:password@tcp(host:port)/name?parseTime=true`."""
        import pymysql
        from sqlalchemy import create_engine

        given = connect_arguments(dsn)
        if "unix_socket" in given:
            self._permissions.unix_path(given["unix_socket"])

        lasting = given.get("read_timeout")
        given["read_timeout"] = min(lasting or _GREETING_TIMEOUT_S, _GREETING_TIMEOUT_S)

        def connect() -> Any:
            made = pymysql.connect(**given, autocommit=True)
            # The library has one time for reading: the server's greeting comes soon or never, but
            # what a query gives may take as long as the DSN says.
            made._read_timeout = lasting
            return made

        return create_engine(
            "mysql+pymysql://",
            creator=connect,
            isolation_level="AUTOCOMMIT",
            paramstyle="format",
            pool_pre_ping=True,
            **pool,
        )

    def to_raw(self, statement: str) -> str:
        """Put PyMySQL's placeholders in the place of question marks."""
        return _MARKS.sub(lambda match: match[1] or "%s", statement.replace("%", "%%"))

    def to_argument(self, value: Any) -> Any:
        """Return an argument as MySQL has it."""
        if isinstance(value, Timestamp):
            return str(value).replace("T", " ").removesuffix("Z")
        if isinstance(value, bool | int):
            return int(value)
        return float(value) if isinstance(value, float) else value

    def from_value(self, value: Any) -> Any:
        """Return what a row holds, bytes as a text."""
        return value.decode(errors="replace") if isinstance(value, bytes) else value

    def run_script(self, connection: Connection, text: str) -> None:
        """Run several statements, if the DSN has `multiStatements=true`, or one."""
        result = connection.exec_driver_sql(text, execution_options={"no_parameters": True})
        result.close()

    def error_text(self, error: BaseException) -> str:
        """Return what the server says, in the words of Go's driver."""
        if len(error.args) == 2:
            return f"Error {error.args[0]}: {error.args[1]}"
        return str(error)

    def is_value_error(self, error: BaseException) -> bool:
        """Return whether values are why; PyMySQL has no class for some of those."""
        return bool(error.args) and error.args[0] in _VALUE_ERRORS
