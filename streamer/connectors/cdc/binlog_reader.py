"""Reading the binary log of MySQL and MariaDB in a thread of its own.

The library waits for events without an end; what comes is taken from a queue, so that the reader
knows when there is nothing more for the moment.
"""

from __future__ import annotations

import queue
import secrets
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from streamer.connectors.cdc.change_writer import DELETE, INSERT, UPDATE
from streamer.connectors.cdc.mysql_tables import MysqlError, mysql_errors
from streamer.connectors.cdc.mysql_values import load_document, load_value, shorten_float

_QUEUED_EVENTS: Final = 256
_HEARTBEAT_S: Final = 1.0
_READ_TIMEOUT_S: Final = 30
_PUT_TIMEOUT_S: Final = 0.5
_PURGED: Final = 1236

_COMPRESSED: Final = frozenset({40, *range(166, 172)})
"""Kinds of events that have rows in a form which the library does not know."""
_ROW_EVENTS: Final = {
    "WriteRowsEvent": (INSERT, "values", "none_sources"),
    "UpdateRowsEvent": (UPDATE, "after_values", "after_none_sources"),
    "DeleteRowsEvent": (DELETE, "values", "none_sources"),
}
"""By the library's name of an event: the operation, and where its rows have what."""


class BinlogPosition(NamedTuple):
    """A place in the binary log: a file, and the offset in it."""

    file: str
    offset: int

    def __str__(self) -> str:
        return f"{self.file}:{self.offset}"


class BinlogRows(NamedTuple):
    """Rows of a table that one event has changed.

    Attributes:
        end: the position behind the event.
        table: the table's name.
        operation: what became of them.
        rows: as they are after it, or were before a delete.
    """

    end: BinlogPosition
    table: str
    operation: str
    rows: Sequence[Mapping[str, Any]]


class BinlogBoundary(NamedTuple):
    """A position between two transactions.

    Attributes:
        end: the position.
        is_file: whether a file begins there.
    """

    end: BinlogPosition
    is_file: bool


BinlogItem = BinlogRows | BinlogBoundary


class BinlogReader:
    """Reads from a position until the connection is lost."""

    def __init__(
        self, settings: Mapping[str, Any], tables: Sequence[str], start: BinlogPosition
    ) -> None:
        """Begin to read.

        Args:
            settings: PyMySQL's.
            tables: the tables of the settings' database.
            start: a position between two events.
        """
        self._queue: queue.Queue[BinlogItem | MysqlError] = queue.Queue(_QUEUED_EVENTS)
        self._is_closed = threading.Event()
        self._start = start
        self._connections: list[Any] = []
        self._stream = self._make_stream(settings, tables)
        self._thread = threading.Thread(target=self._run, daemon=True, name="binlog")
        self._thread.start()

    def _make_stream(self, settings: Mapping[str, Any], tables: Sequence[str]) -> Any:
        from pymysqlreplication import BinLogStreamReader, event, row_event

        rows = (row_event.WriteRowsEvent, row_event.UpdateRowsEvent, row_event.DeleteRowsEvent)
        given = {**settings, "read_timeout": _READ_TIMEOUT_S}
        return BinLogStreamReader(
            connection_settings=given,
            # Whoever reads the log of a server has a number of its own.
            server_id=secrets.randbelow((1 << 31) - 2) + (1 << 31),
            resume_stream=True,
            blocking=True,
            log_file=self._start.file,
            log_pos=self._start.offset,
            only_events=[
                *rows,
                event.QueryEvent,
                event.XidEvent,
                event.RotateEvent,
                event.HeartbeatLogEvent,
                event.NotImplementedEvent,
            ],
            filter_non_implemented_events=False,
            only_schemas=[settings["database"]],
            only_tables=list(tables),
            slave_heartbeat=_HEARTBEAT_S,
            enable_logging=False,
            pymysql_wrapper=self._connect,
        )

    def _connect(self, **settings: Any) -> Any:
        """Connect for the library: once for events, and once for queries.

        Raises:
            OSError: it wants to go on by itself, at a place of which only it knows.
        """
        import pymysql

        if len(self._connections) == 2:
            raise ConnectionError("the connection is lost")
        made = pymysql.connect(**settings)
        self._connections.append(made)
        return made

    def take(self, seconds: float) -> BinlogItem | None:
        """Return what comes next; None when nothing comes for a while.

        Raises:
            MysqlError: the connection is lost.
        """
        try:
            item = self._queue.get(timeout=seconds) if seconds else self._queue.get_nowait()
        except queue.Empty:
            return None
        if isinstance(item, MysqlError):
            raise item
        return item

    def close(self) -> None:
        """Close the connections, and end the thread."""
        self._is_closed.set()
        self._thread.join(_HEARTBEAT_S * 5)
        for connection in self._connections:
            if connection.open:
                connection._force_close()

    def _run(self) -> None:
        try:
            with mysql_errors():
                while not self._is_closed.is_set():
                    event = self._stream.fetchone()
                    if event is None:
                        raise MysqlError("the server has ended the connection")
                    if (item := self._make_item(event)) is not None:
                        self._put(item)
        except MysqlError as e:
            text = str(e)
            if text.startswith(f"Error {_PURGED}"):
                text = (
                    f"the binary log is not there any more from {self._start} on, where the "
                    f"checkpoint ends ({text}): the changes since then cannot be read; begin with "
                    "a new checkpoint"
                )
            self._put(MysqlError(text))
        except Exception as e:  # whatever the library meets in what a server sends
            self._put(MysqlError(f"the server has sent what is no event: {type(e).__name__}: {e}"))

    def _put(self, item: BinlogItem | MysqlError) -> None:
        while not self._is_closed.is_set():
            try:
                return self._queue.put(item, timeout=_PUT_TIMEOUT_S)
            except queue.Full:
                continue

    def _make_item(self, event: Any) -> BinlogItem | None:
        name = type(event).__name__
        end = BinlogPosition(self._stream.log_file, self._stream.log_pos)
        if name == "RotateEvent":
            return BinlogBoundary(BinlogPosition(event.next_binlog, event.position), True)
        if name == "XidEvent":
            return BinlogBoundary(end, False)
        if name == "QueryEvent":
            query = event.query.decode() if isinstance(event.query, bytes) else event.query
            is_end = query.strip().upper() in ("COMMIT", "ROLLBACK")
            return BinlogBoundary(end, False) if is_end else None
        if name == "NotImplementedEvent":
            if event.event_type in _COMPRESSED:
                raise MysqlError(
                    "the binary log has compressed transactions, which cannot be read; set "
                    "log_bin_compress or binlog_transaction_compression to OFF"
                )
            return None
        if name == "HeartbeatLogEvent":
            return None
        if any(column.name is None for column in event.columns):
            raise MysqlError(
                f"the binary log before {end} has no names of columns of {event.table}, since it "
                "was written without binlog_row_metadata = FULL; begin with a new checkpoint"
            )
        operation, key, sources = _ROW_EVENTS[name]
        columns = {column.name: column for column in event.columns}
        rows = [
            {
                column: _load(columns[column], value, row[sources].get(column))
                for column, value in row[key].items()
            }
            for row in event.rows
        ]
        return BinlogRows(end, event.table, operation, rows)


def _load(column: Any, value: Any, source: Any) -> Any:
    """Return a value of a row of the binary log as JSON has it."""
    from pymysqlreplication.constants import FIELD_TYPE

    kind = column.type
    if kind == FIELD_TYPE.SET:
        if value is None:
            return [] if source == "empty set" else None
        return [one for one in column.set_values if one in value]
    if value is None:
        return None
    if kind == FIELD_TYPE.FLOAT:
        return shorten_float(value)
    if kind == FIELD_TYPE.BIT:
        return int(value, 2)
    if kind == FIELD_TYPE.JSON:
        return load_document(value)
    return load_value(value)
