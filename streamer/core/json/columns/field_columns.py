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
_INVALID: Final = object()


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
        else:
            numbers[named[slot]] = literals.to_numbers(good)
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
        valid, _ = self._read_digits()
        if not valid.all():
            rest = np.flatnonzero(~valid)
            valid[rest] = [one is not _INVALID for one in self._parse(rest)]
        return valid

    def to_numbers(self, good: NDArray[np.bool_]) -> NDArray[Any]:
        """Return the numbers, and take out of `good` what is none."""
        are_digits, values = self._read_digits()
        if are_digits.all():
            return values
        rest = np.flatnonzero(~are_digits)
        parsed = self._parse(rest)
        if 0 in parsed or not set(map(type, parsed)) <= {int, float}:
            # A zero that is not written as `0` may be -0.
            good[rest] &= [type(one) in (int, float) and one != 0 for one in parsed]
            parsed = [one if type(one) in (int, float) else 0 for one in parsed]
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

    def _parse(self, rest: Positions) -> list[Any]:
        """Return the values of some; `_INVALID` for what is none."""
        starts, ends = self._starts[rest], self._ends[rest]
        closed = bytearray(_cut(self._block, starts, ends + 1, pa.binary()).buffers()[2])
        # The byte behind each, which is none of a literal, becomes the comma between it and the
        # next.
        np.frombuffer(closed, np.uint8)[np.cumsum(ends + 1 - starts) - 1] = ord(b",")
        values = _parse_list(bytes(closed[:-1]), len(rest))
        if values is not None:
            return values
        encoded = _cut(self._block, starts, ends, pa.binary()).dictionary_encode()
        distinct = [_parse_list(text, 1) or [_INVALID] for text in encoded.dictionary.to_pylist()]
        return [distinct[place][0] for place in encoded.indices.to_pylist()]


def _parse_list(text: bytes, count: int) -> list[Any] | None:
    """Return literals with commas between; None when one is not valid, or there are not so many."""
    # With another comma, or something that may hold one, there may be as many although one is not
    # what it seems to be.
    if text.count(b",") != count - 1 or any(code in text for code in b'[]{}"'):
        return None
    try:
        values: list[Any] = orjson.loads(b"[%b]" % text)
    except ValueError:
        return None
    return values if len(values) == count else None


def _insert_numbers(
    values: Positions, places: Positions, parsed: list[int | float]
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
