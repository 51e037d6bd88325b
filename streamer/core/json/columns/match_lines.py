"""Compares lines with a shape, many at a time."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamer.core.json.columns.line_block import LineBlock, LineRange, Positions, find_bytes
from streamer.core.json.columns.line_shape import FixedBytes, LineShape

_QUOTE: Final = 34
_WORD_BYTES: Final = 8


class MatchedLines(NamedTuple):
    """Lines that have a shape.

    Attributes:
        shape: the shape.
        lines: their numbers in the block, ascending.
        boundaries: by boundary of the shape and line, its position; the start of a line is that of
            the byte in front of it.
    """

    shape: LineShape
    lines: Positions
    boundaries: Positions


class QuotedLines:
    """Lines with the positions of their quotes."""

    def __init__(self, lines: LineRange) -> None:
        """Find the quotes of lines."""
        block = self._block = lines.block
        self._numbers = np.arange(lines.first, lines.last)
        start, end = int(block.starts[lines.first]), int(block.ends[lines.last - 1])
        self._quotes = find_bytes(block.codes, start, end, lambda part: part == _QUOTE)
        self._counts: Positions | None = None

    def match(self, shape: LineShape, among: Positions | None) -> MatchedLines:
        """Return the lines that have a shape.

        Args:
            shape: the shape.
            among: which lines to compare, by their places in the range; None for all.
        """
        lines, boundaries = self._lines_with(shape.quotes, among)
        if not len(lines):
            return MatchedLines(shape, lines, boundaries)
        good = _compare(self._block, shape, boundaries)
        if good.all():
            return MatchedLines(shape, lines, boundaries)
        return MatchedLines(shape, lines[good], boundaries[:, good])

    def _lines_with(self, quotes: int, among: Positions | None) -> tuple[Positions, Positions]:
        """Return the numbers and the boundaries of the lines that have so many quotes."""
        numbers = self._numbers
        if among is None and (own := self._split_evenly(quotes)) is not None:
            return numbers, self._add_ends(numbers, own)
        if self._counts is None:
            ends = self._block.ends[numbers]
            self._counts = np.diff(np.searchsorted(self._quotes, ends), prepend=0)
        have = self._counts == quotes
        places = np.flatnonzero(have) if among is None else among[have[among]]
        firsts = (np.cumsum(self._counts) - self._counts)[places]
        own = self._quotes[firsts + np.arange(quotes)[:, None]]
        return numbers[places], self._add_ends(numbers[places], own)

    def _split_evenly(self, quotes: int) -> Positions | None:
        """Return the quotes by place and line if every line has so many."""
        if len(self._quotes) != quotes * len(self._numbers):
            return None
        own = self._quotes.reshape(-1, quotes)
        block, numbers = self._block, self._numbers
        first, last = numbers[0], numbers[-1] + 1
        inside = (own[:, 0] >= block.starts[first:last]) & (own[:, -1] < block.ends[first:last])
        return own.T if inside.all() else None

    def _add_ends(self, numbers: Positions, own: Positions) -> Positions:
        block = self._block
        boundaries = np.empty((len(own) + 2, len(numbers)), np.int64)
        boundaries[0] = block.starts[numbers] - 1
        boundaries[1:-1] = own
        boundaries[-1] = block.ends[numbers]
        return boundaries


def _compare(block: LineBlock, shape: LineShape, boundaries: Positions) -> NDArray[np.bool_]:
    """Return which lines have all fixed bytes of a shape, and no empty literal."""
    good = np.ones(boundaries.shape[1], np.bool_)
    if block.odd_lines is not None:
        good &= ~block.odd_lines[np.searchsorted(block.ends, boundaries[-1])]
    for fixed in shape.fixed:
        if fixed.until is not None and fixed.before is None:
            gap = boundaries[fixed.until] - boundaries[fixed.boundary]
            good &= gap == len(fixed.text) + 1
        elif fixed.until is not None and fixed.until != fixed.boundary:
            gap = boundaries[fixed.until] - boundaries[fixed.boundary]
            good &= gap == len(fixed.text) - (fixed.before or 0)
    for slot in shape.literals():
        gap = boundaries[slot.boundary + 1] - boundaries[slot.boundary]
        good &= gap > slot.before + slot.after + 1
    # Only now all places are inside of their lines.
    for fixed in shape.fixed:
        if fixed.text:
            start = boundaries[fixed.boundary] + (1 if fixed.before is None else -fixed.before)
            good &= _have_bytes(block, np.where(good, start, 0), fixed)
    return good


def _have_bytes(block: LineBlock, starts: Positions, fixed: FixedBytes) -> NDArray[np.bool_]:
    """Return where there are some bytes, by words of eight as far as there are so many."""
    text, codes = fixed.text, block.codes
    if len(text) < _WORD_BYTES or len(codes) < _WORD_BYTES:
        equal: NDArray[np.bool_] = codes.take(starts, mode="clip") == text[0]
        for place in range(1, len(text)):
            equal &= codes.take(starts + place, mode="clip") == text[place]
        return equal
    # A word at every byte of the block, which is no copy.
    words = np.ndarray(len(codes) - _WORD_BYTES + 1, "<u8", block.data, strides=(1,))
    places = [*range(0, len(text) - _WORD_BYTES, _WORD_BYTES), len(text) - _WORD_BYTES]
    equal = np.ones(len(starts), np.bool_)
    for place in places:
        word = np.frombuffer(text, "<u8", 1, place)[0]
        # Beyond the end is the last word, which has a newline, and so differs. (`take` would copy.)
        equal &= words[np.minimum(starts + place, len(words) - 1)] == word
    return equal
