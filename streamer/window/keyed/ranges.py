"""Ranges of times whose messages are given back."""

from __future__ import annotations

from collections.abc import Iterable

from streamer.window.keyed.state import FOREVER

Range = tuple[int, int, int]
"""Between which times messages are given back, both inclusive, and the last arrival number."""


def around(ranges: Iterable[tuple[int, int]], low: int) -> list[Range]:
    """Return what lies between ranges of times from `low` on; all bounds are inclusive."""
    found: list[Range] = []
    for first, last in sorted(ranges):
        if low < first:
            found.append((low, first - 1, FOREVER))
        low = max(low, last + 1)
    return [*found, (low, FOREVER, FOREVER)] if low <= FOREVER else found
