"""Where the messages of a key lie in the packs of a micro-batch."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter

from streamer.window.keyed.pages import Fresh

Segment = tuple[Fresh, int, int]
"""Messages of one key in a pack that came in, in order of arrival: the page, the first row, and the
one after the last. There may be a million in a micro-batch: it is a plain tuple."""

Line = tuple[int, int, int, Fresh, int]
"""A message: its arrival and time, the clock before it, its page and row."""


def in_order(segments: list[Segment]) -> Iterable[Line]:
    """Give the messages of a key, in order of arrival."""
    if len(segments) == 1:
        page, first, last = segments[0]
        return (line_of(page, row) for row in range(first, last))
    lines = [line_of(page, row) for page, first, last in segments for row in range(first, last)]
    lines.sort(key=itemgetter(0))
    return lines


def line_of(page: Fresh, row: int) -> Line:
    """Return a message of a page."""
    arrivals, times = page.listed
    time, before, lags = times[row], page.before, page.lags
    if lags is not None and lags[row]:
        before = max(before, time + lags[row])
    return arrivals[row], time, before, page, row
