"""A session of `postgres_cdc`: the slot, the snapshot, and the stream of changes.

The mark of the spool is one of

- `{slot, begun}`: the slot may be there, and nothing of it was read;
- `{slot, lsn, done, table, key}`: a part of the snapshot is on the disk, and changes will be read
  from the LSN on;
- `{slot, lsn, commit, changes}`: all before the LSN is on the disk, and so many messages of the
  transaction that has its commit there, the begin among them.

The server is told of an LSN when the mark that has it is on the disk, so that a slot which is ahead
of the mark says that the checkpoint is an older copy. pgoutput gives the changes of a transaction
in the same order whenever it is read again.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from streamer.connectors.cdc.change_writer import (
    BEGIN,
    COMMIT,
    DELETE,
    INSERT,
    OPERATION,
    TABLE,
    TRUNCATE,
    UPDATE,
    ChangeWriter,
    StreamEndedError,
)
from streamer.connectors.cdc.pgoutput import (
    TEXT,
    UNCHANGED,
    Begin,
    Cell,
    Commit,
    PgoutputError,
    Relation,
    Row,
    RowChange,
    Truncate,
    format_lsn,
    parse_change,
)
from streamer.connectors.cdc.postgres_connection import (
    PostgresConnection,
    PostgresError,
    quote_name,
    quote_text,
)
from streamer.connectors.cdc.postgres_tables import (
    PostgresTable,
    Table,
    create_slot,
    ensure_publication,
    find_slot,
    publication_name,
)
from streamer.connectors.cdc.postgres_values import load_value
from streamer.connectors.cdc.snapshot import DONE, read_snapshot
from streamer.connectors.spool.reconnecting_receiver import Session

LSN: Final = "lsn"
COMMITTED: Final = "commit_ts_ms"
BEFORE: Final = "before"

_WAIT_S: Final = 0.25
_IDLE_BYTES: Final = 16 << 20
"""Bytes of the log that have nothing for this slot, after which they are confirmed."""
_POSTGRES_EPOCH_US: Final = 946_684_800_000_000
_OPERATIONS: Final = {"I": INSERT, "U": UPDATE, "D": DELETE}
_STATUS: Final = struct.Struct(">cQQQqB")
_DATA: Final = struct.Struct(">cQQq")
_KEEPALIVE: Final = struct.Struct(">cQqB")


@dataclass(frozen=True)
class PostgresOptions:
    """The fields that a session goes by.

    Attributes:
        settings: libpq's.
        slot: the name of the slot.
        is_temporary: whether the slot goes with the connection.
        tables: what is read; all when there are none.
        has_snapshot: whether rows that are there before are read.
        snapshot_rows: rows that are read at once.
        status_s: seconds between two reports to the server.
        has_markers: whether begins and commits are messages.
        unchanged: the value in the place of one that the server does not send.
    """

    settings: Mapping[str, str]
    slot: str
    is_temporary: bool
    tables: Sequence[Table]
    has_snapshot: bool
    snapshot_rows: int
    status_s: float
    has_markers: bool
    unchanged: Any


class PostgresSession:
    """Reads from one connection until it is lost or the stream stops."""

    def __init__(self, options: PostgresOptions, session: Session) -> None:
        """Take the options, and the session of which the spool is."""
        self._options = options
        self._session = session
        self._writer = ChangeWriter(session)
        # What a temporary slot gives is no position for another start.
        self._slot_mark = {"slot": "" if options.is_temporary else options.slot}

    def run(self) -> None:
        """Read, until the stream stops.

        Raises:
            PostgresError: the connection is lost, or the server refuses.
        """
        replication = PostgresConnection(self._options.settings, is_replicating=True)
        try:
            start = self._prepare(replication)
            if not self._session.is_connected:
                self._session.set_connected()
            _ChangeReader(self._options, self._session, self._writer, replication, start).run()
        except StreamEndedError:
            return
        finally:
            replication.close()

    def _prepare(self, replication: PostgresConnection) -> int:
        """Have a slot, and the snapshot on the disk; return where changes are read from."""
        options = self._options
        connection = PostgresConnection(options.settings)
        try:
            ensure_publication(connection, publication_name(options.slot), options.tables)
            if options.is_temporary:
                start, snapshot = create_slot(replication, options.slot, is_temporary=True)
                return self._take_snapshot(connection, start, snapshot, {})
            mark = self._writer.mark or {}
            if mark.get("slot") != options.slot:
                mark = {}
            slot = find_slot(connection, options.slot)
            if slot is None:
                if LSN in mark:
                    raise PostgresError(self._gap_text("is gone", mark[LSN]))
                # Whoever finds the slot later must know whether it has been read.
                self._writer.write({**self._slot_mark, "begun": True})
                start, snapshot = create_slot(replication, options.slot, is_temporary=False)
                return self._take_snapshot(connection, start, snapshot, {})
            if LSN not in mark:
                if mark.get("begun"):
                    return self._take_snapshot(connection, slot.confirmed, "", {})
                self._log_slot(slot.confirmed)
                self._write_position(slot.confirmed)
                return slot.confirmed
            if slot.confirmed > mark[LSN]:
                at = format_lsn(slot.confirmed)
                raise PostgresError(self._gap_text(f"was read up to {at} already", mark[LSN]))
            if DONE in mark:
                return self._take_snapshot(connection, mark[LSN], "", mark)
            start = mark[LSN]
            return int(start)
        finally:
            connection.close()

    def _gap_text(self, why: str, lsn: int) -> str:
        return (
            f"the slot {self._options.slot} {why}, and the checkpoint has changes up to "
            f"{format_lsn(lsn)} only: those between cannot be read any more; begin with a new "
            "checkpoint, and another slot_name or a dropped slot"
        )

    def _log_slot(self, lsn: int) -> None:
        self._session.context.log(
            "INFO",
            f"The slot {self._options.slot} is there already: its changes are read from "
            f"{format_lsn(lsn)} on, without a snapshot",
            {},
        )

    def _write_position(self, lsn: int) -> None:
        self._writer.write({**self._slot_mark, LSN: lsn, "commit": 0, "changes": 0})

    def _take_snapshot(
        self, connection: PostgresConnection, start: int, snapshot: str, mark: Mapping[str, Any]
    ) -> int:
        """Spool the rows that are there, and return where changes are read from.

        Args:
            connection: for queries.
            start: the LSN at which the slot begins.
            snapshot: the name of the snapshot there. Empty for one of now: changes between are
                read twice, as a part of rows and as changes, and the changes come last.
            mark: what is on the disk already of the rows.
        """
        options = self._options
        if options.has_snapshot and options.tables:
            connection.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            if snapshot:
                connection.run(f"SET TRANSACTION SNAPSHOT {quote_text(snapshot)}")
            self._session.set_connected()
            tables = [
                PostgresTable(connection, table, options.snapshot_rows) for table in options.tables
            ]
            context = self._session.context
            position = {**self._slot_mark, LSN: start}
            read_snapshot(tables, self._writer, mark, position, lambda: context.stopping)
            connection.run("COMMIT")
        self._write_position(start)
        return start


class _ChangeReader:
    """Reads changes from an LSN on."""

    def __init__(
        self,
        options: PostgresOptions,
        session: Session,
        writer: ChangeWriter,
        replication: PostgresConnection,
        start: int,
    ) -> None:
        self._options = options
        self._session = session
        self._writer = writer
        self._replication = replication
        mark = {} if options.is_temporary else writer.mark
        # The transaction of which a part is on the disk, and how many changes that is.
        self._known = (mark.get("commit", 0), mark.get("changes", 0))
        self._confirmed = start
        self._seen = start
        # Where the mark would be with all that was read.
        self._position = (start, *self._known)
        self._slot_mark = {"slot": "" if options.is_temporary else options.slot}
        self._relations: dict[int, Relation] = {}
        self._is_open = False
        self._committed = ""
        self._skipped = 0

    def run(self) -> None:
        """Read until the stream stops.

        Raises:
            PostgresError: the connection is lost.
            StreamEndedError: the stream stops.
        """
        slot, start = self._options.slot, format_lsn(self._confirmed)
        publication = quote_text(quote_name(publication_name(slot)))
        self._replication.run(
            f"START_REPLICATION SLOT {quote_name(slot)} LOGICAL {start} "
            f"(proto_version '1', publication_names {publication})"
        )
        reported = time.monotonic()
        while not self._session.context.stopping:
            data = self._replication.receive(_WAIT_S if self._writer.is_empty else 0)
            if data is not None:
                try:
                    self._take(data)
                except PgoutputError as e:
                    raise PostgresError(f"the server has sent {e}") from None
            if self._writer.is_full or data is None:
                self._write()
            if time.monotonic() - reported >= self._options.status_s:
                self._confirm_idle(_IDLE_BYTES)
                self._report()
                reported = time.monotonic()
        self._write()
        self._report()

    def _take(self, data: bytes) -> None:
        if data[:1] == b"w":
            _, lsn, _, _ = _DATA.unpack_from(data)
            self._seen = max(self._seen, lsn)
            self._take_change(lsn, data[_DATA.size :])
        elif data[:1] == b"k":
            _, end, _, is_urgent = _KEEPALIVE.unpack_from(data)
            self._seen = max(self._seen, end)
            if is_urgent:
                # A server that goes down waits until its log is confirmed to its end.
                self._write()
                self._confirm_idle(1)
                self._report()

    def _take_change(self, lsn: int, data: bytes) -> None:
        change = parse_change(data)
        if isinstance(change, Relation):
            self._relations[change.number] = change
        elif isinstance(change, Begin):
            self._is_open = True
            self._committed = str((change.committed + _POSTGRES_EPOCH_US) // 1000)
            commit, changes = self._known
            is_known = commit == change.lsn and changes > 0
            self._skipped = changes - 1 if is_known else 0
            self._position = (self._position[0], change.lsn, changes if is_known else 1)
            if self._options.has_markers and not is_known:
                self._add(None, lsn, BEGIN, "")
        elif isinstance(change, Commit):
            self._is_open = False
            if self._options.has_markers:
                self._add(None, lsn, COMMIT, "")
            self._position = (change.end, 0, 0)
        elif change is not None:
            self._take_rows(lsn, change)

    def _take_rows(self, lsn: int, change: RowChange | Truncate) -> None:
        if self._skipped:
            self._skipped -= 1
            return
        if isinstance(change, Truncate):
            for number in change.relations:
                relation = self._relation(number)
                if self._is_read(relation):
                    self._add(None, lsn, TRUNCATE, relation.name)
        else:
            relation = self._relation(change.relation)
            if self._is_read(relation):
                self._add_row(lsn, change, relation)
        start, commit, changes = self._position
        self._position = (start, commit, changes + 1)

    def _relation(self, number: int) -> Relation:
        try:
            return self._relations[number]
        except KeyError:
            raise PgoutputError(f"a change of the table {number}, which it has not named") from None

    def _is_read(self, relation: Relation) -> bool:
        tables = self._options.tables
        return not tables or Table(relation.schema, relation.name) in tables

    def _add_row(self, lsn: int, change: RowChange, relation: Relation) -> None:
        whole = change.before if change.is_whole else None
        before = None if change.before is None else self._document(relation, change.before, None)
        after = None if change.after is None else self._document(relation, change.after, whole)
        more = {} if before is None else {BEFORE: before}
        document = before if after is None else after
        self._add(document, lsn, _OPERATIONS[change.operation], relation.name, **more)

    def _document(self, relation: Relation, row: Row, whole: Row | None) -> dict[str, Any]:
        if len(row) > len(relation.columns):
            raise PgoutputError(f"a row of more columns than the table {relation.name} has")
        document = {}
        for index, cell in enumerate(row):
            column = relation.columns[index]
            if cell.kind == UNCHANGED and whole is not None and index < len(whole):
                cell = whole[index]
            document[column.name] = self._value(column.type, cell)
        return document

    def _value(self, kind: int, cell: Cell) -> Any:
        if cell.kind == UNCHANGED:
            return self._options.unchanged
        return load_value(kind, cell.text) if cell.kind == TEXT else None

    def _add(self, document: Any, lsn: int, operation: str, table: str, **more: Any) -> None:
        known = {TABLE: table, OPERATION: operation, LSN: format_lsn(lsn)}
        self._writer.add(document, {**known, COMMITTED: self._committed, **more})

    def _write(self) -> None:
        if not self._writer.is_empty:
            self._write_position()

    def _write_position(self) -> None:
        lsn, commit, changes = self._position
        self._writer.write({**self._slot_mark, LSN: lsn, "commit": commit, "changes": changes})
        self._confirmed = max(self._confirmed, lsn)

    def _confirm_idle(self, least: int) -> None:
        """Move the position over a log that has nothing for this slot, if it is long enough."""
        reached = max(self._seen, self._position[0])
        if self._is_open or not self._writer.is_empty or reached - self._confirmed < least:
            return
        self._position = (reached, 0, 0)
        self._write_position()

    def _report(self) -> None:
        now = time.time_ns() // 1000 - _POSTGRES_EPOCH_US
        seen = max(self._seen, self._confirmed)
        status = _STATUS.pack(b"r", seen, self._confirmed, self._confirmed, now, 0)
        self._replication.send(status)
