"""PostgreSQL, by psycopg; values come and go as with Go's lib/pq.

Arguments are sent as texts whose types the server infers, so that a number may go into a column of
texts. Numbers, booleans and times of rows are values; all else (numeric, json, uuid, arrays, …) is
the text that the server sends.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from streamer.connectors.sql.errors import SqlError
from streamer.core.timestamps import Timestamp, format_rfc3339, parse_rfc3339
from streamer.core.value import format_float

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

_OFFSET: Final = re.compile(r"[+-]\d\d(:\d\d)?$")
_CONNECT_DEFAULTS: Final = {"connect_timeout": "10"}


def _format_time(raw: bytes) -> Any:
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


def _decode_bytes(raw: bytes) -> str:
    return bytes.fromhex(raw.decode().removeprefix("\\x")).decode(errors="replace")


# By the numbers that PostgreSQL gives its types.
_LOADS: Final[dict[int, Callable[[bytes], Any]]] = {
    16: lambda raw: raw == b"t",
    17: _decode_bytes,
    **dict.fromkeys((20, 21, 23), int),
    **dict.fromkeys((700, 701), float),
    **dict.fromkeys((1082, 1114, 1184), _format_time),
}


class PostgresDriver:
    """PostgreSQL as a driver."""

    begin = "BEGIN"
    transaction_level = ""

    def engine(self, dsn: str, **pool: Any) -> Engine:
        """Return an engine for a server by libpq's URL, or by its words (`host=… dbname=…`)."""
        import psycopg
        from sqlalchemy import create_engine

        try:
            # lib/pq wants TLS where nothing is said.
            given: dict[str, Any] = {"sslmode": "require", **_CONNECT_DEFAULTS}
            given |= psycopg.conninfo.conninfo_to_dict(dsn)
        except psycopg.Error as e:
            raise SqlError(self.error_text(e)) from None

        def connect() -> Any:
            # Statements of configs have the server's own placeholders.
            made = psycopg.connect(
                **given, autocommit=True, cursor_factory=psycopg.RawCursor, context=_make_adapters()
            )
            made.server_cursor_factory = psycopg.RawServerCursor
            return made

        engine = create_engine(
            "postgresql+psycopg://",
            creator=connect,
            isolation_level="AUTOCOMMIT",
            paramstyle="numeric_dollar",
            use_native_hstore=False,  # to ask for its number takes another kind of placeholders
            pool_pre_ping=True,
            **pool,
        )
        # Many rows are one statement.
        engine.dialect.use_insertmanyvalues_wo_returning = True
        return engine

    def to_raw(self, statement: str) -> str:
        """Return the statement: its placeholders are `$1`, `$2` and so on."""
        return statement

    def to_argument(self, value: Any) -> Any:
        """Return an argument as a text of no type, or None."""
        return _to_text(value)

    def from_value(self, value: Any) -> Any:
        """Return what a row holds, which is a value already."""
        return value

    def run_script(self, connection: Connection, text: str) -> None:
        """Run several statements."""
        connection.exec_driver_sql(text, execution_options={"no_parameters": True})

    def error_text(self, error: BaseException) -> str:
        """Return what the server says, or psycopg."""
        primary = getattr(getattr(error, "diag", None), "message_primary", None)
        return f"pq: {primary}" if primary else " ".join(str(error).split())

    def is_value_error(self, error: BaseException) -> bool:
        """Return whether values are why; the class of the failure says so."""
        return False


@cache
def _make_adapters() -> Any:
    """Return what makes values of what the server sends."""
    import psycopg
    from psycopg.adapt import AdaptersMap, Loader
    from psycopg.types.string import TextLoader

    def make_loader(load: Callable[[bytes], Any]) -> type[Loader]:
        class TextLoader(Loader):
            def load(self, data: Any) -> Any:
                return load(bytes(data))

        return TextLoader

    adapters = AdaptersMap(psycopg.adapters)
    for kind in psycopg.adapters.types:
        for oid in (kind.oid, kind.array_oid):
            adapters.register_loader(oid, TextLoader)
    for oid, load in _LOADS.items():
        adapters.register_loader(oid, make_loader(load))
    return adapters


def _to_text(value: Any) -> Any:
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
