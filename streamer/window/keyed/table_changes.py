"""The rows of a joined table that a micro-batch brings, by key, in order of arrival."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from streamer.bloblang import compile_mapping
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.window.contract import Counters, Emission, LogLine
from streamer.window.keyed.late_messages import DroppedRow, LateMessages
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


class _RowsWithoutKey(LateMessages):
    """Rows whose key is null, which no message can be joined with."""

    reason = "key"

    def log_lines(self) -> tuple[LogLine, ...]:
        """Return a warning that says how many there were, if any."""
        if not self:
            return ()
        text = f"rows of the table were dropped: {len(self)}; their key is null"
        return (LogLine("WARN", text, {"reason": self.reason, "messages": len(self)}),)


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
        self._delete_query = compile_mapping(text) if text else None
        self._ex = Execution(lambda: now)
        self._by_key: dict[bytes, list[TableChange]] = {}
        self._without_key = _RowsWithoutKey()
        self._delete_errors: list[str] = []
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
        lines = self._without_key.log_lines()
        if self._delete_errors:
            count = len(self._delete_errors)
            text = f"delete_when gave no boolean for {count} rows, which were kept: "
            text += self._delete_errors[0]
            lines += (LogLine("ERROR", text, {"reason": "delete_when", "messages": count}),)
        return lines

    def _read_change(self, loaded: FreshPack, row: int) -> TableChange:
        arrival, time, watermark, _, _ = make_message_row(loaded, row)
        payload, meta = loaded.payloads[row], loaded.encoded_metadata(row)
        is_removed = is_null_payload(payload) or self._is_delete(payload, meta)
        return TableChange(
            arrival, watermark, RowVersion(time, None if is_removed else payload, meta)
        )

    def _is_delete(self, payload: bytes, meta: bytes) -> bool:
        if self._delete_query is None:
            return False
        known = self._decoded.get(meta)
        if known is None:
            known = self._decoded[meta] = decode_meta(meta)
        try:
            result = self._delete_query.query([Message(payload, *known)], 0, self._ex)
        except Exception as e:  # whatever it ran into: it is not true
            self._delete_errors.append(str(e) or repr(e))
            return False
        if type(result) is not bool:
            self._delete_errors.append(f"expected a boolean, got {type(result).__name__}")
        return result is True
