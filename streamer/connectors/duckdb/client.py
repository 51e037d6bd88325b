"""The door to the process of a query: it is started when it is first needed, and after its end."""

from __future__ import annotations

import threading
from typing import Any, Final, NamedTuple

import pyarrow as pa

from streamer.connectors.duckdb.child_process import (
    ChildEndedError,
    ChildProcess,
    ChildTimeoutError,
)
from streamer.connectors.duckdb.errors import QueryError
from streamer.connectors.duckdb.query_text import BATCH, QueryText, TableUse
from streamer.connectors.duckdb.session import SessionSettings, memory_error, time_error

_START_TIMEOUT_S: Final = 60.0
_GRACE_S: Final = 2.0
"""How long a query may go on after its interruption before its process is ended."""

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
        self._child = ChildProcess(_SERVER)
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
            self._child.end()

    @property
    def process_id(self) -> int | None:
        """The id of the process, as long as it runs."""
        return self._child.process_id

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
        if not self._child.start():
            return
        self._tables = {}
        request = {"do": "open", "settings": self._settings._asdict()}
        try:
            answer, _ = self._request(request, timeout=_START_TIMEOUT_S)
        except QueryError:
            self._child.end()
            raise
        tables = tuple(TableUse(*table) for table in answer["tables"])
        names = None if answer["names"] is None else frozenset(answer["names"])
        self._text = QueryText(tables, names)

    def _request(
        self, header: dict[str, Any], body: Any = b"", timeout: float | None = None
    ) -> tuple[dict[str, Any], bytearray]:
        seconds = self._seconds + _GRACE_S if timeout is None else timeout
        try:
            answer, content = self._child.request(header, body, seconds=seconds)
        except ChildTimeoutError:
            raise time_error(self._seconds) from None
        except ChildEndedError as ended:
            text = str(memory_error(self._settings.memory_bytes))
            raise QueryError(
                f"the process of the query has ended ({ended.how}), most likely since {text}"
            ) from None
        if "error" in answer:
            raise QueryError(answer["error"], answer["line"], answer["column"])
        return answer, content


def _encode(rows: pa.RecordBatch | pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as out:
        out.write(rows)
    return sink.getvalue()
