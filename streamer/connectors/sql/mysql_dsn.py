"""DSNs of MySQL, as Go's driver has them, and what PyMySQL makes of them."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from streamer.connectors.sql.errors import SqlError
from streamer.core.durations import parse_duration
from streamer.core.urls import address_problem

_DSN: Final = re.compile(
    r"(?:(?P<user>[^:@/]*)(?::(?P<password>.*))?@)?"
    r"(?:(?P<protocol>tcp|unix)(?:\((?P<address>[^)]*)\))?)?/(?P<name>[^?]*)(?:\?(?P<more>.*))?",
    re.DOTALL,
)
_SECOND_NS: Final = 10**9
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
_TLS: Final[dict[str, dict[str, Any]]] = {
    "false": {"ssl_disabled": True},
    "preferred": {},
    "true": {"ssl_verify_cert": True, "ssl_verify_identity": True},
    "skip-verify": {"ssl": {"check_hostname": False, "verify_mode": "none"}},
}


def connect_arguments(dsn: str) -> dict[str, Any]:
    """Return the arguments of PyMySQL for a DSN.

    Raises:
        SqlError: it cannot be understood.
    """
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
