"""A source that ends where it stands, so that the windows that are open come out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from streamer.message import Execution
from streamer.plan import Plan
from streamer.source.replayable import Chunk, Latest, Limit, Offset, Replayable
from streamer.window.event import EventWindow
from streamer.window.system import SystemWindow


@dataclass(frozen=True, slots=True)
class Drains:
    """How far a drain reads.

    Attributes:
        to_end: to the end of what has come in; else not a message further.
    """

    to_end: bool = False

    def of(self, source: Replayable) -> Draining:
        """Return the source that ends there."""
        return Draining(source, self.to_end)


@dataclass(frozen=True)
class Draining:
    """A source as it is left by a drain.

    Attributes:
        source: the source; nothing more comes to it, or it does not matter.
        to_end: whether what it has is read first.
    """

    source: Replayable
    to_end: bool

    def initial(self) -> Offset:
        """See `Replayable`."""
        return self.source.initial()

    def latest(self, start: Offset, now: int, limit: Limit) -> Latest:
        """Return the end of what is to be read, and that nothing follows."""
        if not self.to_end:
            return Latest(start, 0, ended=True)
        found = self.source.latest(start, now, limit)
        return found._replace(ended=not found.more)

    def split(self, start: Offset, end: Offset, parts: int) -> list[Any]:
        """See `Replayable`."""
        return self.source.split(start, end, parts)

    def read(self, piece: Any, ex: Execution) -> Iterator[Chunk]:
        """See `Replayable`."""
        return self.source.read(piece, ex)

    def partition(self, piece: Any) -> str:
        """See `Replayable`."""
        return self.source.partition(piece)

    def committed(self, end: Offset) -> None:
        """See `Replayable`."""
        self.source.committed(end)

    def finished(self) -> None:
        """See `Replayable`."""
        self.source.finished()


def flushing(plan: Plan) -> Plan:
    """Return a plan whose open windows come out when its input ends."""
    window = plan.window
    if isinstance(window, SystemWindow):
        return replace(plan, window=replace(window, end_of_input="flush"))
    if isinstance(window, EventWindow):
        time = replace(window.time, end_of_input="flush")
        return replace(plan, window=replace(window, time=time))
    return plan
