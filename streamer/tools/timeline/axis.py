"""A time axis on which stretches where nothing happens are shortened."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

BREAK_WIDTH: Final = 26.0
"""Pixels of a stretch that is shortened."""

_MIN_STRETCH_WIDTH: Final = 40.0


@dataclass(frozen=True, slots=True)
class Stretch:
    """A piece of the axis: times `begin` to `end` (ns) from `left` to `right` (pixels)."""

    begin: int
    end: int
    left: float
    right: float


@dataclass(frozen=True)
class Axis:
    """Times to pixels; times within a shortened stretch are put evenly into its gap.

    Attributes:
        stretches: those that are not shortened, in order.
    """

    stretches: tuple[Stretch, ...]

    @classmethod
    def build(
        cls, busy: Iterable[tuple[int, int]], max_gap: int, left: float, width: float
    ) -> Axis:
        """Make an axis.

        Args:
            busy: intervals in which something happens, ns.
            max_gap: the longest stretch between them that is not shortened, ns.
            left: where it begins, pixels.
            width: how wide it is; it grows with the number of shortened stretches.
        """
        merged: list[list[int]] = []
        for begin, end in sorted(busy):
            if merged and begin - merged[-1][1] <= max_gap:
                merged[-1][1] = max(merged[-1][1], end)
            else:
                merged.append([begin, end])
        whole = sum(end - begin for begin, end in merged) or 1
        available = max(width - BREAK_WIDTH * (len(merged) - 1), _MIN_STRETCH_WIDTH * len(merged))
        spare = available - _MIN_STRETCH_WIDTH * len(merged)
        stretches = []
        for begin, end in merged:
            right = left + _MIN_STRETCH_WIDTH + spare * (end - begin) / whole
            stretches.append(Stretch(begin, end, left, right))
            left = right + BREAK_WIDTH
        return cls(tuple(stretches))

    @property
    def right(self) -> float:
        """The end of the axis, pixels."""
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
        return one.right + BREAK_WIDTH * (at - one.end) / (following.begin - one.end)
