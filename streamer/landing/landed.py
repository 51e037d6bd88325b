"""What has landed in a store, as a replayable source."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from streamer.landing.blocks import HEAD, chunks, header_of, is_whole
from streamer.landing.cutting import cut_with
from streamer.landing.damage import Block, Damage, behind, damaged, is_behind, position_of, walk
from streamer.landing.pointer import UNKNOWN, Position, Safe, read_safe, write_read
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
        store: the store's identity.
        data: the bytes themselves, for workers that do not see the file.
    """

    path: str
    start: int
    end: int
    store: int
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
        return {"segment": 1, "pos": 0, "total": 0}

    def latest(self, start: Offset, now: int, limit: Limit) -> Latest:
        """Go on from `start` through what is safe, until the limit, but by one block at least.

        Raises:
            StreamerError: what comes next is damaged.
        """
        safe = read_safe(self.directory)
        at = position_of(start)
        if not safe.segment:
            return Latest(start, 0)  # It is being opened, or nothing was ever safe.
        if is_behind(safe, at):
            raise behind(self.directory, at)
        messages, size = 0, 0
        most = min(limit.size, _INSIDE) if self.inside else limit.size
        for block in walk(self.directory, at, safe):
            if isinstance(block, Damage):
                if at != position_of(start):
                    # What is before comes out first.
                    return Latest(_offset(at), messages, more=True)
                raise damaged([block])
            if messages and (messages >= limit.messages or size >= most):
                before = block.total - block.messages if block.total != UNKNOWN else UNKNOWN
                here = Position(block.segment, block.start, before, safe.store)
                return Latest(_offset(here), messages, more=True)
            messages += block.messages
            size += block.end - block.start
            at = Position(block.segment, block.end, block.total, safe.store)
        end = Position(safe.segment, safe.size, safe.total, safe.store)
        return Latest(_offset(end), messages, ended=safe.closed)

    def split(self, start: Offset, end: Offset, parts: int) -> list[Stretch]:
        """Cut the blocks between two offsets into pieces of about equal size, in order.

        Raises:
            StreamerError: something between them is damaged.
        """
        found: list[Block] = []
        store = read_safe(self.directory).store
        until = position_of(end)
        for one in walk(
            self.directory,
            position_of(start),
            Safe(until.segment, until.pos, False, store, until.total),
        ):
            if isinstance(one, Damage):
                raise damaged([one])
            if one.messages:
                found.append(one)
        total = sum(block.end - block.start for block in found)
        share = max(-(-total // parts), _SMALLEST)
        pieces: list[Stretch] = []
        for block in found:
            path = str(segment_path(self.directory, block.segment))
            last = pieces[-1] if pieces else None
            joins = last and last.path == path and last.end == block.start
            if last and joins and block.end - last.start <= share:
                pieces[-1] = last._replace(end=block.end)
            else:
                pieces.append(Stretch(path, block.start, block.end, store))
        return [piece._replace(data=_read(piece)) for piece in pieces] if self.inside else pieces

    def read(self, piece: Stretch, ex: Execution) -> Iterator[Chunk]:
        """Read the messages of a piece; requests that wait are noted in the run."""

        def asked(request: str) -> None:
            ex.answers.setdefault(request, [])

        cut = cut_with(self.scanner, ex, self.name)
        data = _read(piece) if piece.data is None else piece.data
        for body in _bodies(piece, data):
            yield from chunks(body, cut, asked)

    def partition(self, piece: Stretch) -> str:
        """There is but one: what lands is in the order in which it came."""
        return ""

    def committed(self, end: Offset) -> None:
        """Delete the segments before the position, the one that ends there too."""
        at = position_of(end)
        number = at.segment
        with suppress(OSError):
            # Without it, more is taken for lost when something is damaged; a disk may be full.
            write_read(self.directory, at)
        whole = number < read_safe(self.directory).segment
        forget(self.directory, number + (whole and at.pos >= self._length(number)))

    def finished(self) -> None:
        """The next start begins with an empty store."""

    def _length(self, number: int) -> int:
        path = segment_path(self.directory, number)
        return path.stat().st_size if path.exists() else 0


def _offset(position: Position) -> Offset:
    return dict(position._asdict())


def _bodies(piece: Stretch, data: bytes) -> Iterator[memoryview]:
    """Return the bodies of the blocks of a piece.

    Raises:
        StreamerError: one of them is not what was written.
    """
    view, at, size = memoryview(data), 0, piece.end - piece.start
    number = int(Path(piece.path).stem)
    while at < size:
        head = bytes(view[at : at + HEAD])
        header = header_of(head, piece.start + at, piece.end, piece.store, number)
        body = view[header.body - piece.start : header.end - piece.start] if header else view[:0]
        if header is None or not is_whole(body, header):
            here = Position(number, piece.start + at)
            lost = header.messages if header else None
            raise damaged([Damage(Path(piece.path), here.pos, here, here, lost)])
        yield body
        at = header.end - piece.start


def _read(piece: Stretch) -> bytes:
    with open(piece.path, "rb", buffering=0) as file:
        file.seek(piece.start)
        held = []
        left = piece.end - piece.start
        while left and (data := file.read(left)):
            held.append(data)
            left -= len(data)
    return held[0] if len(held) == 1 else b"".join(held)
