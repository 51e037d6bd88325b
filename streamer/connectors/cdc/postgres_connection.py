"""Connections to PostgreSQL by libpq: for queries, and in its mode for replication.

psycopg has no words for replication, but the whole of libpq (`psycopg.pq`), which has.
"""

from __future__ import annotations

import select
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from streamer.connectors.tls import (
    CLIENT_CERTS,
    ENABLED,
    ROOT_CAS,
    ROOT_CAS_FILE,
    SKIP_CERT_VERIFY,
    TLS,
)
from streamer.core.errors import StreamerError
from streamer.core.redaction import redact_urls
from streamer.sdk.spec import ParsedFields

CONNECT_TIMEOUT_S: Final = 10
QUERY_TIMEOUT_S: Final = 300.0
_POLL_S: Final = 0.5
_NO_WORDS: Final = ("", "no error details available")
"""The texts of libpq and psycopg for what they have no words for."""

_SETTINGS: Final = (
    "SET datestyle = 'ISO, YMD'",
    "SET intervalstyle = 'postgres'",
    "SET timezone = 'UTC'",
    "SET bytea_output = 'hex'",
    "SET extra_float_digits = 3",
)
"""How values are written, so that the same row is the same text at every start."""


class PostgresError(StreamerError):
    """There is no connection, or the server refuses.

    Attributes:
        state: the SQLSTATE; empty where the connection is why.
    """

    def __init__(self, text: str, state: str = "") -> None:
        super().__init__(text)
        self.state = state


class ResultRows(NamedTuple):
    """The rows of a query, as texts.

    Attributes:
        columns: their names, and the numbers of their types.
        rows: a text or None for each column.
    """

    columns: Sequence[tuple[str, int]]
    rows: Sequence[Sequence[bytes | None]]

    def texts(self) -> list[list[str]]:
        """Return rows of which no value is null."""
        return [[(value or b"").decode(errors="replace") for value in row] for row in self.rows]


def quote_name(name: str) -> str:
    """Return a name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """Return a text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"


def connection_settings(dsn: str, tls: ParsedFields) -> dict[str, str]:
    """Return libpq's settings for a DSN and the field `tls`, which counts where it is enabled.

    Raises:
        PostgresError: the DSN cannot be understood.
    """
    import psycopg

    try:
        given = {name: str(value) for name, value in _parse_dsn(psycopg, dsn).items()}
    except psycopg.Error:
        raise PostgresError(
            "the field dsn is no URL such as postgres://user:password@localhost:5432/name"
        ) from None
    given.setdefault("application_name", "streamer")
    # A server that is gone without a word is noticed within a minute.
    given |= {"keepalives_idle": "15", "keepalives_interval": "5", "tcp_user_timeout": "60000"}
    given["client_encoding"] = "UTF8"
    if tls[ENABLED]:
        given |= _tls_settings(tls)
    return given


def _parse_dsn(psycopg: Any, dsn: str) -> Mapping[str, Any]:
    parsed: Mapping[str, Any] = psycopg.conninfo.conninfo_to_dict(dsn)
    return parsed


def _tls_settings(tls: ParsedFields) -> dict[str, str]:
    given = {"sslmode": "require" if tls[SKIP_CERT_VERIFY] else "verify-full"}
    if not tls[SKIP_CERT_VERIFY]:
        file = tls[ROOT_CAS_FILE]
        given["sslrootcert"] = tls.permissions.file(file) if file else "system"
    for cert in tls[CLIENT_CERTS][:1]:
        named = cert.permissions.file
        given |= {"sslcert": named(cert["cert_file"]), "sslkey": named(cert["key_file"])}
        if cert["password"]:
            given["sslpassword"] = cert["password"]
    return given


def postgres_tls_problems(parsed: ParsedFields) -> Any:
    """Return what libpq cannot do of a field `tls`, for a spec's `check`."""
    tls = parsed[TLS]
    if tls[ROOT_CAS]:
        yield f"{TLS}.{ROOT_CAS}", "is not taken by libpq; name a file by root_cas_file"
    if len(tls[CLIENT_CERTS]) > 1:
        yield f"{TLS}.{CLIENT_CERTS}", "has several certificates, of which libpq shows one only"
    if any(not cert["cert_file"] for cert in tls[CLIENT_CERTS]):
        yield f"{TLS}.{CLIENT_CERTS}", "has a text, which libpq does not take; name files"


def _poll(socket: int, event: int, seconds: float) -> None:
    # `select` takes no number above 1,023, and a driver may have more files open.
    poll = select.poll()
    poll.register(socket, event)
    poll.poll(seconds * 1000)


def _split_hosts(settings: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the settings for each of several hosts, which are tried one after the other."""
    hosts, ports = (settings.get(name, "").split(",") for name in ("host", "port"))
    if len(hosts) == 1:
        return [dict(settings)]
    ports = ports * len(hosts) if len(ports) == 1 else ports
    return [
        {**settings, "host": host, "port": port} for host, port in zip(hosts, ports, strict=False)
    ]


class PostgresConnection:
    """A connection, of which one thread makes use."""

    def __init__(self, settings: Mapping[str, str], *, is_replicating: bool = False) -> None:
        """Connect.

        Args:
            settings: libpq's.
            is_replicating: whether commands of the replication protocol are understood.

        Raises:
            PostgresError: there is no connection.
        """
        from psycopg import pq

        self._pq = pq
        self._is_replicating = is_replicating
        more = {"replication": "database"} if is_replicating else {}
        attempts = _split_hosts({**settings, **more})
        for number, attempt in enumerate(attempts, 1):
            try:
                self._connection = self._connect(attempt)
                break
            except PostgresError:
                if number == len(attempts):
                    raise
        self._connection.nonblocking = 1
        self._connection.notice_handler = None
        try:
            for statement in _SETTINGS:
                self.run(statement)
        except PostgresError:
            self.close()
            raise

    def _connect(self, settings: Mapping[str, str]) -> Any:
        """Connect to one host; libpq's own function would stop all threads meanwhile."""
        from psycopg.conninfo import make_conninfo

        pq = self._pq
        given = settings.get("connect_timeout", "")
        seconds = int(given) if given.isdecimal() else 0
        deadline = time.monotonic() + (seconds or CONNECT_TIMEOUT_S)
        made = pq.PGconn.connect_start(make_conninfo("", **settings).encode())
        events = {pq.PollingStatus.READING: select.POLLIN, pq.PollingStatus.WRITING: select.POLLOUT}
        state = pq.PollingStatus.WRITING
        while made.status != pq.ConnStatus.BAD and state != pq.PollingStatus.OK:
            if time.monotonic() > deadline:
                made.finish()
                raise PostgresError("the server has not answered in time")
            _poll(made.socket, events[state], _POLL_S)
            state = made.connect_poll()
            if state == pq.PollingStatus.FAILED:
                break
        if made.status != pq.ConnStatus.OK:
            text = self._clean(made.get_error_message())
            made.finish()
            raise PostgresError(text)
        return made

    @property
    def server_version(self) -> int:
        """The server's version, such as 150004 for 15.4."""
        return int(self._connection.server_version)

    def close(self) -> None:
        """Close the connection."""
        self._connection.finish()

    def run(self, statement: str, arguments: Sequence[bytes] = ()) -> ResultRows:
        """Return the rows of a statement.

        Args:
            statement: one, with `$1` and so on for the arguments.
            arguments: texts, whose types the server infers; none for replication.

        Raises:
            PostgresError: it fails, or the server does not answer.
        """
        result = self._execute(statement, arguments)
        columns = [
            ((result.fname(n) or b"").decode(errors="replace"), result.ftype(n))
            for n in range(result.nfields)
        ]
        rows = [
            [result.get_value(row, n) for n in range(result.nfields)]
            for row in range(result.ntuples)
        ]
        return ResultRows(columns, rows)

    def _execute(self, statement: str, arguments: Sequence[bytes]) -> Any:
        pq = self._pq
        try:
            if self._is_replicating:
                self._connection.send_query(statement.encode())
            else:
                self._connection.send_query_params(statement.encode(), list(arguments) or None)
            deadline = time.monotonic() + QUERY_TIMEOUT_S
            self._flush(deadline)
            last: Any = None
            while True:
                while self._connection.is_busy():
                    self._wait(deadline)
                result = self._connection.get_result()
                if result is None:
                    return last
                last = result
                if result.status == pq.ExecStatus.COPY_BOTH:
                    return result
                if result.status not in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
                    raise self._result_error(result)
        except self._errors() as e:
            raise PostgresError(self._clean(str(e))) from None

    def _errors(self) -> Any:
        import psycopg

        return (psycopg.Error, OSError)

    def _result_error(self, result: Any) -> PostgresError:
        fields = self._pq.DiagnosticField
        primary = result.error_field(fields.MESSAGE_PRIMARY)
        state = (result.error_field(fields.SQLSTATE) or b"").decode()
        text = primary.decode(errors="replace") if primary else self._error_text()
        return PostgresError(self._clean(text), state)

    def _error_text(self) -> str:
        return self._clean(self._connection.get_error_message())

    @staticmethod
    def _clean(text: str) -> str:
        words = redact_urls(" ".join(text.split()))
        return "the connection is lost" if words in _NO_WORDS else words

    def _flush(self, deadline: float) -> None:
        while self._connection.flush():
            if time.monotonic() > deadline:
                raise PostgresError("the server has taken nothing for too long")
            _poll(self._connection.socket, select.POLLOUT, _POLL_S)

    def _wait(self, deadline: float) -> None:
        if time.monotonic() > deadline:
            raise PostgresError(f"the server has not answered within {QUERY_TIMEOUT_S:g} s")
        _poll(self._connection.socket, select.POLLIN, _POLL_S)
        self._connection.consume_input()

    def receive(self, seconds: float) -> bytes | None:
        """Return the next message of replication that has begun; None when none comes for a while.

        Args:
            seconds: how long to wait for one.

        Raises:
            PostgresError: the connection is lost, or the server ends the replication.
        """
        try:
            size, data = self._connection.get_copy_data(1)
            if size == 0:
                if seconds > 0:
                    _poll(self._connection.socket, select.POLLIN, seconds)
                self._connection.consume_input()
                size, data = self._connection.get_copy_data(1)
        except self._errors() as e:
            raise PostgresError(self._clean(str(e))) from None
        if size > 0:
            return bytes(data)
        if size < 0:
            result = self._connection.get_result()
            raise self._result_error(result) if result else PostgresError(self._error_text())
        return None

    def send(self, data: bytes) -> None:
        """Send a message of replication.

        Raises:
            PostgresError: the connection is lost.
        """
        try:
            self._connection.put_copy_data(data)
            self._flush(time.monotonic() + CONNECT_TIMEOUT_S)
        except self._errors() as e:
            raise PostgresError(self._clean(str(e))) from None
