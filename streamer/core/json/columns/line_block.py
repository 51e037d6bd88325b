"""Lines of one block of bytes, as the positions where they begin and end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, overload

import numpy as np
from numpy.typing import NDArray

Positions = NDArray[np.int64]

_SCAN_BYTES: Final = 1 << 16
"""Bytes that are searched at once: so few that what is found stays in the processor's cache."""

_MAX_BLOCK_BYTES: Final = 1 << 28

_NEWLINE: Final = 10
_FIRST_PRINTABLE: Final = 32
_BACKSLASH: Final = 92
_LAST_ASCII: Final = 127


class LineBlock:
    """Lines, each of which ends with a newline.

    Attributes:
        data: the bytes.
        codes: the same as an array.
        starts: by line, the position of its first byte.
        ends: by line, the position of its newline.
        odd_lines: by line, whether it has a control character or a backslash, or is no valid UTF-8;
            None for no such line.
        lines: the lines, where they were there before the block.
    """

    def __init__(self, data: bytes, ends: Positions | None = None) -> None:
        """Find the lines.

        Args:
            data: ends with a newline.
            ends: where newlines are, and no other control character is; None to find them.
        """
        self.data = data
        self.lines: list[bytes] | None = None
        self.codes: NDArray[np.uint8] = np.frombuffer(data, np.uint8)
        odd: list[Positions] = []
        if ends is None:
            ends = find_bytes(self.codes, 0, len(data), lambda part: part < _FIRST_PRINTABLE)
            is_newline = self.codes[ends] == _NEWLINE
            if not is_newline.all():
                odd, ends = [ends[~is_newline]], ends[is_newline]
        self.ends: Positions = ends
        self.starts: Positions = np.empty_like(self.ends)
        self.starts[0] = 0
        self.starts[1:] = self.ends[:-1] + 1
        if b"\\" in data:
            odd.append(find_bytes(self.codes, 0, len(data), lambda part: part == _BACKSLASH))
        if not data.isascii() and not _is_utf8(data):
            odd.append(self._find_invalid_lines())
        self.odd_lines: NDArray[np.bool_] | None = None
        if odd:
            self.odd_lines = np.zeros(len(self.ends), np.bool_)
            self.odd_lines[np.searchsorted(self.ends, np.concatenate(odd))] = True

    def _find_invalid_lines(self) -> Positions:
        """Return the ends of lines that are no valid UTF-8."""
        places = find_bytes(self.codes, 0, len(self.data), lambda part: part > _LAST_ASCII)
        numbers = np.unique(np.searchsorted(self.ends, places))
        return self.ends[[number for number in numbers if not _is_utf8(self.line(number))]]

    def __len__(self) -> int:
        """Return the number of lines."""
        return len(self.ends)

    @property
    def max_length(self) -> int:
        """Bytes of the longest line."""
        return int((self.ends - self.starts).max())

    def line(self, number: int) -> bytes:
        """Return a line without its newline."""
        if self.lines is not None:
            return self.lines[number]
        return self.data[self.starts[number] : self.ends[number]]


class LineRange(Sequence[bytes]):
    """Some lines of a block that follow one another; each is cut out when it is taken.

    Attributes:
        block: the block.
        first: the number of the first line.
        last: the number of the one after the last line.
    """

    def __init__(self, block: LineBlock, first: int, last: int) -> None:
        """Take the lines from `first` to before `last`."""
        self.block = block
        self.first = first
        self.last = last

    @classmethod
    def of_data(cls, data: bytes) -> LineRange | None:
        """Return all lines of some bytes; None where these are too many."""
        if not data or len(data) > _MAX_BLOCK_BYTES:
            return None
        block = LineBlock(data if data.endswith(b"\n") else data + b"\n")
        return cls(block, 0, len(block))

    @classmethod
    def of_lines(cls, lines: list[bytes]) -> LineRange | None:
        """Return lines as one block; None where one has a newline in it, or they are too many."""
        joined = cls.of_data(b"\n".join([*lines, b""]))
        if joined is None or len(joined) != len(lines):
            return None
        joined.block.lines = lines
        return joined

    @classmethod
    def of_ends(cls, data: bytes, ends: Positions) -> LineRange | None:
        """Return lines that end at places, with newlines; None where one has a control character.

        Args:
            data: the lines.
            ends: of each, the position of its newline.
        """
        if len(data) > _MAX_BLOCK_BYTES:
            return None
        codes = np.frombuffer(data, np.uint8)
        # So none is but the newlines.
        if int(np.count_nonzero(codes < _FIRST_PRINTABLE)) != len(ends):
            return None
        return cls(LineBlock(data, ends), 0, len(ends))

    def __len__(self) -> int:
        """Return the number of lines."""
        return self.last - self.first

    @overload
    def __getitem__(self, index: int) -> bytes: ...

    @overload
    def __getitem__(self, index: slice) -> LineRange: ...

    def __getitem__(self, index: int | slice) -> Any:
        """Return a line, or lines that follow one another."""
        if isinstance(index, slice):
            first, last, _ = index.indices(len(self))
            return LineRange(self.block, self.first + first, self.first + max(first, last))
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        return self.block.line(index % len(self) + self.first)

    def __iter__(self) -> Iterator[bytes]:
        """Give the lines in their order."""
        return iter(self.to_list())

    def to_list(self) -> list[bytes]:
        """Return the lines."""
        block = self.block
        if block.lines is not None:
            return block.lines[self.first : self.last]
        if self.first == self.last:
            return []
        start, end = block.starts[self.first], block.ends[self.last - 1]
        return block.data[start:end].split(b"\n")

    def take(self, places: Positions) -> list[bytes]:
        """Return some of them, by their places in the range."""
        if self.block.lines is not None:
            return [self.block.lines[place] for place in (places + self.first).tolist()]
        data, numbers = self.block.data, places + self.first
        bounds = zip(
            self.block.starts[numbers].tolist(), self.block.ends[numbers].tolist(), strict=True
        )
        return [data[start:end] for start, end in bounds]

    @property
    def lengths(self) -> Positions:
        """By line, its bytes."""
        places = slice(self.first, self.last)
        return self.block.ends[places] - self.block.starts[places]


def find_bytes(
    codes: NDArray[np.uint8],
    start: int,
    end: int,
    test: Callable[[NDArray[np.uint8]], NDArray[np.bool_]],
) -> Positions:
    """Return the positions between two where a test of bytes is true."""
    parts = []
    for begin in range(start, end, _SCAN_BYTES):
        places = np.flatnonzero(test(codes[begin : min(begin + _SCAN_BYTES, end)]))
        if begin:
            places += begin
        parts.append(places)
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
