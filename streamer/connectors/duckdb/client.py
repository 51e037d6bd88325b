"""The door to the process of a query: it is started when it is first needed, and after its end."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from typing import Any, Final, NamedTuple

import pyarrow as pa

from streamer.connectors.duckdb.errors import QueryError
from streamer.connectors.duckdb.frames import receive_frame, send_frame
from streamer.connectors.duckdb.query_text import BATCH, QueryText, TableUse
from streamer.connectors.duckdb.session import SessionSettings, memory_error, time_error

_START_TIMEOUT_S: Final = 60.0
_GRACE_S: Final = 2.0
"""How long a query may go on after its interruption before its process is ended."""

_END_TIMEOUT_S: Final = 5.0
_SERVER: Final = "streamer.connectors.duckdb.server"


class QueryRows(NamedTuple):
    """The rows that a query gives.

    Attributes:
        table: the rows.
        json_columns: the places of columns whose texts are JSON.
    """

    table: pa.Table
    json_columns: list[int]


class QueryProcess:
    """The process of one query. Threads may share it; one at a time is answered."""

    def __init__(self, settings: SessionSettings, seconds: float) -> None:
        """Take the query; nothing is started yet.

        Args:
            settings: of its session.
            seconds: how long one run of it may take.
        """
        self._settings = settings
        self._seconds = seconds
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: socket.socket | None = None
        self._owner = 0
        self._text: QueryText | None = None
        self._tables: dict[str, Any] = {}

    def load_query_text(self) -> QueryText:
        """Return what the query says, which DuckDB's parser has found there.

        Raises:
            QueryError: it is no query.
        """
        with self._lock:
            if self._text is None:
                self._start()
            assert self._text is not None
            return self._text

    def run(self, rows: pa.RecordBatch, tables: dict[str, tuple[Any, pa.Table]]) -> QueryRows:
        """Run the query over a batch.

        Args:
            rows: the batch.
            tables: further tables by name: what tells a version of one from another, and its rows.

        Raises:
            QueryError: it cannot be run.
        """
        with self._lock:
            header, body = self._request_rows("run", rows, tables)
        table = pa.ipc.open_stream(pa.py_buffer(body)).read_all()
        return QueryRows(table, header["json_columns"])

    def explain(self, rows: pa.RecordBatch, tables: dict[str, tuple[Any, pa.Table]]) -> str:
        """Return DuckDB's plan of the query for a batch; see `run`."""
        with self._lock:
            header, _ = self._request_rows("explain", rows, tables)
        return str(header["plan"])

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    @property
    def process_id(self) -> int | None:
        """The id of the process, as long as it runs."""
        return None if self._process is None else self._process.pid

    def _request_rows(
        self, do: str, rows: pa.RecordBatch, tables: dict[str, tuple[Any, pa.Table]]
    ) -> tuple[dict[str, Any], bytearray]:
        self._start()
        for name, (version, table) in tables.items():
            if self._tables.get(name) is not version:
                self._request({"do": "table", "name": name}, _encode(table))
                self._tables[name] = version
        header = {"do": do, "batch": BATCH, "seconds": self._seconds}
        return self._request(header, _encode(rows))

    def _start(self) -> None:
        if self._owner != os.getpid():
            # Of the process that this one was forked from.
            self._process = self._connection = None
        if self._process is not None and self._process.poll() is not None:
            self._end()
        if self._process is not None:
            return
        ours, theirs = socket.socketpair()
        # The environment of a worker may hold secrets, which a query could look for.
        environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "LANG": "C.UTF-8"}
        if libraries := os.environ.get("LD_LIBRARY_PATH"):
            environment["LD_LIBRARY_PATH"] = libraries
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", _SERVER],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment,
            )
        except OSError as error:
            ours.close()
            raise QueryError(f"the process of the query cannot be started: {error}") from None
        finally:
            theirs.close()
        self._connection, self._owner, self._tables = ours, os.getpid(), {}
        settings = self._settings._asdict()
        request = {"do": "open", "settings": settings}
        try:
            answer, _ = self._request(request, timeout=_START_TIMEOUT_S)
        except QueryError:
            self._end()
            raise
        tables = tuple(TableUse(*table) for table in answer["tables"])
        names = None if answer["names"] is None else frozenset(answer["names"])
        self._text = QueryText(tables, names)

    def _request(
        self, header: dict[str, Any], body: Any = b"", timeout: float | None = None
    ) -> tuple[dict[str, Any], bytearray]:
        connection = self._connection
        assert connection is not None
        connection.settimeout(self._seconds + _GRACE_S if timeout is None else timeout)
        try:
            send_frame(connection, header, body)
            answer, content = receive_frame(connection)
        except TimeoutError:
            self._end()
            raise time_error(self._seconds) from None
        except (EOFError, OSError):
            raise self._explain_end() from None
        except BaseException:
            # What is still to be read would be taken for the next answer.
            self._end()
            raise
        if "error" in answer:
            raise QueryError(answer["error"], answer["line"], answer["column"])
        return answer, content

    def _explain_end(self) -> QueryError:
        """Return why the process has ended in the middle of a request."""
        process = self._process
        assert process is not None
        try:
            code = process.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            code = 0
        self._end()
        text = str(memory_error(self._settings.memory_bytes))
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return QueryError(f"the process of the query has ended ({how}), most likely since {text}")

    def _end(self) -> None:
        process, connection = self._process, self._connection
        self._process = self._connection = None
        if connection is not None:
            connection.close()
        if process is not None and self._owner == os.getpid():
            process.kill()
            process.wait(_END_TIMEOUT_S)

    def __del__(self) -> None:
        self._end()


def _encode(rows: pa.RecordBatch | pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as out:
        out.write(rows)
    return sink.getvalue()
