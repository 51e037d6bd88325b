"""Byte ranges of files, cut at the ends of lines, so that pieces of one file are read in parallel.

A range is planned on the driver by looking at a few bytes around a cut, and read in the workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

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


def mean_line_length(path: str | Path, start: int, delimiter: bytes) -> float:
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
        parts: list[bytes] = []
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
            parts.append(block[:end])
            whole = b"".join(parts)
            parts = [block[end:]] if end < len(block) else []
            yield whole
        if parts:
            yield b"".join(parts)
