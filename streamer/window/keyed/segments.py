"""Where the messages of a key lie in the packs of a micro-batch."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter

from streamer.window.keyed.loaded_pack import FreshPack

Segment = tuple[FreshPack, int, int]
"""Messages of one key in a pack that came in, in order of arrival: the page, the first row, and the
one after the last. There may be a million in a micro-batch: it is a plain tuple."""

MessageRow = tuple[int, int, int, FreshPack, int]
"""A message: its arrival and time, the clock before it, its page and row."""


def iterate_in_order(segments: list[Segment]) -> Iterable[MessageRow]:
    """Give the messages of a key, in order of arrival."""
    if len(segments) == 1:
        loaded, first, last = segments[0]
        return (make_message_row(loaded, row) for row in range(first, last))
    rows = [
        make_message_row(loaded, row)
        for loaded, first, last in segments
        for row in range(first, last)
    ]
    rows.sort(key=itemgetter(0))
    return rows


def make_message_row(loaded: FreshPack, row: int) -> MessageRow:
    """Return a message of a page."""
    arrivals, times = loaded.arrivals_and_times
    time, watermark, lags = times[row], loaded.watermark, loaded.lags
    if lags is not None and lags[row]:
        watermark = max(watermark, time + lags[row])
    return arrivals[row], time, watermark, loaded, row
