"""Files of lines: read one after another as one stream, in byte ranges that end at ends of lines.

A range is planned on the driver by looking at a few bytes around a cut, so that pieces of one file
are read in parallel, and read in the workers.

"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from streamer.sdk.input.replayable import Limit

_SEARCH_BYTES = 1 << 16
_SAMPLE_BYTES = 1 << 18
BLOCK_BYTES = 2 << 20
"""Bytes that a worker reads at a time; a block is cut at the end of a line."""


class ByteRange(NamedTuple):
    """Bytes `start` (included) to `end` (excluded) of a file; both are ends of lines."""

    path: str
    start: int
    end: int


def find_line_end(path: str | Path, position: int, size: int, delimiter: bytes) -> int:
    """Return the end of the line that holds the byte before `position`, at most `size`.

    A position that is the end of a line is returned as it is. Where delimiters overlap (three line
    breaks, when two are the delimiter), which ones count depends on all that stands before them;
    an end is looked for behind them.
    """
    if position >= size:
        return size
    width = len(delimiter)
    at = max(0, position - 2 * width + 1)
    before = at - width
    with open(path, "rb") as file:
        file.seek(at)
        tail = b""
        while at < size:
            block = file.read(min(_SEARCH_BYTES, size - at))
            if not block:
                return size
            data, base = tail + block, at - len(tail)
            index = data.find(delimiter)
            while index >= 0:
                start = base + index
                if start + width >= position and start - before >= width:
                    return start + width
                before = start
                index = data.find(delimiter, index + 1)
            at += len(block)
            tail = data[-(width - 1) :] if width > 1 else b""
    return size


def is_self_overlapping(delimiter: bytes) -> bool:
    """Return whether a delimiter's end may be the beginning of another one."""
    return any(delimiter.startswith(delimiter[at:]) for at in range(1, len(delimiter)))


def _mean_line_length(path: str | Path, start: int, delimiter: bytes) -> float:
    """Return the mean length of the lines after `start`, in bytes, from a sample."""
    with open(path, "rb") as file:
        file.seek(start)
        sample = file.read(_SAMPLE_BYTES)
    lines = sample.count(delimiter)
    return len(sample) / lines if lines else float(max(len(sample), 1))


def split_range(
    whole: ByteRange, parts: int, delimiter: bytes, min_bytes: int = 1 << 20
) -> list[ByteRange]:
    """Cut a range into at most `parts` ranges of about equal size, at ends of lines."""
    length = whole.end - whole.start
    parts = max(1, min(parts, length // min_bytes))
    pieces: list[ByteRange] = []
    start = whole.start
    for part in range(1, parts + 1):
        target = whole.start + length * part // parts
        end = (
            whole.end if part == parts else find_line_end(whole.path, target, whole.end, delimiter)
        )
        if end > start:
            pieces.append(ByteRange(whole.path, start, end))
            start = end
    return pieces


def read_blocks(piece: ByteRange, delimiter: bytes) -> Iterator[bytes]:
    """Read a range as blocks that end at the end of a line or of the range.

    A line longer than a block is given whole. A file that has become shorter than the range ends
    the reading early. With a delimiter that may overlap itself a range is given whole.
    """
    whole_only = is_self_overlapping(delimiter)
    remaining = piece.end - piece.start
    with open(piece.path, "rb", buffering=0) as file:
        file.seek(piece.start)
        parts: list[bytes | memoryview] = []
        while remaining > 0:
            block = file.read(min(BLOCK_BYTES, remaining))
            if not block:
                break
            remaining -= len(block)
            at = block.rfind(delimiter) if remaining else len(block) - len(delimiter)
            if at < 0 or (whole_only and remaining):
                parts.append(block)
                continue
            end = at + len(delimiter)
            # Views, so that a block is copied once; or never, where it is whole.
            parts.append(block if end == len(block) else memoryview(block)[:end])
            whole = b"".join(parts)
            parts = [block[end:]] if end < len(block) else []
            yield whole
        if parts:
            yield b"".join(parts)


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
                mean = _mean_line_length(path, position, self.delimiter)
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
