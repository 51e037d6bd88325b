"""What has landed in a store, as a replayable source."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from streamer.landing.blocks import Block, blocks, bodies, chunks
from streamer.landing.cutting import cut_with
from streamer.landing.store import read_safe
from streamer.message import Execution
from streamer.source.replayable import Chunk, Latest, Limit, Offset
from streamer.source.spool import forget, segment_path

_SMALLEST = 1 << 20
_INSIDE = 32 << 20
"""Bytes of a micro-batch that travel inside of its tasks, at most: Spark refuses a task that is too
large (`spark.rpc.message.maxSize`), and the driver's heap holds them more than once."""


class Stretch(NamedTuple):
    """Blocks of one segment.

    Attributes:
        path: the segment's.
        start: where the first block begins.
        end: where the last one ends.
        data: the bytes themselves, for workers that do not see the file.
    """

    path: str
    start: int
    end: int
    data: bytes | None = None


@dataclass(frozen=True)
class Landed:
    """A store as a source; an offset is a segment and a position in it.

    Attributes:
        directory: the store's.
        scanner: cuts records that are not cut yet; None when there are none.
        name: of what the messages came from, for the log.
        inside: whether the bytes travel in the pieces, since workers do not see the store.
    """

    directory: Path
    scanner: Any = None
    name: str = ""
    inside: bool = False

    def initial(self) -> Offset:
        """Return the beginning of the first segment."""
        return {"segment": 1, "pos": 0}

    def latest(self, start: Offset, now: int, limit: Limit) -> Latest:
        """Go on from `start` through what is safe, until the limit, but by one block at least."""
        safe = read_safe(self.directory)
        number, position = start["segment"], start["pos"]
        messages, size = 0, 0
        most = min(limit.size, _INSIDE) if self.inside else limit.size
        while number <= safe.segment:
            end = safe.size if number == safe.segment else self._length(number)
            for block in self._blocks(number, position, end):
                if messages and (messages >= limit.messages or size >= most):
                    return Latest({"segment": number, "pos": block.start}, messages, more=True)
                messages += block.messages
                size += block.end - block.start
                position = block.end
            if number == safe.segment:
                break
            number, position = number + 1, 0
        return Latest({"segment": number, "pos": position}, messages, ended=safe.closed)

    def split(self, start: Offset, end: Offset, parts: int) -> list[Stretch]:
        """Cut the blocks between two offsets into pieces of about equal size, in order."""
        found: list[tuple[int, Block]] = []
        for number in range(start["segment"], end["segment"] + 1):
            since = start["pos"] if number == start["segment"] else 0
            until = end["pos"] if number == end["segment"] else self._length(number)
            found += [(number, one) for one in self._blocks(number, since, until) if one.messages]
        total = sum(block.end - block.start for _, block in found)
        share = max(-(-total // parts), _SMALLEST)
        pieces: list[Stretch] = []
        for number, block in found:
            path = str(segment_path(self.directory, number))
            last = pieces[-1] if pieces else None
            if last and last.path == path and block.end - last.start <= share:
                pieces[-1] = last._replace(end=block.end)
            else:
                pieces.append(Stretch(path, block.start, block.end))
        return [piece._replace(data=_read(piece)) for piece in pieces] if self.inside else pieces

    def read(self, piece: Stretch, ex: Execution) -> Iterator[Chunk]:
        """Read the messages of a piece; requests that wait are noted in the run."""

        def asked(request: str) -> None:
            ex.answers.setdefault(request, [])

        cut = cut_with(self.scanner, ex, self.name)
        data = _read(piece) if piece.data is None else piece.data
        for body in bodies(data):
            yield from chunks(body, cut, asked)

    def partition(self, piece: Stretch) -> str:
        """There is but one: what lands is in the order in which it came."""
        return ""

    def committed(self, end: Offset) -> None:
        """Delete the segments before the position, the one that ends there too."""
        number = end["segment"]
        whole = number < read_safe(self.directory).segment
        forget(self.directory, number + (whole and end["pos"] >= self._length(number)))

    def finished(self) -> None:
        """The next start begins with an empty store."""

    def _length(self, number: int) -> int:
        path = segment_path(self.directory, number)
        return path.stat().st_size if path.exists() else 0

    def _blocks(self, number: int, start: int, end: int) -> Iterator[Block]:
        if end <= start:
            return
        file = os.open(segment_path(self.directory, number), os.O_RDONLY)
        try:
            yield from blocks(file, start, end)
        finally:
            os.close(file)


def _read(piece: Stretch) -> bytes:
    with open(piece.path, "rb", buffering=0) as file:
        file.seek(piece.start)
        held = []
        left = piece.end - piece.start
        while left and (data := file.read(left)):
            held.append(data)
            left -= len(data)
    return held[0] if len(held) == 1 else b"".join(held)
