"""Where the messages of a key lie in the packs of a micro-batch."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import NamedTuple

from streamer.window.keyed.pages import Page


class Segment(NamedTuple):
    """Messages of one key in a pack that came in, in order of arrival."""

    page: Page
    first: int
    last: int
    before: int
    partition: bytes


def in_order(segments: list[Segment]) -> Iterator[tuple[int, int, int, bytes, Page, int]]:
    """Give the messages of a key: arrival, time, clock before, partition, page and row."""
    if len(segments) == 1:
        return _of_segment(segments[0])
    every = [one for segment in segments for one in _of_segment(segment)]
    every.sort(key=itemgetter(0))
    return iter(every)


def _of_segment(segment: Segment) -> Iterator[tuple[int, int, int, bytes, Page, int]]:
    page, first, last, base, partition = segment
    arrivals, times = page.listed
    lags = page.pack.lags
    for row in range(first, last):
        time = times[row]
        lag = 0 if lags is None else int(lags[row])
        yield arrivals[row], time, max(base, time + lag) if lag else base, partition, page, row
