"""Oracle's database, by python-oracledb without Oracle's client libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from streamer.connectors.sql.errors import SqlError
from streamer.connectors.sql.standard_driver import (
    CONNECT_TIMEOUT_S,
    StandardDriver,
    first_number,
    read_login,
    read_parameters,
    split_url,
)

_PORT: Final = 1521
_YES: Final = ("true", "enable", "yes", "1")


class OracleDriver(StandardDriver):
    """Oracle's database as a driver; placeholders are `:1`, `:2` and so on."""

    value_errors = frozenset(
        (
            *(1, 1400, 1407, 2290, 2291),  # a key that is there, null, a constraint
            *(1438, 1722, 12899),  # out of range, no number, too long
            *(1830, 1840, 1841, 1843, 1847, 1858, 1861),  # no date
        )
    )

    def dialect(self, dsn: str) -> tuple[str, Callable[[], Any], dict[str, Any]]:
        """Return what connects to `oracle://user:password@host:1521/service`."""
        given = parse_oracle_dsn(dsn)

        def connect() -> Any:
            import oracledb

            oracledb.defaults.fetch_lobs = False
            return oracledb.connect(**given)

        return "oracle+oracledb", connect, {}

    def error_text(self, error: BaseException) -> str:
        """Return what the server says: ORA, a number and a text."""
        lines = str(error).strip().splitlines()
        return lines[0] if lines else type(error).__name__

    def error_number(self, error: BaseException) -> int:
        """Return the server's number of an error; 0 without one."""
        text = str(error)
        return first_number(text) if text.startswith("ORA-") else 0


def parse_oracle_dsn(dsn: str) -> dict[str, Any]:
    """Return the arguments of oracledb for a DSN of go-ora.

    Raises:
        SqlError: it is none, or says what is not available.
    """
    url = split_url(dsn, ("oracle",), "oracle://user:password@host:1521/service", _PORT)
    more = read_parameters(url, ("ssl", "ssl verify", "sid"))
    user, password = read_login(url)
    service = url.path.strip("/")
    if bool(service) == ("sid" in more):
        raise SqlError(
            "the DSN names no service; expected oracle://host:1521/service, or ?SID=name"
        )
    named = {"sid": more["sid"]} if "sid" in more else {"service_name": service}
    return {
        "host": url.hostname,
        "port": url.port or _PORT,
        **named,
        "user": user,
        "password": password,
        "protocol": "tcps" if more.get("ssl", "false").lower() in _YES else "tcp",
        "ssl_server_dn_match": more.get("ssl verify", "true").lower() in _YES,
        "tcp_connect_timeout": CONNECT_TIMEOUT_S,
    }
