"""Ranges of times whose messages are given back."""

from __future__ import annotations

from collections.abc import Iterable

from streamer.window.keyed.state import FOREVER

FreeRange = tuple[int, int, int]
"""Between which times messages are given back, both inclusive, and the last arrival number."""


def find_gaps(ranges: Iterable[tuple[int, int]], low: int) -> list[FreeRange]:
    """Return what lies between ranges of times from `low` on; all bounds are inclusive."""
    gaps: list[FreeRange] = []
    for first, last in sorted(ranges):
        if low < first:
            gaps.append((low, first - 1, FOREVER))
        low = max(low, last + 1)
    return [*gaps, (low, FOREVER, FOREVER)] if low <= FOREVER else gaps
