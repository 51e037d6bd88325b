"""Trino, by its own client over HTTP. Every statement is by itself: there are no transactions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from streamer.connectors.sql.errors import SqlError
from streamer.connectors.sql.standard_driver import (
    CONNECT_TIMEOUT_S,
    StandardDriver,
    read_login,
    read_parameters,
    split_url,
)

if TYPE_CHECKING:
    from sqlalchemy import Engine

_PORTS: Final = {"http": 8080, "https": 443}
_READ_TIMEOUT_S: Final = 300
_PARAMETERS: Final = ("catalog", "schema", "source", "session_properties")
_VALUE_ERRORS: Final = frozenset(
    (
        *("INVALID_CAST_ARGUMENT", "NUMERIC_VALUE_OUT_OF_RANGE", "INVALID_FUNCTION_ARGUMENT"),
        *("TYPE_MISMATCH", "CONSTRAINT_VIOLATION"),
    )
)


class TrinoDriver(StandardDriver):
    """Trino as a driver; placeholders are question marks."""

    transaction_level = ""

    def dialect(self, dsn: str) -> tuple[str, Callable[[], Any], dict[str, Any]]:
        """Return what connects to `https://user:password@host?catalog=name&schema=name`."""
        given = parse_trino_dsn(dsn)

        def connect() -> Any:
            import trino

            open_connection: Any = trino.dbapi.connect
            password = given["password"]
            auth = trino.auth.BasicAuthentication(given["user"], password) if password else None
            options = {name: value for name, value in given.items() if name != "password"}
            return open_connection(**options, auth=auth)

        return "trino", connect, {"paramstyle": "qmark"}

    def engine(self, dsn: str, **pool: Any) -> Engine:
        """Return an engine; what HTTP has failed by is an error of a database, too."""
        from sqlalchemy import event

        engine = super().engine(dsn, **pool)

        @event.listens_for(engine, "handle_error")
        def raise_sql_error(context: Any) -> None:
            from trino.exceptions import HttpError

            if isinstance(context.original_exception, HttpError | OSError):
                raise SqlError(self.error_text(context.original_exception)) from None

        return engine

    def error_text(self, error: BaseException) -> str:
        """Return what the server says."""
        text = getattr(error, "message", None)
        return " ".join(str(text if isinstance(text, str) else error).split())

    def is_value_error(self, error: BaseException) -> bool:
        """Return whether values are why: the name of the failure says so."""
        return getattr(error, "error_name", None) in _VALUE_ERRORS


def parse_trino_dsn(dsn: str) -> dict[str, Any]:
    """Return the arguments of the client for a DSN of trino-go-client, and the password.

    Raises:
        SqlError: it is none, or says what is not available.
    """
    form = "https://user:password@host:443?catalog=name&schema=name"
    url = split_url(dsn, tuple(_PORTS), form, 443)
    more = read_parameters(url, _PARAMETERS)
    user, password = read_login(url)
    if not user:
        raise SqlError("the DSN names no user, which Trino wants")
    if password and url.scheme == "http":
        raise SqlError("the DSN has a password, which goes over https only")
    pairs = [one.partition("=") for one in more.get("session_properties", "").split(",") if one]
    return {
        "host": url.hostname,
        "port": url.port or _PORTS[url.scheme],
        "user": user,
        "password": password,
        "http_scheme": url.scheme,
        "catalog": more.get("catalog") or None,
        "schema": more.get("schema") or None,
        "source": more.get("source", "streamer"),
        "session_properties": {name: value for name, _, value in pairs},
        "request_timeout": (CONNECT_TIMEOUT_S, _READ_TIMEOUT_S),
        "max_attempts": 1,
    }
