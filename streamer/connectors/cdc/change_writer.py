"""Spooling changes: messages and the position behind them are one block of the spool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from streamer.connectors.spool.blocks import Record, pack_each
from streamer.connectors.spool.reconnecting_receiver import Session
from streamer.core.json.dump import dump_json

MAX_BLOCK_MESSAGES: Final = 1_000
MAX_BLOCK_BYTES: Final = 4 << 20

OPERATION: Final = "operation"
TABLE: Final = "table"

READ: Final = "read"
INSERT: Final = "insert"
UPDATE: Final = "update"
DELETE: Final = "delete"
TRUNCATE: Final = "truncate"
BEGIN: Final = "begin"
COMMIT: Final = "commit"


class StreamEndedError(Exception):
    """The stream stops, and what was read last is not on the disk."""


class ChangeWriter:
    """Collects messages, and spools them with the position that has been reached."""

    def __init__(self, session: Session) -> None:
        """Take the session of which the spool is."""
        self._session = session
        self._records: list[Record] = []
        self._bytes = 0

    @property
    def mark(self) -> Any:
        """The newest position on the disk; None before the first."""
        return self._session.store.mark

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits for the disk."""
        return not self._records

    @property
    def is_full(self) -> bool:
        """Whether so much waits that it is to be written."""
        return len(self._records) >= MAX_BLOCK_MESSAGES or self._bytes >= MAX_BLOCK_BYTES

    def add(self, value: Any, metadata: Mapping[str, Any]) -> None:
        """Add a message, whose payload is a value as JSON."""
        raw = dump_json(value)
        self._records.append(pack_each([raw], metadata))
        self._bytes += len(raw)

    def write(self, mark: Any) -> None:
        """Have all that was added, and a position, on the disk.

        Args:
            mark: the position behind what was added, as a JSON value.

        Raises:
            StreamEndedError: the stream stops before.
        """
        records, self._records, self._bytes = self._records, [], 0
        if not self._session.write(records, mark):
            raise StreamEndedError
