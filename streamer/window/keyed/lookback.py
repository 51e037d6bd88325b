"""Sliding windows of mode `event`: every event looks back at once (eKuiper)."""

from __future__ import annotations

from streamer.window.emission import WindowReason
from streamer.window.keyed.state import KeyState, Window


class Lookback:
    """The rules; see `rules.Rules`. Nothing stays open: a window comes out with its event."""

    unit = 1
    remembers = False
    at_once: WindowReason = "event"
    disjoint = False
    timeless = False
    joins = False

    def __init__(self, size: int, lateness: int) -> None:
        self._size = size
        self._lateness = lateness

    def take(
        self, state: KeyState, time: int, arrival: int, before: int, active: int
    ) -> list[Window] | None:
        """Return the window that ends with an event, unless the event is late."""
        if time < before - self._lateness:
            return None
        # The newest time alone tells how long the record is needed.
        if not state.marks or time > state.marks[-1][0]:
            state.marks = [(time, arrival)]
        return [Window(time - self._size, time, arrival, 1, active)]

    def closes_at(self, window: Window) -> int:
        """Return when nothing may look back at the window's end any more."""
        return window.end + self._size + self._lateness + 1

    def inside(self, window: Window) -> tuple[int, int]:
        """Return the bounds, which are inclusive."""
        return window.start, window.end

    def kept_from(self, clock: int) -> int | None:
        """Return the oldest time that an event which is not late may look back at."""
        return clock - self._lateness - self._size
