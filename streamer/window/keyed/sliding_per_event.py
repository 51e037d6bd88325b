"""Sliding windows of mode `event`: every event looks back at once (eKuiper)."""

from __future__ import annotations

from streamer.window.contract.emission import WindowReason
from streamer.window.keyed.state import KeyState, Window


class PerEventSlidingRules:
    """The rules; see `rules.Rules`. Nothing stays open: a window comes out with its event."""

    unit = 1
    tracks_closed = False
    per_event_reason: WindowReason = "event"
    non_overlapping = False
    count_based = False
    mergeable = False

    def __init__(self, size: int, lateness: int) -> None:
        self._size = size
        self._lateness = lateness

    def assign(
        self, state: KeyState, time: int, arrival: int, watermark: int, active: int
    ) -> list[Window] | None:
        """Return the window that ends with an event, unless the event is late."""
        if time < watermark - self._lateness:
            return None
        # The newest time alone tells how long the record is needed.
        if not state.marks or time > state.marks[-1][0]:
            state.marks = [(time, arrival)]
        return [Window(time - self._size, time, arrival, 1, active)]

    def close_time(self, window: Window) -> int:
        """Return when nothing may look back at the window's end any more."""
        return window.end + self._size + self._lateness + 1

    def message_bounds(self, window: Window) -> tuple[int, int]:
        """Return the bounds, which are inclusive."""
        return window.start, window.end

    def needed_from(self, clock: int) -> int | None:
        """Return the oldest time that an event which is not late may look back at."""
        return clock - self._lateness - self._size
