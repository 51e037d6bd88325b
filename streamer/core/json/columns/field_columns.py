"""Values of lines of one shape as columns: texts as Arrow's, numbers as numpy's.

All literals of a line are read, not only those that somebody needs: a line that is no valid JSON
somewhere else is no message with fields.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from streamer.core.json.columns.line_block import LineBlock, Positions
from streamer.core.json.columns.line_shape import LiteralSlot, Path, TextSlot
from streamer.core.json.columns.match_lines import MatchedLines

_MAX_DIGITS: Final = 9
"""Whole numbers of so many digits are read by numpy, in as many steps."""

_ZERO: Final = 48
_COMMA: Final = b","


class Columns(NamedTuple):
    """Values of some lines.

    Attributes:
        lines: their numbers in the block, ascending.
        texts: by path, the texts of the lines.
        numbers: by path, their numbers: int64 where all are integers of that size, else float64.
    """

    lines: Positions
    texts: dict[Path, pa.StringArray]
    numbers: dict[Path, NDArray[Any]]

    def select(self, kept: NDArray[np.bool_]) -> Columns:
        """Return the values of some of the lines."""
        arrow_kept = pa.array(kept)
        texts = {path: column.filter(arrow_kept) for path, column in self.texts.items()}
        numbers = {path: column[kept] for path, column in self.numbers.items()}
        return Columns(self.lines[kept], texts, numbers)

    def slice(self, first: int, last: int) -> Columns:
        """Return the values of lines that follow one another, by their places here."""
        texts = {path: one.slice(first, last - first) for path, one in self.texts.items()}
        numbers = {path: column[first:last] for path, column in self.numbers.items()}
        return Columns(self.lines[first:last], texts, numbers)


def read_columns(block: LineBlock, matched: MatchedLines, paths: Iterable[Path]) -> Columns | None:
    """Return the values of lines that have a shape.

    Args:
        block: the lines' block.
        matched: the lines.
        paths: the fields that are needed.

    Returns:
        The values of the lines that have a text or a number in each of the fields, and are valid;
        None when the shape has none for some field, or no line is left.
    """
    slots = {path: matched.shape.slots.get(path) for path in paths}
    if None in slots.values() or not len(matched.lines):
        return None
    good = np.ones(len(matched.lines), np.bool_)
    numbers: dict[Path, NDArray[Any]] = {}
    named = {slot: path for path, slot in slots.items() if isinstance(slot, LiteralSlot)}
    for slot in matched.shape.literals():
        literals = _Literals(block, matched, slot)
        if slot not in named:
            good &= literals.are_valid()
        elif (column := literals.to_numbers(good)) is None:
            return None
        else:
            numbers[named[slot]] = column
    texts = {
        path: _cut_texts(block, matched.boundaries[slot.boundary : slot.boundary + 2])
        for path, slot in slots.items()
        if isinstance(slot, TextSlot)
    }
    columns = Columns(matched.lines, texts, numbers)
    if good.all():
        return columns
    return columns.select(good) if good.any() else None


def _cut_texts(block: LineBlock, quotes: Positions) -> pa.StringArray:
    """Return what is between two quotes of each line."""
    return _cut(block, quotes[0] + 1, quotes[1], pa.string())


def _cut(block: LineBlock, starts: Positions, ends: Positions, kind: pa.DataType) -> Any:
    # An array of all that is in the ranges and between them, of which every other one is taken.
    count = len(starts)
    offsets = np.empty(2 * count, np.int32)
    offsets[0::2], offsets[1::2] = starts, ends
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(block.data)]
    both = pa.Array.from_buffers(kind, 2 * count - 1, buffers)
    return both.take(pa.array(np.arange(0, 2 * count, 2)))


class _Literals:
    """The literals of one slot."""

    def __init__(self, block: LineBlock, matched: MatchedLines, slot: LiteralSlot) -> None:
        self._block = block
        self._starts = matched.boundaries[slot.boundary] + (1 + slot.before)
        self._ends = matched.boundaries[slot.boundary + 1] - slot.after

    def are_valid(self) -> NDArray[np.bool_]:
        """Return which are numbers, booleans or null."""
        digits, _ = self._read_digits()
        if digits.all():
            return digits
        values = self._parse(~digits)
        if values is None:
            return digits
        return np.ones(len(digits), np.bool_)

    def to_numbers(self, good: NDArray[np.bool_]) -> NDArray[Any] | None:
        """Return the numbers, and take out of `good` what is none; None for no number at all."""
        digits, values = self._read_digits()
        rest = ~(digits)
        if not rest.any():
            return values
        parsed = self._parse(rest)
        if parsed is None:
            good &= digits
            return values
        kinds = set(map(type, parsed))
        if not kinds <= {int, float}:
            is_number = np.array([type(one) in (int, float) for one in parsed])
            parsed = [one if type(one) in (int, float) else 0 for one in parsed]
            good[np.flatnonzero(rest)[~is_number]] = False
            kinds = set(map(type, parsed))
        return _insert_numbers(values, rest, parsed)

    def _read_digits(self) -> tuple[NDArray[np.bool_], Positions]:
        """Return which are short whole numbers without a sign, and their values (else 0)."""
        codes, lengths = self._block.codes, self._ends - self._starts
        most = min(int(lengths.max()), _MAX_DIGITS)
        first = codes[self._starts] - np.uint8(_ZERO)
        good = (first < 10) & (lengths <= _MAX_DIGITS)
        values = first.astype(np.int64)
        if most > 1:
            good &= (first > 0) | (lengths == 1)
        for place in range(1, most):
            code = codes[np.minimum(self._starts + place, self._ends)] - np.uint8(_ZERO)
            inside = lengths > place
            good &= (code < 10) | ~inside
            values = np.where(inside, values * 10 + code, values)
        if not good.all():
            values[~good] = 0
        return good, values

    def _parse(self, which: NDArray[np.bool_]) -> list[Any] | None:
        """Return the values of some; None when one is not valid, or may be."""
        starts, ends = self._starts[which], self._ends[which]
        cut = _cut(self._block, starts, ends + 1, pa.binary())
        text = cut.buffers()[2].to_pybytes()
        closed = np.frombuffer(bytearray(text), np.uint8)
        # The byte behind each, which is none of a literal, becomes the comma between it and the
        # next: then it must be that no other comma is there, nor what may hold one.
        places = np.cumsum(ends + 1 - starts) - 1
        closed[places] = _COMMA[0]
        joined = closed[:-1].tobytes()
        if joined.count(_COMMA) != len(places) - 1 or any(code in joined for code in b'[]{}"'):
            return None
        try:
            values = orjson.loads(b"[%b]" % joined)
        except ValueError:
            return None
        return values if len(values) == len(places) else None


def _insert_numbers(
    values: Positions, places: NDArray[np.bool_], parsed: list[int | float]
) -> NDArray[Any]:
    if set(map(type, parsed)) == {int}:
        try:
            values[places] = np.array(parsed, np.int64)
            return values
        except OverflowError:
            pass
    floats = values.astype(np.float64)
    floats[places] = np.array(parsed, np.float64)
    return floats
