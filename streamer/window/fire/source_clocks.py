"""The clock that waits for the slowest source: a partition, or an input, of a stream.

The watermark is the least of what the sources have come to, where the silent ones are left out, as
in Flink (`StatusWatermarkValve`): it never goes back, and when all are silent it is the largest.
A source that is known holds it from the first micro-batch on, though no message of it has come. Of
one that is not known until it comes, older messages may be late by then.

Within a micro-batch the pieces of a source have an order, and those of others count as they stood
at its begin. With one source it is the clock of `PartitionWatermarks`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import Any, Final

import numpy as np

from streamer.window.contract import PIECE_BITS, ClockHolder, MicroBatchInfo, UpstreamInfo
from streamer.window.fire.partition_watermarks import PartitionWatermarks
from streamer.window.fire.running_time import RunningTime
from streamer.window.fire.step_io import Piece
from streamer.window.pack.pack_codec import Pack
from streamer.window.settings.window_types import EventTimeSettings

SOURCE_SEPARATOR: Final = b"\0"
"""Stands in a piece's row between the name of its partition and that of its source."""

NO_TIME: Final = -(2**63)
"""The time of a source of which nothing has come: it holds the clock where it is."""


@dataclass(slots=True)
class SourceClock:
    """The clock of one source.

    Attributes:
        max_event_time: the largest event time that it had, ns; None before the first.
        last_active: the running time when a message of it came last, or it was first known, ns.
    """

    max_event_time: int | None
    last_active: int


@dataclass(slots=True)
class SourceClocks(RunningTime):
    """The clocks of all sources, as a shard keeps them between micro-batches.

    Attributes:
        by_name: the clocks by the names of their sources.
    """

    by_name: dict[str, SourceClock] = field(default_factory=dict)

    def start_batch(self, info: MicroBatchInfo) -> None:
        """Begin a micro-batch: let time pass, and take the sources that are known."""
        self.advance(info)
        for name in info.sources:
            if name not in self.by_name:
                self.by_name[name] = SourceClock(None, self.active)

    def to_fields(self) -> list[Any]:
        """Return the clocks as plain values."""
        sources = [
            [name, one.max_event_time, one.last_active] for name, one in self.by_name.items()
        ]
        return [self.now, self.start_id, self.is_behind, self.active, sources]

    @classmethod
    def from_fields(cls, fields: list[Any]) -> SourceClocks:
        """Return the clocks that `to_fields` has described."""
        now, start_id, is_behind, active, sources = fields
        by_name = {name: SourceClock(newest, at) for name, newest, at in sources}
        return cls(now, start_id, is_behind, active, by_name)


class SourceWatermarks(PartitionWatermarks):
    """The watermarks of one micro-batch.

    Attributes:
        watermark_after: the one after it; None when there never was one.
        holder: the source that the clock waits for; None where there is but one.
    """

    def __init__(
        self,
        pieces: Iterable[Piece],
        clock: int | None,
        clocks: SourceClocks,
        idle_timeout: int,
        expected: Iterable[str] = (),
    ) -> None:
        """Follow the pieces, which are in order.

        Args:
            pieces: what became of the clock in each piece; several may say the same.
            clock: the watermark before the micro-batch; None when there never was one.
            clocks: those of the sources, after `start_batch`; they are moved.
            idle_timeout: running time after which a silent source is left out, ns; 0 for never.
            expected: the sources that are known, and stay when they are silent.
        """
        pieces = list(pieces)
        super().__init__(pieces, clock)
        self._caps: dict[int, int | None] = {}
        self._clocks, self._idle_timeout = clocks, idle_timeout
        self._clock = clock
        named = [(piece, _source_of(piece.partition)) for piece in pieces]
        self._parts = {name: name_partition(piece.partition) for piece, name in named}
        known = clocks.by_name
        for _, name in named:
            known.setdefault(name, SourceClock(None, clocks.active)).last_active = clocks.active
        before = {name: one.max_event_time for name, one in self._active().items()}
        least = _two_least(before)
        for piece, name in named:
            self._follow(piece, known[name], _least_of_others(least, name))
        self.watermark_after = self._watermark_after()
        self.holder = self._find_holder()
        kept = frozenset(expected)
        active = self._active()
        clocks.by_name = {n: one for n, one in known.items() if n in active or n in kept}

    def cap(self, arrival: int) -> int | None:
        """Return how far other sources let the clock go in the piece of a message; None for any."""
        return self._caps[self._piece_number(arrival)]

    def next_idle(self) -> int | None:
        """Return the batch time at which a source that holds the clock will be left out, or None.

        None where there is none, or none ever will be.
        """
        clocks, newest = self._clocks, self._newest_time()
        if not self._idle_timeout or newest is None or clocks.now is None:
            return None
        holding = [
            one.last_active
            for one in self._active().values()
            if one.max_event_time is None or one.max_event_time < newest
        ]
        if not holding:
            return None
        return clocks.now + min(holding) + self._idle_timeout - clocks.active

    def _follow(self, piece: Piece, source: SourceClock, cap: int | None) -> None:
        number = piece.first >> PIECE_BITS
        own = source.max_event_time
        if number not in self._caps:
            self._caps[number] = cap
            reached = own if cap is None or own is None else min(own, cap)
            self._before[number] = self._clock if cap == NO_TIME else _later(self._clock, reached)
        source.max_event_time = _later(own, piece.max_event_time)

    def _active(self) -> dict[str, SourceClock]:
        """Return the sources that have not been silent for too long."""
        clocks, timeout = self._clocks, self._idle_timeout
        return {
            name: one
            for name, one in clocks.by_name.items()
            if not timeout or clocks.active - one.last_active < timeout
        }

    def _newest_time(self) -> int | None:
        times = [one.max_event_time for one in self._clocks.by_name.values()]
        return max((time for time in times if time is not None), default=None)

    def _watermark_after(self) -> int | None:
        times = [one.max_event_time for one in self._active().values()]
        if not times:
            return _later(self._clock, self._newest_time())
        known = [time for time in times if time is not None]
        return self._clock if len(known) < len(times) else _later(self._clock, min(known))

    def _find_holder(self) -> ClockHolder | None:
        active, newest = self._active(), self._newest_time()
        if len(self._clocks.by_name) < 2 or not active or newest is None:
            return None
        name = min(active, key=lambda name: (_order_of(active[name]), name))
        time = active[name].max_event_time
        ahead = 0 if self.watermark_after is None else max(newest - self.watermark_after, 0)
        part = self._parts.get(name, "")
        return ClockHolder(name, time, ahead, "" if part == name else part)


class _JoinedWatermarks(PartitionWatermarks):
    """The watermarks of a join with one side behind windows, and one behind sources.

    The clock waits for both: for what the windows have yet to give, and for the sources.
    """

    def __init__(
        self,
        pieces: Iterable[Piece],
        clock: int | None,
        upstream: UpstreamInfo,
        sources: SourceWatermarks,
    ) -> None:
        super().__init__(pieces, clock, upstream)
        self._sources = sources
        times = (upstream.time, sources.watermark_after)
        known = [time for time in times if time is not None]
        self.watermark_after = clock if len(known) < len(times) else _later(clock, min(known))
        self.holder = sources.holder

    def next_idle(self) -> int | None:
        """Return the batch time at which a source that holds the clock will be left out, or None.

        None where there is none, or none ever will be.
        """
        return self._sources.next_idle()


def name_partition(partition: bytes) -> str:
    """Return the name of a partition as its input gave it: `orders/1`, or the path of a file."""
    return partition.partition(SOURCE_SEPARATOR)[0].decode("utf-8", "replace")


def _source_of(partition: bytes) -> str:
    return partition.rpartition(SOURCE_SEPARATOR)[2].decode("utf-8", "replace")


def _two_least(times: dict[str, int | None]) -> list[tuple[int, str]]:
    """Return the two sources that are the furthest behind; there may be less than two."""
    return nsmallest(2, ((NO_TIME if time is None else time, name) for name, time in times.items()))


def _least_of_others(least: list[tuple[int, str]], name: str) -> int | None:
    """Return how far the others are, by the two that are the furthest behind; None without any."""
    return next((time for time, other in least if other != name), None)


def _order_of(source: SourceClock) -> int:
    return NO_TIME if source.max_event_time is None else source.max_event_time


def cap_lags(pack: Pack, cap: int | None) -> None:
    """Take from the lags of a pack what other sources keep the clock of its piece from.

    Args:
        pack: the pack, unpacked.
        cap: as `SourceWatermarks.cap` gives it.
    """
    if cap is None or pack.lags is None:
        return
    if cap == NO_TIME:
        pack.lags = None
        return
    assert pack.times is not None
    reached = np.minimum(pack.times + pack.lags, cap)
    pack.lags = np.maximum(reached, pack.times) - pack.times


def _later(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)


def follow_pieces(
    settings: EventTimeSettings,
    pieces: Iterable[Piece],
    clock: int | None,
    clocks: SourceClocks | None,
    info: MicroBatchInfo,
) -> tuple[PartitionWatermarks, SourceClocks | None]:
    """Return the watermarks of a micro-batch, and the clocks of sources that it has moved.

    Args:
        settings: say whether the clock waits for sources.
        pieces: what became of the clock in each piece, in order.
        clock: the watermark before; None when there never was one.
        clocks: those of the sources; None where there were none.
        info: the facts about the micro-batch.
    """
    if not settings.waits_for_sources or (info.upstream is not None and not info.sources):
        return PartitionWatermarks(pieces, clock, info.upstream), None
    clocks = clocks or SourceClocks()
    clocks.start_batch(info)
    timeout = settings.source_idle_timeout
    if info.upstream is None:
        return SourceWatermarks(pieces, clock, clocks, timeout, info.sources), clocks
    pieces = list(pieces)
    read = [piece for piece in pieces if SOURCE_SEPARATOR in piece.partition]
    sources = SourceWatermarks(read, clock, clocks, timeout, info.sources)
    return _JoinedWatermarks(pieces, clock, info.upstream, sources), clocks
