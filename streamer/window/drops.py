"""What does not go into a window: messages that failed upstream, and those stage 1 drops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import orjson

from streamer.message import Execution, Message
from streamer.window.columns import Collector
from streamer.window.metadata import encode_meta
from streamer.window.pack import LIMIT
from streamer.window.row import Kind, Row

REASON: Final = "window_drop_reason"
"""The metadata key by which `late_output` tells why it got a message."""

_LINES: Final = 10


class Drops:
    """Counts and, where asked, keeps the messages that stage 1 lets pass by or drops."""

    def __init__(self, keep_dropped: bool) -> None:
        self._keep = keep_dropped
        self._aside = {Kind.FAILED: Collector(), Kind.DROPPED: Collector()}
        self._ready: list[Row] = []
        self._dropped: Counter[str] = Counter()
        self._filtered = 0
        self._said: Counter[str] = Counter()
        self._ex: Execution | None = None

    def failed(self, message: Message, arrival: int) -> None:
        """Let a message pass that was marked as failed."""
        self._put(Kind.FAILED, message, arrival, encode_meta(message.meta, message.error))

    def drop(
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
        self._say(reason, f"was dropped, {what}", why, ex)
        if self._keep:
            meta = encode_meta({**message.meta, REASON: reason})
            self._put(Kind.DROPPED, message, arrival, meta)

    def filtered(self, count: int) -> None:
        """Count messages for which the filter was not true."""
        self._filtered += count

    def filter_failed(self, why: str, ex: Execution) -> None:
        """Warn of a filter that failed, or gave no boolean, and so keeps nothing."""
        self._say("filter", "was filtered out, its filter gave no boolean", why, ex)

    def rows(self) -> Iterator[Row]:
        """Give everything to shard 0, and the counters; sum up the warnings left out."""
        for reason, said in self._said.items():
            if self._ex is not None and said > _LINES:
                more = said - _LINES
                text = f"{more} more messages were dropped for the same reason: {reason}"
                self._ex.log("WARN", text, {"reason": reason, "messages": more})
        for kind in self._aside:
            self._flush(kind)
        yield from self._ready
        if self._dropped or self._filtered:
            counts: dict[str, Any] = {"dropped": self._dropped}
            if self._filtered:
                counts["filtered"] = self._filtered
            yield Row(0, Kind.COUNT, 0, 0, orjson.dumps(counts))

    def _say(self, reason: str, what: str, why: str, ex: Execution) -> None:
        self._ex = ex
        self._said[reason] += 1
        if self._said[reason] <= _LINES:
            ex.log("WARN", f"a message {what}: {why}", {"reason": reason})

    def _put(self, kind: Kind, message: Message, arrival: int, meta: bytes) -> None:
        aside = self._aside[kind]
        aside.add_one(message.raw, 0, arrival, meta)
        if aside.size >= LIMIT:
            self._flush(kind)

    def _flush(self, kind: Kind) -> None:
        self._ready.extend(self._aside[kind].rows([(kind, 0)], None, 0))
        self._aside[kind] = Collector()
