"""An input with its processors, where they run on the driver: inside of an input that lands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from streamer.message import Execution, Message
from streamer.pipeline import Processor, run, run_each
from streamer.source.opening import Room, opened
from streamer.source.replayable import Chunk, Latest, Limit, Offset, Raws, Replayable


@dataclass(frozen=True)
class Processed:
    """A source whose messages have been through processors.

    Attributes:
        source: what is read.
        processors: what its messages go through.
    """

    source: Replayable
    processors: Sequence[Processor]

    def opened(self, room: Room) -> Processed:
        """Open the source."""
        return replace(self, source=opened(self.source, room))

    def initial(self) -> Offset:
        """Return the source's."""
        return self.source.initial()

    def latest(self, start: Offset, now: int, limit: Limit) -> Latest:
        """Return the source's."""
        return self.source.latest(start, now, limit)

    def split(self, start: Offset, end: Offset, parts: int) -> list[Any]:
        """Return the source's."""
        return self.source.split(start, end, parts)

    def partition(self, piece: Any) -> str:
        """Return the source's."""
        return self.source.partition(piece)

    def committed(self, end: Offset) -> None:
        """Tell the source."""
        self.source.committed(end)

    def finished(self) -> None:
        """Tell the source."""
        self.source.finished()

    def read(self, piece: Any, ex: Execution) -> Iterator[Chunk]:
        """Read a piece and run the processors."""
        for chunk in self.source.read(piece, ex):
            if isinstance(chunk, Raws):
                yield run_each(self.processors, [Message(r, chunk.meta) for r in chunk.raws], ex)
            else:
                yield list(run(self.processors, chunk, ex))
