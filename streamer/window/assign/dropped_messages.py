"""Messages that go into no window: those that failed upstream, and those that stage 1 drops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import orjson

from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.window.contract import RowKind, ShuffleRow
from streamer.window.pack.message_columns import MessageColumns
from streamer.window.pack.metadata_codec import encode_meta
from streamer.window.pack.pack_codec import MAX_PACK_BYTES

DROP_REASON: Final = "window_drop_reason"
"""The metadata key by which `late_output` tells why it got a message."""

_MAX_WARNINGS: Final = 10


class DroppedMessages:
    """Counts and, where asked, keeps the messages that stage 1 lets pass by or drops."""

    def __init__(self, keep_dropped: bool) -> None:
        self._keep = keep_dropped
        self._columns = {RowKind.FAILED: MessageColumns(), RowKind.DROPPED: MessageColumns()}
        self._ready_rows: list[ShuffleRow] = []
        self._dropped: Counter[str] = Counter()
        self._filtered = 0
        self._warned: Counter[str] = Counter()
        self._ex: Execution | None = None

    def add_failed(self, message: Message, arrival: int) -> None:
        """Let a message pass that was marked as failed."""
        self._add(RowKind.FAILED, message, arrival, encode_meta(message.meta, message.error))

    def add_dropped(
        self, reason: str, what: str, why: str, message: Message, arrival: int, ex: Execution
    ) -> None:
        """Drop a message, and warn of the first few.

        Args:
            reason: the reason by which it is counted (`timestamp`, `future`, `key`).
            what: what was wrong, which is the same for all messages.
            why: what was found in this one.
            message: the message.
            arrival: its arrival number.
            ex: for warnings.
        """
        self._dropped[reason] += 1
        self._warn(reason, f"was dropped, {what}", why, ex)
        if self._keep:
            meta = encode_meta({**message.meta, DROP_REASON: reason})
            self._add(RowKind.DROPPED, message, arrival, meta)

    def count_filtered(self, count: int) -> None:
        """Count messages for which the filter was not true."""
        self._filtered += count

    def warn_filter_failed(self, why: str, ex: Execution) -> None:
        """Warn of a filter that failed, or gave no boolean, and so keeps nothing."""
        self._warn("filter", "was filtered out, its filter gave no boolean", why, ex)

    def flush_rows(self) -> Iterator[ShuffleRow]:
        """Give everything to shard 0, and the counters; sum up the warnings left out."""
        for reason, count in self._warned.items():
            if self._ex is not None and count > _MAX_WARNINGS:
                more = count - _MAX_WARNINGS
                text = f"{more} more messages were dropped for the same reason: {reason}"
                self._ex.log("WARN", text, {"reason": reason, "messages": more})
        for kind in self._columns:
            self._flush(kind)
        yield from self._ready_rows
        if self._dropped or self._filtered:
            counts: dict[str, Any] = {"dropped": self._dropped}
            if self._filtered:
                counts["filtered"] = self._filtered
            yield ShuffleRow(0, RowKind.COUNT, 0, 0, orjson.dumps(counts))

    def _warn(self, reason: str, what: str, why: str, ex: Execution) -> None:
        self._ex = ex
        self._warned[reason] += 1
        if self._warned[reason] <= _MAX_WARNINGS:
            ex.log("WARN", f"a message {what}: {why}", {"reason": reason})

    def _add(self, kind: RowKind, message: Message, arrival: int, meta: bytes) -> None:
        columns = self._columns[kind]
        columns.add_one(message.raw, 0, arrival, meta)
        if columns.size >= MAX_PACK_BYTES:
            self._flush(kind)

    def _flush(self, kind: RowKind) -> None:
        self._ready_rows.extend(self._columns[kind].flush_rows([(kind, 0)], None, 0))
        self._columns[kind] = MessageColumns()
