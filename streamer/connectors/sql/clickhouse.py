"""ClickHouse, by its native protocol; values come and go as with clickhouse-go.

It has no transactions. An INSERT is one block, which is there as a whole or not at all where all of
its rows are in one partition.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, unquote

from streamer.connectors.sql.errors import SqlError
from streamer.connectors.sql.placeholders import replace_placeholders
from streamer.core.durations import parse_duration
from streamer.core.timestamps import Timestamp
from streamer.core.urls import address_problem

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

_DSN: Final = re.compile(
    r"(?P<scheme>clickhouse|tcp|native)://(?:(?P<user>[^:@/]*)(?::(?P<password>[^@]*))?@)?"
    r"(?P<hosts>[^/?]*)(?:/(?P<name>[^?]*))?(?:\?(?P<more>.*))?"
)
_CODE: Final = re.compile(
    r"Code: (\d+)\.\s*(?:DB::Exception: )?(.*?)\s*(?:Stack trace:.*)?", re.DOTALL
)
_SECOND_NS: Final = 10**9
_CONNECT_TIMEOUT_S: Final = 10.0
_READ_TIMEOUT_S: Final = 300.0
_PORT: Final = 9000
_SECURE_PORT: Final = 9440
_NO_EFFECT: Final = frozenset(
    (
        *("block_buffer_size", "client_info_product", "compress", "compress_level", "debug"),
        *("connection_open_strategy", "max_compression_buffer", "max_idle_conns"),
        *("max_open_conns", "conn_max_lifetime"),
    )
)
"""What clickhouse-go takes beside settings of the server, and what changes nothing that is sent."""
_VALUE_ERRORS: Final = frozenset(
    (
        *(6, 26, 27, 38, 41, 72, 131, 376, 441),  # a text that is no number, date, UUID, address
        *(53, 69, 70, 349, 469, 691),  # another type, out of bounds, null, a constraint, an enum
    )
)
"""Codes of errors that are of the values of a statement."""
_TRUE: Final = ("true", "1")


class ClickhouseDriver:
    """ClickHouse as a driver."""

    begin = ""
    transaction_level = ""

    def engine(self, dsn: str, **pool: Any) -> Engine:
        """Return an engine for `clickhouse://user:password@host:port/name?dial_timeout=5s`."""
        given = parse_clickhouse_dsn(dsn)
        from sqlalchemy import create_engine
        from sqlalchemy.dialects import registry

        from streamer.connectors.sql.clickhouse_dialect import ClickhouseDialect, NativeConnection

        module = ClickhouseDialect.__module__
        registry.register("clickhouse.native", module, ClickhouseDialect.__name__)
        return create_engine(
            "clickhouse+native://",
            creator=lambda: NativeConnection(**given),
            paramstyle="format",
            pool_pre_ping=True,
            **pool,
        )

    def to_raw(self, statement: str) -> str:
        """Put the driver's placeholders in the place of `$1` and of question marks."""
        return replace_placeholders(statement, "%s")

    def to_argument(self, value: Any) -> Any:
        """Return an argument as the driver has it: whole microseconds of times."""
        if isinstance(value, Timestamp):
            return datetime.fromtimestamp(value.ns // _SECOND_NS, UTC).replace(
                microsecond=value.ns % _SECOND_NS // 1000
            )
        if isinstance(value, bool) or not isinstance(value, int | float):
            return value
        return int(value) if isinstance(value, int) else float(value)

    def from_value(self, value: Any) -> Any:
        """Return what a row holds as a Bloblang value."""
        if value is None or isinstance(value, str | int | float):
            return value
        if isinstance(value, bytes):
            return value.decode(errors="replace")
        if isinstance(value, datetime):
            # Of a column without a zone it is a time of this machine.
            moment = value.astimezone(UTC) if value.tzinfo is None else value
            return moment.isoformat().replace("+00:00", "Z")
        if isinstance(value, date):
            return f"{value.isoformat()}T00:00:00Z"
        if isinstance(value, Decimal):
            return str(value)
        if isinstance(value, dict):
            return {str(key): self.from_value(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [*map(self.from_value, value)]
        return str(value)

    def run_script(self, connection: Connection, text: str) -> None:
        """Run one statement: the server takes no more."""
        connection.exec_driver_sql(text, execution_options={"no_parameters": True})

    def error_text(self, error: BaseException) -> str:
        """Return what the server says, in the words of clickhouse-go."""
        match = _CODE.fullmatch(str(error))
        if match is None:
            return " ".join(str(error).split())
        return f"code: {match[1]}, message: {' '.join(match[2].split())}"

    def is_value_error(self, error: BaseException) -> bool:
        """Return whether values are why: the driver has no class for those."""
        match = _CODE.fullmatch(str(error))
        if match is None:
            return False
        # The driver has the code of a fault of the program for what is no member of an Enum.
        return int(match[1]) in _VALUE_ERRORS or match[2].startswith("Unknown element")


def parse_clickhouse_dsn(dsn: str) -> dict[str, Any]:
    """Return the options of a client for a DSN of clickhouse-go.

    Raises:
        SqlError: it is none, or says what is not available here.
    """
    if dsn.startswith(("http://", "https://")):
        raise SqlError(
            "clickhouse: HTTP is not available; name the native port: clickhouse://…:9000"
        )
    match = _DSN.fullmatch(dsn)
    if match is None:
        raise SqlError("clickhouse: the DSN is not as clickhouse://user:password@host:port/name")
    more = dict(parse_qsl(match["more"] or "", keep_blank_values=True))
    secure = more.pop("secure", "false") in _TRUE
    hosts = (match["hosts"] or "127.0.0.1").split(",")
    if alternatives := more.pop("alt_hosts", ""):
        hosts += alternatives.split(",")
    places = [host if re.search(r":\d+$", host) else f"{host}:{_port(secure)}" for host in hosts]
    for place in places:
        if problem := address_problem(place):
            raise SqlError(f"clickhouse: the DSN {problem}")
    host, _, port = places[0].rpartition(":")
    given: dict[str, Any] = {
        "host": host.strip("[]"),
        "port": int(port),
        "user": unquote(match["user"] or more.pop("username", "default")),
        "password": unquote(match["password"] or more.pop("password", "")),
        "database": unquote(match["name"] or more.pop("database", "default")),
        "secure": secure,
        "verify": more.pop("skip_verify", "false") not in _TRUE,
        "connect_timeout": _seconds(more.pop("dial_timeout", ""), _CONNECT_TIMEOUT_S),
        "send_receive_timeout": _seconds(more.pop("read_timeout", ""), _READ_TIMEOUT_S),
    }
    if places[1:]:
        given["alt_hosts"] = ",".join(places[1:])
    settings = {name: value for name, value in more.items() if name not in _NO_EFFECT}
    # Times of columns without a zone are read as this machine's, with no doubt in the night when
    # the clock goes back: Python notes which of the two hours it is.
    given["settings"] = {**settings, "use_client_time_zone": True}
    return given


def _port(secure: bool) -> int:
    return _SECURE_PORT if secure else _PORT


def _seconds(text: str, default: float) -> float:
    return max(parse_duration(text) / _SECOND_NS, 1e-3) if text else default
