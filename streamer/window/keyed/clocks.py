"""The clocks of a shard: watermark, batch time, and the running time that idle timeouts count."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from streamer.window.contract import ClockHolder, MicroBatchInfo
from streamer.window.fire.running_time import RunningTime
from streamer.window.fire.source_clocks import (
    SourceClocks,
    SourceWatermarks,
    cap_lags,
    follow_pieces,
)
from streamer.window.fire.step_io import Piece
from streamer.window.keyed.state import NEVER
from streamer.window.pack.pack_codec import Pack
from streamer.window.settings.window_types import EventTimeSettings


class Watermarks(NamedTuple):
    """The watermark of all keys before and after a micro-batch, ns; `NEVER` for none."""

    before: int
    after: int


@dataclass(slots=True)
class ShardClocks(RunningTime):
    """The clocks that a shard keeps between micro-batches.

    Attributes:
        closing: the system clock up to which it has closed windows, ns.
        stream: the largest event time taken, ns, or what the clock waits at.
        sources: the clocks of partitions or inputs; None where none is waited for.
    """

    closing: int = NEVER
    stream: int = NEVER
    sources: SourceClocks | None = None

    def to_fields(self) -> list[Any]:
        """Return the clocks as plain values."""
        clocks = [None if clock == NEVER else clock for clock in (self.closing, self.stream)]
        return [self.now, self.start_id, self.is_behind, self.active, *clocks]

    @classmethod
    def from_fields(cls, fields: list[Any]) -> ShardClocks:
        """Create the clocks from what `to_fields` returned."""
        *others, closing, stream = fields
        known = [NEVER if clock is None else clock for clock in (closing, stream)]
        return cls(*others, *known)


class BatchClocks:
    """The watermark before each piece of a micro-batch, and the watermark after all of them.

    Attributes:
        is_per_key: whether each key has a clock of its own.
        before: the watermark of all keys before the micro-batch, ns.
    """

    def __init__(
        self,
        settings: EventTimeSettings,
        unit: int,
        known: ShardClocks,
        pieces: Iterable[Piece],
        info: MicroBatchInfo,
    ) -> None:
        """Order the pieces of a micro-batch.

        Args:
            settings: the settings of event times.
            unit: the system clock is rounded down to multiples of it, ns.
            known: the shard's clocks after `advance`; `finish` moves them.
            pieces: the pieces of the micro-batch, in order.
            info: the facts about it.
        """
        self._known = known
        self._unit = unit
        self._system = settings.clock == "system"
        self._closing = known.closing
        self.before = known.closing if self._system else known.stream
        self.is_per_key = settings.clock_scope == "key" and not self._system
        before = None if known.stream == NEVER else known.stream
        self._pieces, known.sources = follow_pieces(settings, pieces, before, known.sources, info)

    def watermark_before(self, arrival: int) -> int:
        """Return the watermark before the piece with an arrival number, ns; `NEVER` without any."""
        if self._system:
            return self._closing
        before = self._pieces.watermark_before(arrival)
        return NEVER if before is None else before

    def partition_of(self, arrival: int) -> bytes:
        """Return the source partition of the piece with an arrival number."""
        return self._pieces.partition_of(arrival)

    def cap_lags(self, pack: Pack, arrival: int) -> None:
        """Take from the lags of a pack what other sources keep the clock of its piece from."""
        if isinstance(self._pieces, SourceWatermarks):
            cap_lags(pack, self._pieces.cap(arrival))

    @property
    def holder(self) -> ClockHolder | None:
        """The source that the clock waits for; None where it waits for none."""
        return self._pieces.holder

    def next_idle(self) -> int | None:
        """Return the batch time at which the clock will wait for a source no more, ns, or None."""
        return self._pieces.next_idle()

    def finish(self, backlog: bool) -> int:
        """Move the shard's clocks to the end of the micro-batch.

        Returns:
            The watermark that closes windows of all keys, ns; `NEVER` if each key has its own.
        """
        known = self._known
        known.stream = (
            NEVER if self._pieces.watermark_after is None else self._pieces.watermark_after
        )
        if not backlog and known.now is not None:
            known.closing = known.now - known.now % self._unit
        if self.is_per_key:
            return NEVER
        return known.closing if self._system else known.stream
