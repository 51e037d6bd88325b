"""Files read one after another as one stream: how far a micro-batch may go, and its pieces."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from streamer.source.ranges import ByteRange, cut, line_end, mean_line
from streamer.source.replayable import Limit


class Spot(NamedTuple):
    """A position in a series: the file's number and the byte in it."""

    number: int
    position: int


class Reach(NamedTuple):
    """How far a micro-batch may go.

    Attributes:
        spot: the end of a line, or of a file.
        messages: about how many messages lie before it.
        at_end: `spot` is the end of the series as it is now.
    """

    spot: Spot
    messages: int
    at_end: bool


class Series(NamedTuple):
    """Numbered files.

    Attributes:
        first: the number of the first file.
        last: the number of the last file; below `first` when there is none.
        path: the path of a file.
        length: how many bytes of a file may be read now.
        delimiter: what ends a message.
    """

    first: int
    last: int
    path: Callable[[int], str]
    length: Callable[[int], int]
    delimiter: bytes

    def reach(self, start: Spot, limit: Limit) -> Reach:
        """Go on from a position until the limit, but by one message at least."""
        number, position = start
        messages, size = 0.0, 0
        while number <= self.last:
            path, length = self.path(number), self.length(number)
            if length > position:
                mean = mean_line(path, position, self.delimiter)
                room = min(limit.size - size, int((limit.messages - messages) * mean))
                if room <= 0 and messages:
                    return Reach(Spot(number, position), int(messages), False)
                end = line_end(path, position + max(room, 1), length, self.delimiter)
                size += end - position
                messages += max(1.0, (end - position) / mean)
                position = end
                if end < length:
                    return Reach(Spot(number, position), int(messages), False)
            if number == self.last:
                break
            number, position = number + 1, 0
        return Reach(Spot(number, position), int(messages), True)

    def pieces(self, start: Spot, end: Spot, parts: int) -> list[ByteRange]:
        """Cut the bytes between two positions into about `parts` ranges of equal size, in order."""
        wholes: list[ByteRange] = []
        for number in range(start.number, min(end.number, self.last) + 1):
            since = start.position if number == start.number else 0
            until = end.position if number == end.number else self.length(number)
            if until > since:
                wholes.append(ByteRange(self.path(number), since, until))
        total = sum(whole.end - whole.start for whole in wholes)
        pieces: list[ByteRange] = []
        for whole in wholes:
            share = -(-parts * (whole.end - whole.start) // total)
            pieces.extend(cut(whole, share, self.delimiter))
        return pieces
