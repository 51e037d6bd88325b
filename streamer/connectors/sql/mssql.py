"""SQL Server, by pymssql, which has FreeTDS in it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from streamer.connectors.sql.errors import SqlError
from streamer.connectors.sql.standard_driver import (
    CONNECT_TIMEOUT_S,
    StandardDriver,
    read_login,
    read_parameters,
    split_url,
)

_PORT: Final = 1433
_PARAMETERS: Final = (
    *("database", "encrypt", "trustservercertificate", "connection timeout", "dial timeout"),
    *("app name", "applicationintent"),
)
# What is a placeholder, or what holds one that is none: texts, names and comments.
_MARKS: Final = re.compile(
    r"""('(?:[^']|'')*'|"(?:[^"]|"")*"|\[[^\]]*\]|--[^\n]*|/\*.*?\*/)|(\?|@p(\d+)\b)""",
    re.DOTALL | re.IGNORECASE,
)
_NO = ("false", "disable", "optional", "no", "0")
_YES: Final = ("true", "mandatory", "yes", "1")


class MssqlDriver(StandardDriver):
    """SQL Server as a driver."""

    value_errors = frozenset(
        (
            *(220, 241, 242, 245, 248, 8114, 8115, 8152, 2628),  # another type, too long
            *(515, 547, 2601, 2627),  # null, a constraint, a key that is there
        )
    )

    def dialect(self, dsn: str) -> tuple[str, Callable[[], Any], dict[str, Any]]:
        """Return what connects to `sqlserver://user:password@host:1433?database=name`."""
        given = parse_mssql_dsn(dsn)

        def connect() -> Any:
            import pymssql

            return pymssql.connect(**given)

        return "mssql+pymssql", connect, {"paramstyle": "format"}

    def to_raw(self, statement: str) -> str:
        """Put pymssql's placeholders in the place of question marks and of `@p1`.

        Raises:
            SqlError: numbers are in another order.
        """
        count = 0

        def replace(match: re.Match[str]) -> str:
            nonlocal count
            if match[1]:
                return match[1]
            count += 1
            if match[3] and int(match[3]) != count:
                raise SqlError(f"{match[2]} is placeholder {count}; they must be in their order")
            return "%s"

        return _MARKS.sub(replace, statement.replace("%", "%%"))

    def error_text(self, error: BaseException) -> str:
        """Return what the server says."""
        answer = error.args[1] if len(error.args) == 2 else error.args[0] if error.args else error
        if isinstance(answer, tuple) and len(answer) == 2:
            answer = answer[1]
        text = answer.decode(errors="replace") if isinstance(answer, bytes) else str(answer)
        return f"mssql: {' '.join(text.partition('DB-Lib error')[0].split())}"

    def error_number(self, error: BaseException) -> int:
        """Return the server's number of an error; 0 without one."""
        number = error.args[0] if error.args else 0
        if isinstance(number, tuple) and number:
            number = number[0]
        return number if isinstance(number, int) else 0


def parse_mssql_dsn(dsn: str) -> dict[str, Any]:
    """Return the arguments of pymssql for a DSN of go-mssqldb.

    Raises:
        SqlError: it is none, or says what is not available.
    """
    form = "sqlserver://user:password@host:1433?database=name"
    url = split_url(dsn, ("sqlserver",), form, _PORT)
    more = read_parameters(url, _PARAMETERS)
    user, password = read_login(url)
    instance = url.path.strip("/")
    if instance:
        raise SqlError("an instance's name in the DSN is not available; give its port")
    encrypt = more.get("encrypt", "false").lower()
    if encrypt not in (*_NO, *_YES):
        raise SqlError(f"encrypt in the DSN is {encrypt!r}; expected true, false or disable")
    if encrypt in _YES and more.get("trustservercertificate", "false").lower() not in _YES:
        raise SqlError(
            "the server's certificate is not verified here; encrypt in the DSN needs "
            "TrustServerCertificate=true, or a tunnel that verifies it"
        )
    return {
        "server": url.hostname,
        "port": str(url.port or _PORT),
        "user": user,
        "password": password,
        "database": more.get("database", ""),
        "login_timeout": CONNECT_TIMEOUT_S,
        "appname": more.get("app name", "streamer"),
        "encryption": "require" if encrypt in _YES else "off",
        "charset": "UTF-8",
        "autocommit": True,
    }
