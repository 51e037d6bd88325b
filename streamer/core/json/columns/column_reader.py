"""Reads the fields of many lines as columns, with the shapes that lines have had before."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streamer.core.json.columns.field_columns import Columns, read_columns
from streamer.core.json.columns.line_block import LineRange, Positions
from streamer.core.json.columns.line_shape import LineShape, Path, learn_shape
from streamer.core.json.columns.match_lines import QuotedLines

ColumnMode = Literal["auto", "always", "never"]
"""When lines are read as columns: where that is expected to pay, or for tests always or never."""

_MIN_LINES: Final = 256
"""Fewer lines are parsed one by one in less time."""

_MAX_SHAPES: Final = 8
_SHAPES_PER_RANGE: Final = 2
"""Shapes that are learnt of one range of lines at most."""

_PROBED_LINES: Final = 256
_MAX_MISSED_SHARE: Final = 1 / 2
_MAX_FAILURES: Final = 6
"""With so many a reader tries no more: a range of which few lines were of use is two of them, and
another one makes up for one."""


class ColumnReader:
    """Reads the same fields of all lines that it is given.

    What it does depends on the lines alone, so that a replay does the same.

    Attributes:
        is_worthwhile: whether the lines so far let one expect that it reads most of those to come.
    """

    def __init__(self, paths: Iterable[Path], mode: ColumnMode = "auto") -> None:
        """Take the fields that are needed."""
        self._is_forced = mode == "always"
        self._paths = tuple(dict.fromkeys(paths))
        self._shapes: list[LineShape] = []
        self._failures = 0

    @property
    def is_worthwhile(self) -> bool:
        """Whether another range of lines is worth the attempt."""
        return self._is_forced or self._failures < _MAX_FAILURES

    @property
    def min_lines(self) -> int:
        """So many lines are read together at least."""
        return 1 if self._is_forced else _MIN_LINES

    def read(self, lines: LineRange) -> Columns | None:
        """Return the values of the lines that have a known shape.

        Returns:
            The values; lines that are missing in it must be parsed by themselves. None when these
            are too many.
        """
        if not self.is_worthwhile or len(lines) < self.min_lines:
            return None
        if self._is_forced:
            return self._read(lines)
        if not self._shapes and not self._has_common_shape(lines):
            # Streams of which not even the first lines are alike are not tried again and again.
            self._failures = _MAX_FAILURES
            return None
        columns = self._read(lines)
        if columns is None or 2 * len(columns.lines) < len(lines):
            self.judge(0)
            return None
        return columns

    def judge(self, share: float) -> bool:
        """Note of which share of the last lines the values were of use; return whether of enough.

        Args:
            share: of them; 1 for all.
        """
        if self._is_forced or share >= 1 - _MAX_MISSED_SHARE:
            self._failures = max(self._failures - 1, 0)
            return True
        self._failures += 2
        return False

    def _has_common_shape(self, lines: LineRange) -> bool:
        """Return whether a few lines have few shapes, so that it pays to try with all."""
        few = LineRange(lines.block, lines.first, lines.first + min(_PROBED_LINES, len(lines)))
        columns = self._read(few)
        return columns is not None and len(columns.lines) >= (1 - _MAX_MISSED_SHARE) * len(few)

    def _read(self, lines: LineRange) -> Columns | None:
        quoted = QuotedLines(lines)
        missing: Positions | None = None
        read: list[Columns] = []
        learnt = tried = 0
        while missing is None or len(missing):
            if tried == len(self._shapes):
                if learnt == _SHAPES_PER_RANGE or not self._learn_shape(lines, missing):
                    break
                learnt += 1
            shape = self._shapes[tried]
            tried += 1
            matched = quoted.match(shape, missing)
            columns = read_columns(lines.block, matched, self._paths)
            if columns is not None:
                read.append(columns)
                missing = _remove_lines(lines, missing, columns.lines)
        return _merge_columns(read)

    def _learn_shape(self, lines: LineRange, missing: Positions | None) -> bool:
        """Learn the shape of the first line that has none yet; return whether it is a new one."""
        if len(self._shapes) >= _MAX_SHAPES:
            return False
        number = lines.first + (0 if missing is None else int(missing[0]))
        odd = lines.block.odd_lines
        if odd is not None and odd[number]:
            return False
        shape = learn_shape(lines.block.line(number))
        if shape is None or any(path not in shape.slots for path in self._paths):
            return False
        self._shapes.append(shape)
        return True


def _remove_lines(lines: LineRange, among: Positions | None, numbers: Positions) -> Positions:
    """Return the places of lines in a range without those of some numbers."""
    kept = np.zeros(len(lines), np.bool_) if among is not None else np.ones(len(lines), np.bool_)
    if among is not None:
        kept[among] = True
    kept[numbers - lines.first] = False
    return np.flatnonzero(kept)


def _merge_columns(read: list[Columns]) -> Columns | None:
    """Return columns of lines of several shapes as one, in the order of the lines."""
    if len(read) < 2:
        return read[0] if read else None
    lines = np.concatenate([one.lines for one in read])
    order = np.argsort(lines)
    places = pa.array(order)
    texts = {
        path: pa.concat_arrays([one.texts[path] for one in read]).take(places)
        for path in read[0].texts
        if all(path in one.texts for one in read)
    }
    numbers: dict[Path, NDArray[Any]] = {
        path: np.concatenate([one.numbers[path] for one in read])[order]
        for path in read[0].numbers
        if all(path in one.numbers for one in read)
    }
    return Columns(lines[order], texts, numbers)
