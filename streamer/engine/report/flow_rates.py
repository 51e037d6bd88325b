"""Rates of counters, over the last seconds of a stream's micro-batches.

Counters grow with each micro-batch, by all at once that came since the one before. Two looks at
them say more about the looks than about the stream. So a rate is what was counted between two
micro-batches that lie some seconds apart, by the time between these two.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final

WINDOW_S: Final = 10.0
"""Seconds that a rate is over, at least, once the stream runs that long."""

_MIN_GAP_S: Final = 1.0
"""Seconds between two moments that are remembered, so that there are no more than a dozen."""

Totals = Mapping[str, float]
_Point = tuple[float, Totals]


class FlowRates:
    """Remembers counters as of the newest micro-batches. Threads may ask while it is added to.

    Attributes:
        is_known: whether the rates are those of now; false while a micro-batch takes very long, and
            while nothing runs.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self.is_known = True
        self._points: deque[_Point] = deque()

    def reset(self, at: float) -> None:
        """Begin anew: all counters are zero."""
        self._points, self.is_known = deque([(at, {})]), True

    def add(self, since: float, until: float, totals: Totals) -> None:
        """Add the counters after a micro-batch.

        Args:
            since: when what it has taken in began to come, s.
            until: when that ended.
            totals: the counters.
        """
        self.is_known = True
        self.pass_time(since)
        self._points = _append(self._points, until, totals)

    def pass_time(self, until: float, totals: Totals | None = None) -> None:
        """Note that nothing was counted until then, or no more than some totals."""
        points = self._points
        if points and until > points[-1][0]:
            totals = points[-1][1] if totals is None else {**points[-1][1], **totals}
            self._points = _append(points, until, totals)

    def rate(self, key: str) -> float | None:
        """Return how fast a counter grows, per second; None where nobody can tell."""
        points = self._points
        if len(points) < 2 or not self.is_known:
            return None
        (first, before), (last, after) = points[0], points[-1]
        if key not in after or last <= first:
            return None
        return max(after[key] - before.get(key, 0.0), 0.0) / (last - first)


def _append(points: deque[_Point], at: float, totals: Totals) -> deque[_Point]:
    """Return points with another one, without what is too old, or too close to others."""
    kept = deque(points)
    if len(kept) > 1 and kept[-1][0] - kept[-2][0] < _MIN_GAP_S:
        kept.pop()
    kept.append((at, totals))
    while len(kept) > 1 and kept[1][0] <= at - WINDOW_S:
        kept.popleft()
    return kept
