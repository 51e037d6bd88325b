"""Several sources as one: each goes on from an offset of its own, and pieces know their child."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from streamer.message import Execution
from streamer.source.opening import Room, opened
from streamer.source.replayable import (
    Chunk,
    Extent,
    Latest,
    Limit,
    Offset,
    Replayable,
    extent_of,
)


class ChildPiece(NamedTuple):
    """A piece of one of the sources.

    Attributes:
        child: the source's number, from 0.
        piece: what it made in `split`.
    """

    child: int
    piece: Any


def way_of(piece: Any) -> tuple[int, ...]:
    """Return the numbers of the sources that a piece is from, the outermost first."""
    return (piece.child, *way_of(piece.piece)) if isinstance(piece, ChildPiece) else ()


@dataclass(frozen=True)
class Several:
    """Sources side by side; an offset has each one's own, by name.

    A source that an offset does not name is new, and begins at its beginning.

    Attributes:
        sources: by name; names are what offsets and partitions are told apart by, so that they stay
            the same from one start to the next. None has a colon in it.
    """

    sources: Mapping[str, Replayable]

    def opened(self, room: Room) -> Several:
        """Return this source with its children opened, each in a room of its name."""
        of = {name: opened(source, room.inner(name)) for name, source in self.sources.items()}
        return replace(self, sources=of)

    def initial(self) -> Offset:
        """Return where all of them begin."""
        return {name: source.initial() for name, source in self.sources.items()}

    def latest(self, start: Offset, now: int, limit: Limit) -> Latest:
        """Let each take an equal share of the limit; what some do not need goes to the others."""
        count = len(self.sources)
        share = Limit(max(limit.messages // count, 1), max(limit.size // count, 1))
        found = {name: self._latest(name, start, now, share) for name in self.sources}
        behind = [name for name, latest in found.items() if latest.more]
        if behind and len(behind) < count:
            free = sum(share.messages - found[n].waiting for n in found if n not in behind)
            more = max(free, 0) / share.messages / len(behind)
            larger = Limit(int(share.messages * (1 + more)), int(share.size * (1 + more)))
            found |= {name: self._latest(name, start, now, larger) for name in behind}
        return Latest(
            {name: latest.offset for name, latest in found.items()},
            sum(latest.waiting for latest in found.values()),
            ended=all(latest.ended for latest in found.values()),
            more=any(latest.more for latest in found.values()),
        )

    def _latest(self, name: str, start: Offset, now: int, limit: Limit) -> Latest:
        return self.sources[name].latest(self._start(name, start), now, limit)

    def _start(self, name: str, start: Offset) -> Offset:
        found: Offset | None = start.get(name)
        return self.sources[name].initial() if found is None else found

    def split(self, start: Offset, end: Offset, parts: int) -> list[ChildPiece]:
        """Cut what each of them has, one source after the other."""
        return [
            ChildPiece(number, piece)
            for number, (name, source) in enumerate(self.sources.items())
            if name in end
            for piece in source.split(self._start(name, start), end[name], parts)
        ]

    def extent(self, start: Offset, end: Offset) -> Extent | None:
        """Add up what the sources have; None when one of them does not know it."""
        found: list[Extent] = []
        for name, source in self.sources.items():
            begin = self._start(name, start)
            one = extent_of(source, begin, end.get(name, begin))
            if one is None:
                return None
            found.append(one)
        if len(found) == 1:
            return found[0]
        _, before, size, total = zip(*found, strict=True)
        return Extent(f"{len(found)} inputs", sum(before), sum(size), sum(total))

    def read(self, piece: ChildPiece, ex: Execution) -> Iterator[Chunk]:
        """Read one piece."""
        return self._of(piece)[1].read(piece.piece, ex)

    def partition(self, piece: ChildPiece) -> str:
        """Name the partition by the source, and by what that calls it."""
        name, source = self._of(piece)
        return f"{name}:{source.partition(piece.piece)}"

    def committed(self, end: Offset) -> None:
        """Tell each how far it is safe."""
        for name, source in self.sources.items():
            if name in end:
                source.committed(end[name])

    def finished(self) -> None:
        """Tell all."""
        for source in self.sources.values():
            source.finished()

    def _of(self, piece: ChildPiece) -> tuple[str, Replayable]:
        return list(self.sources.items())[piece.child]
