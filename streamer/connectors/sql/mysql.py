"""MySQL and MariaDB, by PyMySQL; values come and go as with Go's go-sql-driver.

Numbers of rows are values; a time is one where the DSN has `parseTime=true`; all else (decimal,
json, …) is the text that the server sends.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, unquote

from streamer.connectors.sql.errors import SqlError
from streamer.core.durations import parse_duration
from streamer.core.permissions import ALL, Permissions
from streamer.core.timestamps import Timestamp
from streamer.core.urls import address_problem

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

_DSN: Final = re.compile(
    r"(?:(?P<user>[^:@/]*)(?::(?P<password>.*))?@)?"
    r"(?:(?P<protocol>tcp|unix)(?:\((?P<address>[^)]*)\))?)?/(?P<name>[^?]*)(?:\?(?P<more>.*))?",
    re.DOTALL,
)
# What is a question mark only, or what holds one that is none: texts, names and comments.
_MARKS: Final = re.compile(
    r"""('(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`[^`]*`|--\s[^\n]*|\#[^\n]*|/\*.*?\*/)|(\?)""",
    re.DOTALL,
)
_SECOND_NS: Final = 10**9
_GREETING_TIMEOUT_S: Final = 10.0
_TIMEOUT_PARAMETERS: Final = {
    "timeout": "connect_timeout",
    "readTimeout": "read_timeout",
    "writeTimeout": "write_timeout",
}
# What else Go's driver knows; all other names are variables of the server.
_UNSUPPORTED_PARAMETERS: Final = frozenset(
    [
        "allowAllFiles",
        "allowCleartextPasswords",
        "allowFallbackToPlaintext",
        "allowNativePasswords",
        "allowOldPasswords",
        "checkConnLiveness",
        "clientFoundRows",
        "columnsWithAlias",
        "connectionAttributes",
        "interpolateParams",
        "maxAllowedPacket",
        "rejectReadOnly",
        "serverPubKey",
        "timeTruncate",
    ]
)
_VALUE_ERRORS: Final = frozenset(
    (
        *(1292, 1411, 1690),  # a value that is no time or number, or is out of range
        *(3140, 3819, 4025),  # one that is no JSON; a CHECK of MySQL's, and one of MariaDB's
    )
)
"""Numbers of errors that are of the values of a statement."""
_TLS: Final[dict[str, dict[str, Any]]] = {
    "false": {"ssl_disabled": True},
    "preferred": {},
    "true": {"ssl_verify_cert": True, "ssl_verify_identity": True},
    "skip-verify": {"ssl": {"check_hostname": False, "verify_mode": "none"}},
}


class MysqlDriver:
    """MySQL as a driver."""

    begin = "BEGIN"

    def __init__(self, permissions: Permissions = ALL) -> None:
        """Take whether Unix sockets may be opened."""
        self._permissions = permissions

    def engine(self, dsn: str, **pool: Any) -> Engine:
        """Return an engine for `user:password@tcp(host:port)/name?parseTime=true`."""
        import pymysql
        from sqlalchemy import create_engine

        given = _connect_arguments(dsn)
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


def _connect_arguments(dsn: str) -> dict[str, Any]:
    """Return the arguments of PyMySQL for a DSN."""
    from pymysql.constants import CLIENT

    match = _DSN.fullmatch(dsn)
    if match is None:
        raise SqlError("mysql: the DSN is not as user:password@tcp(host:port)/name")
    more = dict(parse_qsl(match["more"] or "", keep_blank_values=True))
    address = match["address"] or "127.0.0.1:3306"
    host, _, port = address.rpartition(":") if ":" in address else (address, "", "3306")
    given: dict[str, Any] = {
        "user": match["user"] or None,
        "password": match["password"] or "",
        "database": unquote(match["name"]) or None,
        "charset": more.pop("charset", "utf8mb4").split(",")[0],
        "conv": _make_conversions(more.pop("parseTime", "false") == "true"),
    }
    if match["protocol"] == "unix":
        given["unix_socket"] = address
    elif problem := address_problem(address):
        raise SqlError(f"mysql: the DSN {problem}")
    else:
        given |= {"host": host.strip("[]"), "port": int(port)}
    if more.pop("loc", "UTC") != "UTC":
        raise SqlError("mysql: loc in the DSN is UTC here; convert times by a mapping")
    tls = more.pop("tls", "false")
    if tls not in _TLS:
        raise SqlError(f"mysql: tls in the DSN is {tls!r}; expected one of {', '.join(_TLS)}")
    given |= _TLS[tls]
    if "collation" in more:
        given["collation"] = more.pop("collation")
    if more.pop("multiStatements", "false") == "true":
        given["client_flag"] = CLIENT.MULTI_STATEMENTS
    for name, ours in _TIMEOUT_PARAMETERS.items():
        if name in more:
            given[ours] = max(parse_duration(more.pop(name)) / _SECOND_NS, 1)
    for name in sorted(_UNSUPPORTED_PARAMETERS & more.keys()):
        raise SqlError(f"mysql: {name} in the DSN is not available here; leave it out")
    if more:
        given["init_command"] = "SET " + ", ".join(f"{name}={more[name]}" for name in more)
    return given


def _make_conversions(times: bool) -> dict[Any, Any]:
    """Return PyMySQL's conversions of arguments, and of rows where a value is a number or time."""
    from pymysql.constants import FIELD_TYPE as KIND
    from pymysql.converters import encoders

    whole = (KIND.TINY, KIND.SHORT, KIND.INT24, KIND.LONG, KIND.LONGLONG, KIND.YEAR)
    made: dict[Any, Any] = {**encoders, **dict.fromkeys(whole, int)}
    made |= dict.fromkeys((KIND.FLOAT, KIND.DOUBLE), float)
    if times:
        made |= dict.fromkeys((KIND.DATE, KIND.DATETIME, KIND.TIMESTAMP), _format_time)
    return made


def _format_time(text: str) -> str:
    date, _, clock = text.partition(" ")
    clock = clock or "00:00:00"
    if "." in clock:
        clock = clock.rstrip("0").rstrip(".")
    return f"{date}T{clock}Z"
