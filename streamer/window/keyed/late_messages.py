"""Messages that a shard drops because they are late, and how dropped messages are emitted."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from streamer.core.message import Batch
from streamer.core.timestamps import format_rfc3339
from streamer.window.assign.pack_builder import DROP_REASON
from streamer.window.contract import Counters, DroppedSample, Emission, LogLine
from streamer.window.fire.dropped_sample import make_sample
from streamer.window.keyed.message_rows import LoadedPack
from streamer.window.pack.message_columns import MessageBuilder
from streamer.window.pack.window_metadata import format_shown_key


class DroppedRow(NamedTuple):
    """A message that is dropped: its arrival number, its pack and its row there."""

    arrival: int
    loaded: LoadedPack
    row: int


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


def _sample_row(dropped: DroppedRow) -> DroppedSample:
    pack, row = dropped.loaded.pack, dropped.row
    key = pack.keys[bisect_right(pack.starts, row) - 1] if pack.keys else None
    time = int(dropped.loaded.times[row])
    return make_sample(dropped.loaded.payloads[row], format_shown_key(key), time)


def build_dropped_messages(dropped: Sequence[DroppedRow], reason: str) -> Batch:
    """Build dropped messages, with the reason in their metadata."""
    metas = MessageBuilder({DROP_REASON: reason})
    messages: Batch = []
    for _, loaded, row in dropped:
        ids = None if loaded.pack.meta_ids is None else loaded.pack.meta_ids[row : row + 1]
        messages += metas.build_messages([loaded.payloads[row]], loaded.pack.metas, ids)
    return messages
