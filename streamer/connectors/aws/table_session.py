"""Sessions of DynamoDB: a snapshot of a table, and the changes of tables.

The mark of the spool has the positions of shards, and how far the snapshot is. The positions are
taken before the snapshot begins: what changes meanwhile is read behind it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from streamer.connectors.aws.errors import AwsError
from streamer.connectors.aws.shard_reader import Positions, StreamReader
from streamer.connectors.aws.streams import ENDED, ShardPositions
from streamer.connectors.aws.table_scan import TableScan
from streamer.connectors.aws.table_streams import TABLES, TableStreams, table_of
from streamer.connectors.spool.reconnecting_receiver import (
    ConnectionLostError,
    Session,
    start_sessions,
)
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.core.errors import StreamerError
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.spec import ParsedFields

START_FROM: Final = "start_from"
SNAPSHOT_MODE: Final = "snapshot_mode"
SNAPSHOT_DEDUPLICATE: Final = "snapshot_deduplicate"

OLDEST: Final = "trim_horizon"
NO_SNAPSHOT: Final = "none"
SNAPSHOT_ONLY: Final = "snapshot_only"

_STREAMS: Final = "streams"
_SNAPSHOT: Final = "snapshot"


class TableInput:
    """An input before it is opened."""

    def __init__(self, parsed: ParsedFields, labels: Mapping[str, str]) -> None:
        """Take the fields, and the labels of log lines and counts."""
        self._parsed = parsed
        self._labels = labels

    def open(self, context: InputContext) -> SpoolSource:
        """Begin to read; return the source of what the spool holds."""

        def session(one: Session) -> None:
            try:
                _TableSession(self._parsed, one, self._labels).run()
            except AwsError as error:
                raise ConnectionLostError(str(error)) from None

        return start_sessions(context, "aws_dynamodb_cdc", self._labels, session)

    def probe(self) -> str:
        """Check that the tables and their streams are there."""
        streams = TableStreams(self._parsed, lambda stream, shard: None)
        try:
            if self._parsed[SNAPSHOT_MODE] == SNAPSHOT_ONLY:
                [table] = self._parsed[TABLES]
                streams.describe(table)
                return f"the table {table}"
            listed = streams.list_streams()
            count = sum(len(streams.list_shards(one)) for one in listed)
        finally:
            streams.close()
        return f"{count} shards of {len(listed)} tables"


class _ChangesLostError(StreamerError):
    """Changes behind a snapshot are gone: the snapshot is to be read again."""


class _TableSession:
    """One session."""

    def __init__(self, parsed: ParsedFields, session: Session, labels: Mapping[str, str]) -> None:
        self._parsed = parsed
        self._session = session
        self._labels = labels
        self._has_snapshot = parsed[SNAPSHOT_MODE] != NO_SNAPSHOT
        self._is_from_oldest = parsed[START_FROM] == OLDEST
        self._mark: dict[str, Any] = dict(session.store.mark or {})

    def run(self) -> None:
        """Read until the stream stops, or to the end of the snapshot.

        Raises:
            AwsError: a table or its stream is not there, or nothing answers.
        """
        while not self._session.context.stopping:
            if self._has_snapshot and not self._read_snapshot():
                return
            if self._parsed[SNAPSHOT_MODE] == SNAPSHOT_ONLY:
                return
            try:
                self._read_changes()
                return
            except _ChangesLostError as error:
                self._session.context.log("ERROR", str(error), self._labels)
                self._mark = {}
                if not self._session.write([], {}):
                    return

    def _read_snapshot(self) -> bool:
        """Read the rest of the snapshot; return whether it is on the disk."""
        [table] = self._parsed[TABLES]
        if self._mark.get(_SNAPSHOT, {}).get("table") != table:
            self._mark = {_STREAMS: self._first_positions(table), _SNAPSHOT: {"table": table}}
            if not self._session.write([], self._mark):
                return False
        scan = TableScan(self._parsed, table, self._session, self._mark[_SNAPSHOT])
        try:
            return scan.run(self._snapshot_mark)
        finally:
            scan.close()

    def _snapshot_mark(self, progress: Mapping[str, Any]) -> Any:
        self._mark = {**self._mark, _SNAPSHOT: dict(progress)}
        return self._mark

    def _first_positions(self, table: str) -> Positions:
        """Return where changes are read from behind the snapshot."""
        if self._parsed[SNAPSHOT_MODE] == SNAPSHOT_ONLY:
            return {}
        is_from_now = self._parsed[SNAPSHOT_DEDUPLICATE] or not self._is_from_oldest
        streams = TableStreams(self._parsed, lambda stream, shard: None)
        try:
            stream = streams.find_stream(table)
            positions = ShardPositions({})
            now_ms = time.time_ns() // 1_000_000 if is_from_now else None
            positions.update(streams.list_shards(stream), now_ms)
        finally:
            streams.close()
        return {stream: positions.positions}

    def _read_changes(self) -> None:
        saved: Positions = self._mark.get(_STREAMS, {})
        service = TableStreams(self._parsed, self._report_loss)
        reader = StreamReader(
            service,
            self._session,
            saved,
            lambda own: {**self._mark, _STREAMS: own},
            self._is_from_oldest,
        )
        try:
            self._check_streams(saved, service)
            reader.run()
        finally:
            reader.close()

    def _check_streams(self, saved: Positions, service: TableStreams) -> None:
        """Report streams that tables had before, and which are not read to their ends."""
        present = service.list_streams()
        tables = {table_of(stream) for stream in present}
        for stream in saved.keys() - present:
            for shard, position in saved[stream].items():
                if position != ENDED and table_of(stream) in tables:
                    self._report_loss(stream, shard)

    def _report_loss(self, stream: str, shard: str) -> None:
        text = f"The rest of {shard} of {table_of(stream)} is lost: DynamoDB keeps it no more"
        if self._has_snapshot:
            raise _ChangesLostError(f"{text}; the table is read again")
        self._session.context.log("ERROR", text, self._labels)
