"""Several sources as one: each goes on from an offset of its own, and pieces know their child."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from streamer.core.execution import Execution
from streamer.sdk.input.input_context import InputContext, open_input
from streamer.sdk.input.replayable import (
    Chunk,
    FileExtent,
    LatestOffset,
    Limit,
    Offset,
    ReplayableSource,
    announce_pieces,
    earliest_poll,
    extent_of,
    next_poll_of,
    watch_all,
)


class ChildPiece(NamedTuple):
    """A piece of one of the sources.

    Attributes:
        child: the source's number, from 0.
        piece: what it made in `split`.
    """

    child: int
    piece: Any


def source_path_of(piece: Any) -> tuple[int, ...]:
    """Return the numbers of the sources that a piece is from, the outermost first."""
    return (piece.child, *source_path_of(piece.piece)) if isinstance(piece, ChildPiece) else ()


@dataclass(frozen=True)
class MergedSource:
    """Sources side by side; an offset has each one's own, by name.

    A source that an offset does not name is new, and begins at its beginning.

    Attributes:
        sources: by name; names are what offsets and partitions are told apart by, so that they stay
            the same from one start to the next. None has a colon in it.
    """

    sources: Mapping[str, ReplayableSource]

    def open(self, context: InputContext) -> MergedSource:
        """Return this source with its children opened, each in a context of its name."""
        of = {
            name: open_input(source, context.child(name)) for name, source in self.sources.items()
        }
        return replace(self, sources=of)

    def initial_offset(self) -> Offset:
        """Return where all of them begin."""
        return {name: source.initial_offset() for name, source in self.sources.items()}

    def latest_offset(self, start: Offset, now: int, limit: Limit) -> LatestOffset:
        """Let each take an equal share of the limit; what some do not need goes to the others."""
        count = len(self.sources)
        share = Limit(max(limit.messages // count, 1), max(limit.size // count, 1))
        latest_by_name = {name: self._latest_of(name, start, now, share) for name in self.sources}
        behind = [name for name, latest in latest_by_name.items() if latest.has_more]
        if behind and len(behind) < count:
            free = sum(
                share.messages - latest_by_name[n].waiting
                for n in latest_by_name
                if n not in behind
            )
            more = max(free, 0) / share.messages / len(behind)
            larger = Limit(int(share.messages * (1 + more)), int(share.size * (1 + more)))
            latest_by_name |= {name: self._latest_of(name, start, now, larger) for name in behind}
        return LatestOffset(
            {name: latest.offset for name, latest in latest_by_name.items()},
            sum(latest.waiting for latest in latest_by_name.values()),
            is_ended=all(latest.is_ended for latest in latest_by_name.values()),
            has_more=any(latest.has_more for latest in latest_by_name.values()),
        )

    def _latest_of(self, name: str, start: Offset, now: int, limit: Limit) -> LatestOffset:
        return self.sources[name].latest_offset(self._child_offset(name, start), now, limit)

    def _child_offset(self, name: str, start: Offset) -> Offset:
        offset: Offset | None = start.get(name)
        return self.sources[name].initial_offset() if offset is None else offset

    def watch(self, wake: Callable[[], None]) -> None:
        """Have each of the sources wake the planner."""
        watch_all(self.sources.values(), wake)

    def next_poll(self, start: Offset, now: int) -> int | None:
        """Return when the first of the sources is to be polled."""
        return earliest_poll(
            next_poll_of(source, self._child_offset(name, start), now)
            for name, source in self.sources.items()
        )

    def split(self, start: Offset, end: Offset, parts: int) -> list[ChildPiece]:
        """Cut what each of them has, one source after the other."""
        return [
            ChildPiece(number, piece)
            for number, (name, source) in enumerate(self.sources.items())
            if name in end
            for piece in source.split(self._child_offset(name, start), end[name], parts)
        ]

    def extent_between(self, start: Offset, end: Offset) -> FileExtent | None:
        """Add up what the sources have; None when one of them does not know it."""
        extents: list[FileExtent] = []
        for name, source in self.sources.items():
            begin = self._child_offset(name, start)
            one = extent_of(source, begin, end.get(name, begin))
            if one is None:
                return None
            extents.append(one)
        if len(extents) == 1:
            return extents[0]
        _, before, size, total = zip(*extents, strict=True)
        return FileExtent(f"{len(extents)} inputs", sum(before), sum(size), sum(total))

    def announce(self, pieces: Sequence[ChildPiece]) -> None:
        """Pass each source those of its pieces that a task is about to read."""
        for number, source in enumerate(self.sources.values()):
            announce_pieces(source, [one.piece for one in pieces if one.child == number])

    def read(self, piece: ChildPiece, ex: Execution) -> Iterator[Chunk]:
        """Read one piece."""
        return self._child_of(piece)[1].read(piece.piece, ex)

    def partition_of(self, piece: ChildPiece) -> str:
        """Name the partition by the source, and by what that calls it."""
        name, source = self._child_of(piece)
        return f"{name}:{source.partition_of(piece.piece)}"

    def on_committed(self, end: Offset) -> None:
        """Pass the end that is committed to each source."""
        for name, source in self.sources.items():
            if name in end:
                source.on_committed(end[name])

    def on_finished(self) -> None:
        """Pass the end of the run to each source."""
        for source in self.sources.values():
            source.on_finished()

    def _child_of(self, piece: ChildPiece) -> tuple[str, ReplayableSource]:
        return list(self.sources.items())[piece.child]
