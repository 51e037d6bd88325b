"""A time axis on which stretches where nothing happens are folded."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

FOLD: Final = 26.0
"""Pixels of a stretch that is folded."""

_LEAST: Final = 40.0


@dataclass(frozen=True, slots=True)
class Stretch:
    """A piece of the axis: times `begin` to `end` (ns) from `left` to `right` (pixels)."""

    begin: int
    end: int
    left: float
    right: float


@dataclass(frozen=True)
class Axis:
    """Times to pixels; times within a folded stretch are put evenly into the fold.

    Attributes:
        stretches: those that are not folded, in order.
    """

    stretches: tuple[Stretch, ...]

    @classmethod
    def of(cls, busy: Iterable[tuple[int, int]], longest: int, left: float, width: float) -> Axis:
        """Make an axis.

        Args:
            busy: intervals in which something happens, ns.
            longest: the longest stretch between them that is not folded, ns.
            left: where it begins, pixels.
            width: how wide it is; it grows with the number of folds.
        """
        merged: list[list[int]] = []
        for begin, end in sorted(busy):
            if merged and begin - merged[-1][1] <= longest:
                merged[-1][1] = max(merged[-1][1], end)
            else:
                merged.append([begin, end])
        whole = sum(end - begin for begin, end in merged) or 1
        room = max(width - FOLD * (len(merged) - 1), _LEAST * len(merged))
        spare = room - _LEAST * len(merged)
        stretches = []
        for begin, end in merged:
            right = left + _LEAST + spare * (end - begin) / whole
            stretches.append(Stretch(begin, end, left, right))
            left = right + FOLD
        return cls(tuple(stretches))

    @property
    def right(self) -> float:
        """Where the axis ends, pixels."""
        return self.stretches[-1].right

    def x(self, at: int) -> float:
        """Return the place of a time, pixels."""
        index = bisect_right(self.stretches, at, key=lambda one: one.begin) - 1
        one = self.stretches[max(index, 0)]
        if at <= one.end:
            share = (at - one.begin) / ((one.end - one.begin) or 1)
            return one.left + (one.right - one.left) * min(max(share, 0.0), 1.0)
        if index + 1 == len(self.stretches):
            return one.right
        following = self.stretches[index + 1]
        return one.right + FOLD * (at - one.end) / (following.begin - one.end)
