"""Files that only a scanner can cut: how far a micro-batch may go, its pieces, and their reading.

A file is taken whole while it fits into what a micro-batch may take, and is a piece of its own. One
that does not fit is looked through on the driver up to the message that is the last to fit, and is
gone on with from there; so it is read about twice. No file is looked through whose messages are
all of one size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from streamer.message import Execution
from streamer.source.replayable import Chunk, Limit, Raws
from streamer.source.scanning import (
    MOST,
    START,
    Mark,
    Opened,
    Placing,
    ScanError,
    Scanner,
    count_of,
    expansion_of,
    quiet,
)

_SAMPLED = 1 << 14


class Stop(NamedTuple):
    """A place in a row of files: the file's number, and the place in it."""

    number: int
    mark: Mark = START


class Reach(NamedTuple):
    """How far a micro-batch may go.

    Attributes:
        stop: the place.
        messages: about how many messages lie before it.
        at_end: it is behind the last file.
    """

    stop: Stop
    messages: int
    at_end: bool


@dataclass(frozen=True, slots=True)
class ScannedPiece:
    """Messages of one file that follow each other.

    Attributes:
        path: of the file.
        shown: the path as it was written or matched.
        since: where they begin.
        count: how many they are; None for all up to the end of the file.
        anew: whether the file is read from its beginning since it has replaced another one.
    """

    path: str
    shown: str
    since: Mark
    count: int | None
    anew: bool = False


@dataclass(frozen=True, slots=True)
class Scans:
    """Files in a row, and what cuts them.

    Attributes:
        count: the number of files.
        path: the path of a file.
        length: the bytes of a file; None when it has gone.
        scanner: cuts them.
    """

    count: int
    path: Callable[[int], str]
    length: Callable[[int], int | None]
    scanner: Scanner

    def reach(self, start: Stop, limit: Limit) -> Reach:
        """Go on from a place until the limit, but by one message at least."""
        number, mark = start
        messages = size = 0
        while number < self.count:
            length = self.length(number)
            if length is None:
                number, mark = number + 1, START
                continue
            room = Limit(limit.messages - messages, limit.size - size)
            taken = length * expansion_of(self.scanner)
            about = self._about(number, length, room) if mark == START and taken <= room.size else 0
            if not about or about > room.messages:
                if messages and mark == START:
                    return Reach(Stop(number), messages, False)
                found = self._look(number, length, mark, room)
                if found is not None:
                    messages += found.number - mark.number
                    return Reach(Stop(number, found), messages, False)
                about = 1
            messages, size = messages + about, size + taken
            number, mark = number + 1, START
        return Reach(Stop(number), messages, True)

    def _about(self, number: int, length: int, room: Limit) -> int:
        """Return about how many messages a file has, at least one."""
        if isinstance(self.scanner, Placing):
            return max(-(-length // self.scanner.place(1).position), 1)
        unpacked = length * expansion_of(self.scanner)
        if unpacked <= min(_SAMPLED, room.messages):
            # So few bytes are no more messages than fit, whatever they are.
            return max(unpacked // 100, 1)
        mark = START
        for mark in self._marks(number, START, 100):
            if mark.position >= _SAMPLED:
                break
        return max(unpacked * mark.number // (mark.position or 1), 1)

    def _look(self, number: int, length: int, since: Mark, room: Limit) -> Mark | None:
        """Return the mark up to which there is room, or None when that is the end of the file."""
        most = max(room.messages, 1)
        if isinstance(self.scanner, Placing):
            unit = self.scanner.place(1).position
            mark = self.scanner.place(since.number + min(most, max(room.size // unit, 1)))
            return mark if mark.position < length else None
        before = since
        for mark in self._marks(number, since, min(most, MOST)):
            count = mark.number - since.number
            if count > most:
                # Cuts need not be full, so this one can be too long: a shorter one ends right.
                left = most - (before.number - since.number)
                return next(self._marks(number, before, left))
            if count == most or mark.position - since.position >= room.size:
                return mark
            before = mark
        return None

    def _marks(self, number: int, since: Mark, most: int) -> Iterator[Mark]:
        """Look through a file; what cannot be read is its end, and is told when it is read."""
        path = self.path(number)
        try:
            with open(path, "rb", buffering=0) as file:
                for cut in self.scanner.cuts(quiet(file, path), since, most):
                    yield cut.mark
        except (ScanError, OSError):
            return

    def pieces(self, start: Stop, end: Stop, parts: int, shown: Mapping[str, str]) -> Iterator[Any]:
        """Return what lies between two places, a piece for each file.

        A file whose messages are all of one size is cut into about `parts` pieces.
        """
        for number in range(start.number, min(end.number + 1, self.count)):
            since = start.mark if number == start.number else START
            path = self.path(number)
            count = end.mark.number - since.number if number == end.number else None
            length = self.length(number)
            if count == 0 or length is None:
                continue
            for first, of in self._shares(since, count, length, parts):
                yield ScannedPiece(path, shown.get(path, path), first, of)

    def _shares(
        self, since: Mark, count: int | None, length: int, parts: int
    ) -> Iterator[tuple[Mark, int | None]]:
        if not isinstance(self.scanner, Placing):
            yield since, count
            return
        unit = self.scanner.place(1).position
        last = -(-length // unit) if count is None else since.number + count
        share = max(-(-(last - since.number) // parts), (1 << 20) // unit, 1)
        for first in range(since.number, last, share):
            yield self.scanner.place(first), min(share, last - first)


def read_scanned(
    scanner: Scanner, piece: ScannedPiece, meta: Mapping[str, Any], ex: Execution
) -> Iterator[Chunk]:
    """Read the messages of a piece; what the scanner cannot read is logged, and ends the file."""
    left = piece.count
    with open(piece.path, "rb", buffering=0) as file:
        source = Opened(file, piece.shown, meta, ex)
        before = None
        try:
            for cut in scanner.cuts(source, piece.since, MOST if left is None else min(left, MOST)):
                chunk = cut.chunk
                if ex.reading is not None:
                    before = _note_block(file.tell(), before, piece.since, chunk, ex)
                if left is None:
                    yield chunk
                    continue
                count = count_of(chunk)
                yield chunk if count <= left else _first(chunk, left)
                left -= count
                if left <= 0:
                    return
        except ScanError as error:
            ex.log("ERROR", f"Failed to read message: {error}", {"source": piece.shown})
            ex.count("input_error")


def _note_block(position: int, before: int | None, since: Mark, chunk: Chunk, ex: Execution) -> int:
    """Note how many bytes of a file a cut has needed; return the file's position behind it."""
    # What stands before the piece was passed over in one go, unless it had to be unpacked.
    begin = min(since.position, position) if before is None else before
    ex.reading.begin_block(position - begin, count_of(chunk))
    return position


def _first(chunk: Chunk, count: int) -> Chunk:
    """Return the first messages of a chunk; whole batches of them."""
    if isinstance(chunk, Raws):
        return Raws(chunk.raws[:count], chunk.meta)
    found = []
    for batch in chunk:
        if count <= 0:
            break
        found.append(batch)
        count -= len(batch)
    return found
