"""Messages that a shard drops because they are late, and how dropped messages are emitted."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from streamer.core.message import Batch
from streamer.core.timestamps import format_rfc3339
from streamer.window.assign.pack_builder import DROP_REASON
from streamer.window.contract import (
    MAX_DROPPED_SAMPLES,
    Counters,
    DroppedEntry,
    DroppedSample,
    Emission,
    LogLine,
)
from streamer.window.fire.dropped_sample import make_sample
from streamer.window.fire.source_clocks import name_partition
from streamer.window.keyed.message_rows import FreshPack, LoadedPack
from streamer.window.keyed.state import NEVER
from streamer.window.pack.message_columns import MessageBuilder
from streamer.window.pack.window_metadata import format_shown_key


class DroppedRow(NamedTuple):
    """A message that is dropped.

    Attributes:
        arrival: its arrival number.
        loaded: its pack.
        row: its row there.
        watermark: the clock that it was compared with, ns; `NEVER` for none.
    """

    arrival: int
    loaded: LoadedPack
    row: int
    watermark: int = NEVER


class LateMessages(list[DroppedRow]):
    """The late messages of a micro-batch."""

    reason = "late"

    def drop_all(self, counters: Counters, sends_to_late_output: bool) -> Iterator[Emission]:
        """Count and free the messages; emit them if there is a `late_output`."""
        if not self:
            return
        self.sort(key=lambda dropped: dropped.arrival)
        counters.count_dropped(self.reason, len(self))
        by_pack: dict[int, list[DroppedRow]] = {}
        for dropped in self:
            by_pack.setdefault(id(dropped.loaded), []).append(dropped)
        for same in by_pack.values():
            same[0].loaded.free(np.array([dropped.row for dropped in same], np.int64))
        if sends_to_late_output:
            yield Emission(None, build_dropped_messages(self, self.reason), "dropped")

    def list_samples(self) -> tuple[DroppedEntry, ...]:
        """Return the first of the messages, each with the reason."""
        return tuple((self.reason, _sample_row(one)) for one in self[:MAX_DROPPED_SAMPLES])

    def log_lines(self) -> tuple[LogLine, ...]:
        """Return a warning that says how many messages were late, if any were."""
        if not self:
            return ()
        oldest = min(int(late.loaded.times[late.row]) for late in self)
        text = (
            f"late messages were dropped: {len(self)}; the oldest was of "
            f"{format_rfc3339(oldest)}, and all windows that they belong to had closed"
        )
        fields = {"reason": "late", "messages": len(self)}
        return (LogLine("WARN", text, fields, _sample_row(self[0])),)


class KeylessMessages(LateMessages):
    """Messages of a micro-batch that are dropped since a key, or an id, is missing."""

    reason = "key"

    def __init__(self, subject: str, why: str) -> None:
        """Take what the log calls them, and what it says of the reason."""
        super().__init__()
        self._subject, self._why = subject, why

    def log_lines(self) -> tuple[LogLine, ...]:
        """Return a warning that says how many there were, if any."""
        if not self:
            return ()
        text = f"{self._subject} were dropped: {len(self)}; {self._why}"
        return (LogLine("WARN", text, {"reason": self.reason, "messages": len(self)}),)


def _sample_row(dropped: DroppedRow) -> DroppedSample:
    """Return what is shown of a dropped message."""
    pack, row = dropped.loaded.pack, dropped.row
    key = pack.keys[bisect_right(pack.starts, row) - 1] if pack.keys else None
    time = int(dropped.loaded.times[row])
    sample = make_sample(dropped.loaded.payloads[row], format_shown_key(key), time)
    watermark = None if dropped.watermark == NEVER else dropped.watermark
    partition = dropped.loaded.partition if isinstance(dropped.loaded, FreshPack) else b""
    return replace(sample, watermark=watermark, source=name_partition(partition))


def build_dropped_messages(dropped: Sequence[DroppedRow], reason: str) -> Batch:
    """Build dropped messages, with the reason in their metadata."""
    metas = MessageBuilder({DROP_REASON: reason})
    messages: Batch = []
    for _, loaded, row, _ in dropped:
        ids = None if loaded.pack.meta_ids is None else loaded.pack.meta_ids[row : row + 1]
        messages += metas.build_messages([loaded.payloads[row]], loaded.pack.metas, ids)
    return messages
