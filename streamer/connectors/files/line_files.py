"""Files read one after another as one stream: how far a micro-batch may go, and its pieces."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from streamer.connectors.files.byte_ranges import (
    ByteRange,
    find_line_end,
    mean_line_length,
    split_range,
)
from streamer.sdk.input.replayable import Limit


class BytePosition(NamedTuple):
    """A position in a series: the file's number and the byte in it."""

    number: int
    position: int


class BatchEnd(NamedTuple):
    """The bounds of a micro-batch.

    Attributes:
        position: the end of a line, or of a file.
        messages: about how many messages lie before it.
        is_at_end: `position` is the end of the series as it is now.
    """

    position: BytePosition
    messages: int
    is_at_end: bool


class LineFiles(NamedTuple):
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

    def find_batch_end(self, start: BytePosition, limit: Limit) -> BatchEnd:
        """Go on from a position until the limit, but by one message at least."""
        number, position = start
        messages, size = 0.0, 0
        while number <= self.last:
            path, length = self.path(number), self.length(number)
            if length > position:
                mean = mean_line_length(path, position, self.delimiter)
                remaining_bytes = min(limit.size - size, int((limit.messages - messages) * mean))
                if remaining_bytes <= 0 and messages:
                    return BatchEnd(BytePosition(number, position), int(messages), False)
                end = find_line_end(
                    path, position + max(remaining_bytes, 1), length, self.delimiter
                )
                size += end - position
                messages += max(1.0, (end - position) / mean)
                position = end
                if end < length:
                    return BatchEnd(BytePosition(number, position), int(messages), False)
            if number == self.last:
                break
            number, position = number + 1, 0
        return BatchEnd(BytePosition(number, position), int(messages), True)

    def split(self, start: BytePosition, end: BytePosition, parts: int) -> list[ByteRange]:
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
            pieces.extend(split_range(whole, share, self.delimiter))
        return pieces
