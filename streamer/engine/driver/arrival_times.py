"""Times since when messages wait at an input, by how far its source was seen to reach."""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

_MAX_ARRIVALS: Final = 512
"""Sightings that are kept of one source. With more, neighbours are joined: of what waits for long,
the time is known to one part in a hundred."""


class _Arrival(NamedTuple):
    """The arrivals between two polls.

    Attributes:
        end: the position behind the last message of it.
        at: when the first one was seen, Unix seconds.
    """

    end: int
    at: float


class ArrivalTimes:
    """Remembers when the end of one source was seen where.

    What was there before the first look counts as come then: nobody knows since when it was there.
    """

    def __init__(self) -> None:
        """Begin with a source that nobody has looked at."""
        self._sightings: deque[_Arrival] = deque()
        self._gap_s = 0.0

    def record(self, end: int, at: float) -> None:
        """Take a look.

        Args:
            end: the position behind the newest message.
            at: when it was seen there, Unix seconds.
        """
        some = self._sightings
        while some and end < some[-1].end:
            some.pop()  # The source was made anew.
        if some and some[-1].end == end:
            return
        if some and at - some[-1].at < self._gap_s:
            some[-1] = some[-1]._replace(end=end)
        else:
            some.append(_Arrival(end, at))
        if len(some) > _MAX_ARRIVALS:
            self._merge_neighbours()

    def _merge_neighbours(self) -> None:
        """Join each two neighbours, and those that come later as close as they are then."""
        kept = list(self._sightings)
        joined = [
            _Arrival(later.end, first.at)
            for first, later in zip(kept[::2], kept[1::2], strict=False)
        ]
        self._sightings = deque([*joined, *kept[2 * len(joined) :]])
        self._gap_s = (kept[-1].at - kept[0].at) / len(self._sightings)

    def oldest_arrival(self, position: int) -> float | None:
        """Return when the oldest message behind a position came, Unix seconds.

        Args:
            position: all before it is done, and is forgotten.

        Returns:
            When it was seen first, which is one look later than it came at most; None when nothing
            is behind the position.
        """
        some = self._sightings
        while some and some[0].end <= position:
            some.popleft()
        if not some:
            self._gap_s = 0.0
            return None
        return some[0].at
