"""A source that stands still, or ends where it stands, so that open windows come out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from streamer.core.execution import Execution
from streamer.plan import Plan
from streamer.sdk.input.replayable import (
    Chunk,
    LatestOffset,
    Limit,
    Offset,
    ReplayableSource,
    next_poll_of,
    watch_all,
)


@dataclass(frozen=True, slots=True)
class DrainLimit:
    """The offset up to which a drain reads.

    Attributes:
        to_end: to the end of what has come in; else not a message further.
        ends: whether the input ends there, so that open windows come out.
    """

    to_end: bool = False
    ends: bool = True

    def apply_to(self, source: ReplayableSource) -> DrainSource:
        """Return the source that ends there."""
        return DrainSource(source, self.to_end, self.ends)


@dataclass(frozen=True)
class DrainSource:
    """A source as it is left by a drain.

    Attributes:
        source: the source; nothing more comes to it, or it does not matter.
        to_end: whether what it has is read first.
        ends: whether nothing follows.
    """

    source: ReplayableSource
    to_end: bool
    ends: bool = True

    def initial_offset(self) -> Offset:
        """Return the position at which a stream without a checkpoint starts."""
        return self.source.initial_offset()

    def latest_offset(self, start: Offset, now: int, limit: Limit) -> LatestOffset:
        """Return the end of what is to be read, and whether nothing follows."""
        if not self.to_end:
            return LatestOffset(start, 0, is_ended=self.ends)
        source_end = self.source.latest_offset(start, now, limit)
        return source_end._replace(is_ended=not source_end.has_more)

    def watch(self, wake: Callable[[], None]) -> None:
        """Have the source wake the planner."""
        watch_all([self.source], wake)

    def next_poll(self, start: Offset, now: int) -> int | None:
        """Return the source's; it does not matter for one that is not read any more."""
        return next_poll_of(self.source, start, now) if self.to_end else None

    def split(self, start: Offset, end: Offset, parts: int) -> list[Any]:
        """Cut what lies between two offsets into about `parts` pieces, in arrival order."""
        return self.source.split(start, end, parts)

    def read(self, piece: Any, ex: Execution) -> Iterator[Chunk]:
        """Read a piece, as the source does."""
        return self.source.read(piece, ex)

    def partition_of(self, piece: Any) -> str:
        """Return the source's name of the partition that a piece is from."""
        return self.source.partition_of(piece)

    def on_committed(self, end: Offset) -> None:
        """Note that everything before `end` is safe in the checkpoint."""
        self.source.on_committed(end)

    def on_finished(self) -> None:
        """Note that a bounded source was read to its end, and that all of it is safe."""
        self.source.on_finished()


def with_flush_at_end(plan: Plan) -> Plan:
    """Return a plan whose open windows come out when its input ends."""
    if plan.window is None:
        return plan
    buffers = tuple(
        replace(one, windows=replace(one.windows, window=window.flushing()))
        for one, window in zip(plan.buffers, plan.windows, strict=False)
    )
    return replace(plan, window=plan.window.flushing(), buffers=buffers)
