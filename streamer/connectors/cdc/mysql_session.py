"""A session of `mysql_cdc`: the snapshot, and the stream of changes of the binary log.

The mark of the spool has

- `file` and `start`: a place between two transactions, from which the log is read;
- `offset`: the place behind the last event of which the rows are on the disk. It lies behind
  `start`, or in the transaction that begins there; events up to it are left out;
- while there is a snapshot, what of it is on the disk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from streamer.connectors.cdc.binlog_reader import (
    BinlogBoundary,
    BinlogItem,
    BinlogPosition,
    BinlogReader,
)
from streamer.connectors.cdc.change_writer import (
    OPERATION,
    TABLE,
    ChangeWriter,
    StreamEndedError,
)
from streamer.connectors.cdc.mysql_tables import MysqlConnection, MysqlTable, quote_name
from streamer.connectors.cdc.snapshot import DONE, read_snapshot
from streamer.connectors.spool.reconnecting_receiver import Session

POSITION: Final = "binlog_position"
_FILE: Final = "file"
_START: Final = "start"
_OFFSET: Final = "offset"
_WAIT_S: Final = 0.25


@dataclass(frozen=True)
class MysqlOptions:
    """The fields that a session goes by.

    Attributes:
        settings: PyMySQL's.
        tables: what is read.
        has_snapshot: whether rows that are there before are read.
        snapshot_rows: rows that are read at once.
    """

    settings: Mapping[str, Any]
    tables: Sequence[str]
    has_snapshot: bool
    snapshot_rows: int


class MysqlSession:
    """Reads from one connection until it is lost or the stream stops."""

    def __init__(self, options: MysqlOptions, session: Session) -> None:
        """Take the options, and the session of which the spool is."""
        self._options = options
        self._session = session
        self._writer = ChangeWriter(session)
        self._file, self._start, self._offset = "", 0, 0

    def run(self) -> None:
        """Read, until the stream stops.

        Raises:
            MysqlError: the connection is lost, or the server refuses.
        """
        try:
            self._prepare()
            start = BinlogPosition(self._file, self._start)
            reader = BinlogReader(self._options.settings, self._options.tables, start)
            try:
                self._read(reader)
            finally:
                reader.close()
        except StreamEndedError:
            return

    def _prepare(self) -> None:
        """Have a position, and the snapshot on the disk."""
        options = self._options
        connection = MysqlConnection(options.settings)
        try:
            connection.check_settings()
            tables = [
                MysqlTable(connection, name, options.snapshot_rows) for name in options.tables
            ]
            if not self._session.is_connected:
                self._session.set_connected()
            mark = self._writer.mark
            if mark is None:
                self._begin(connection, tables)
            elif DONE in mark:
                self._load_mark(mark)
                connection.run("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
                self._take_snapshot(tables, mark)
            else:
                self._load_mark(mark)
        finally:
            connection.close()

    def _load_mark(self, mark: Mapping[str, Any]) -> None:
        self._file, self._start, self._offset = mark[_FILE], mark[_START], mark[_OFFSET]

    def _begin(self, connection: MysqlConnection, tables: Sequence[MysqlTable]) -> None:
        """Begin where the log ends now, with the rows that are there."""
        if not self._options.has_snapshot:
            self._file, self._start = connection.find_position()
            self._offset = self._start
            self._writer.write(self._mark())
            return
        for table in tables:
            table.check_key()
        # Nobody writes into these tables between the snapshot and the position.
        locking = MysqlConnection(self._options.settings)
        try:
            names = ", ".join(quote_name(table.name) for table in tables)
            locking.run(f"FLUSH TABLES {names} WITH READ LOCK")
            connection.run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            connection.run("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
            self._file, self._start = locking.find_position()
            self._offset = self._start
        finally:
            locking.close()
        self._writer.write({**self._mark(), DONE: []})
        self._take_snapshot(tables, {})

    def _take_snapshot(self, tables: Sequence[MysqlTable], mark: Mapping[str, Any]) -> None:
        context = self._session.context
        read_snapshot(tables, self._writer, mark, self._mark(), lambda: context.stopping)
        self._writer.write(self._mark())

    def _mark(self) -> dict[str, Any]:
        return {_FILE: self._file, _START: self._start, _OFFSET: self._offset}

    def _read(self, reader: BinlogReader) -> None:
        context = self._session.context
        while not context.stopping:
            item = reader.take(_WAIT_S if self._writer.is_empty else 0)
            if item is not None:
                self._take(item)
            if self._writer.is_full or (item is None and not self._writer.is_empty):
                self._writer.write(self._mark())
        if not self._writer.is_empty:
            self._writer.write(self._mark())

    def _take(self, item: BinlogItem) -> None:
        file, offset = item.end
        if isinstance(item, BinlogBoundary):
            is_new = file != self._file
            if is_new:
                self._file, self._offset = file, offset
            self._start = offset
            self._offset = max(self._offset, offset)
            if is_new and item.is_file:
                # The server may delete the file before.
                self._writer.write(self._mark())
            return
        if file == self._file and offset <= self._offset:
            return
        for row in item.rows:
            self._writer.add(
                row, {OPERATION: item.operation, TABLE: item.table, POSITION: str(item.end)}
            )
        self._offset = offset
