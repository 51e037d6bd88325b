"""What does not go into a window: messages that failed upstream, and those without a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

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
        self._dropped = 0
        self._ex: Execution | None = None

    def failed(self, message: Message, arrival: int) -> None:
        """Let a message pass that was marked as failed."""
        self._put(Kind.FAILED, message, arrival, encode_meta(message.meta, message.error))

    def timestamp(self, message: Message, arrival: int, reason: str, ex: Execution) -> None:
        """Drop a message that has no event time, and warn of the first few."""
        self._dropped += 1
        self._ex = ex
        if self._dropped <= _LINES:
            text = f"a message was dropped, its timestamp_mapping gave no time: {reason}"
            ex.log("WARN", text, {"reason": "timestamp"})
        if self._keep:
            meta = encode_meta({**message.meta, REASON: "timestamp"})
            self._put(Kind.DROPPED, message, arrival, meta)

    def rows(self) -> Iterator[Row]:
        """Give everything to shard 0, and the counters; sum up the warnings left out."""
        if self._ex is not None and self._dropped > _LINES:
            more = self._dropped - _LINES
            text = f"{more} more messages were dropped whose timestamp_mapping gave no time"
            self._ex.log("WARN", text, {"reason": "timestamp", "messages": more})
        for kind in self._aside:
            self._flush(kind)
        yield from self._ready
        if self._dropped:
            yield Row(0, Kind.COUNT, 0, 0, orjson.dumps({"dropped": {"timestamp": self._dropped}}))

    def _put(self, kind: Kind, message: Message, arrival: int, meta: bytes) -> None:
        aside = self._aside[kind]
        aside.add_one(message.raw, 0, arrival, meta)
        if aside.size >= LIMIT:
            self._flush(kind)

    def _flush(self, kind: Kind) -> None:
        self._ready.extend(self._aside[kind].rows([(kind, 0)], None, 0))
        self._aside[kind] = Collector()
