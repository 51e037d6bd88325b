"""The rows of a joined table that a micro-batch brings, by key, in order of arrival."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from streamer.bloblang import compile_mapping
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.window.contract import Counters, Emission, LogLine
from streamer.window.keyed.delete_query import DeleteQuery
from streamer.window.keyed.late_messages import DroppedRow, KeylessMessages
from streamer.window.keyed.message_rows import FreshPack, make_message_row
from streamer.window.keyed.table_rows import RowVersion
from streamer.window.pack.message_columns import DecodedMetadata
from streamer.window.pack.metadata_codec import decode_meta
from streamer.window.settings.window_types import TableJoin

NULL_KEY: Final = b"null"
"""The key of messages and rows that have none: as in SQL, no two of them are equal."""
_NO_PAYLOADS: Final = frozenset((b"", b"null"))


def is_null_payload(payload: bytes) -> bool:
    """Return whether a payload says that there is no value: it is empty, or null."""
    return payload in _NO_PAYLOADS or payload.strip() in _NO_PAYLOADS


class TableChange(NamedTuple):
    """A row that the table gets.

    Attributes:
        arrival: its arrival number.
        watermark: the watermark before it, ns.
        version: the row; a tombstone where it removes the row of its key.
    """

    arrival: int
    watermark: int
    version: RowVersion


class TableChanges:
    """The changes of one micro-batch.

    Attributes:
        now: batch time, ns.
    """

    def __init__(self, kind: TableJoin, now: int) -> None:
        """Compile the query of removed rows.

        Args:
            kind: the join's settings.
            now: batch time, ns.
        """
        text = kind.delete_when
        self.now = now
        deletes = compile_mapping(text) if text else None
        self._delete_query = DeleteQuery(deletes, "rows", Execution(lambda: now))
        self._by_key: dict[bytes, list[TableChange]] = {}
        self._without_key = KeylessMessages("rows of the table", "their key is null")
        self._decoded: DecodedMetadata = {}

    def add_pack(self, loaded: FreshPack) -> int:
        """Add the rows of a pack; return how many have a key."""
        starts = loaded.pack.starts
        count = 0
        for group, key in enumerate(loaded.pack.keys):
            rows = range(starts[group], starts[group + 1])
            if key == NULL_KEY:
                arrivals, _ = loaded.arrivals_and_times
                self._without_key += [DroppedRow(arrivals[row], loaded, row) for row in rows]
                continue
            changes = self._by_key.setdefault(key, [])
            changes += [self._read_change(loaded, row) for row in rows]
            count += len(rows)
        return count

    def of_key(self, key: bytes) -> Sequence[TableChange]:
        """Return the changes of a key, in order of arrival."""
        return sorted(self._by_key.get(key, ()), key=attrgetter("arrival"))

    def drop_without_key(
        self, counters: Counters, sends_to_late_output: bool
    ) -> Iterator[Emission]:
        """Count the rows without a key; see `LateMessages.drop_all`."""
        return self._without_key.drop_all(counters, sends_to_late_output)

    def log_lines(self) -> tuple[LogLine, ...]:
        """Return the log lines of the micro-batch."""
        return self._without_key.log_lines() + self._delete_query.log_lines()

    def _read_change(self, loaded: FreshPack, row: int) -> TableChange:
        arrival, time, watermark, _, _ = make_message_row(loaded, row)
        payload, meta = loaded.payloads[row], loaded.encoded_metadata(row)
        is_removed = is_null_payload(payload) or self._is_delete(payload, meta)
        return TableChange(
            arrival, watermark, RowVersion(time, None if is_removed else payload, meta)
        )

    def _is_delete(self, payload: bytes, meta: bytes) -> bool:
        if not self._delete_query:  # most have none, and need no message
            return False
        known = self._decoded.get(meta)
        if known is None:
            known = self._decoded[meta] = decode_meta(meta)
        return self._delete_query.holds(Message(payload, *known))
