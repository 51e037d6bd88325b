"""An input with its processors, where they run on the driver: inside of an input with a spool."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.sdk.input.input_context import InputContext, open_input
from streamer.sdk.input.replayable import (
    Chunk,
    LatestOffset,
    Limit,
    Offset,
    RawMessages,
    ReplayableSource,
    next_poll_of,
    watch_all,
)
from streamer.sdk.processing import Processor, run, run_each

if TYPE_CHECKING:
    from streamer.sdk.processing.batching import BatchPolicy


@dataclass(frozen=True)
class ProcessedSource:
    """A source whose messages have been through processors.

    Attributes:
        source: what is read.
        processors: what its messages go through.
        policy: puts them into batches before that, or None.
    """

    source: ReplayableSource
    processors: Sequence[Processor]
    policy: BatchPolicy | None = None

    def open(self, context: InputContext) -> ProcessedSource:
        """Open the source."""
        return replace(self, source=open_input(self.source, context))

    def initial_offset(self) -> Offset:
        """Return the source's."""
        return self.source.initial_offset()

    def latest_offset(self, start: Offset, now: int, limit: Limit) -> LatestOffset:
        """Return the source's."""
        return self.source.latest_offset(start, now, limit)

    def watch(self, wake: Callable[[], None]) -> None:
        """Have the source wake the planner."""
        watch_all([self.source], wake)

    def next_poll(self, start: Offset, now: int) -> int | None:
        """Return the source's."""
        return next_poll_of(self.source, start, now)

    def split(self, start: Offset, end: Offset, parts: int) -> list[Any]:
        """Return the source's."""
        return self.source.split(start, end, parts)

    def partition_of(self, piece: Any) -> str:
        """Return the source's."""
        return self.source.partition_of(piece)

    def on_committed(self, end: Offset) -> None:
        """Pass the call to the source."""
        self.source.on_committed(end)

    def on_finished(self) -> None:
        """Pass the call to the source."""
        self.source.on_finished()

    def read(self, piece: Any, ex: Execution) -> Iterator[Chunk]:
        """Read a piece, put its messages into batches and run the processors."""
        chunks = self.source.read(piece, ex)
        if self.policy is not None:
            # Imported here: the catalogue imports this module, and most configs have no policy.
            from streamer.sdk.input.batch_chunks import batch_chunks

            chunks = batch_chunks(chunks, self.policy, ex)
        for chunk in chunks:
            if isinstance(chunk, RawMessages):
                yield run_each(self.processors, [Message(r, chunk.meta) for r in chunk.raws], ex)
            else:
                yield list(run(self.processors, chunk, ex))
