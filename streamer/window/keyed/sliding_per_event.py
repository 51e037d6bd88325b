"""Rules of sliding windows of mode `event`: each event emits the window that ends with it.

Source: eKuiper.
"""

from __future__ import annotations

from streamer.window.contract import WindowReason
from streamer.window.keyed.state import KeyState, Window


class PerEventSlidingRules:
    """Rules of mode `event`, see `WindowRules`. No window stays open after its event."""

    unit = 1
    tracks_closed = False
    per_event_reason: WindowReason = "event"
    non_overlapping = False
    count_based = False
    mergeable = False
    unbounded = False

    def __init__(self, size: int, lateness: int) -> None:
        self._size = size
        self._lateness = lateness

    def assign(
        self, state: KeyState, time: int, arrival: int, watermark: int, active: int
    ) -> list[Window] | None:
        """Return the window that ends with an event, unless the event is late."""
        if time < watermark - self._lateness:
            return None
        # How long the record is needed depends on the newest time alone.
        if not state.marks or time > state.marks[-1][0]:
            state.marks = [(time, arrival)]
        return [Window(time - self._size, time, arrival, 1, active)]

    def close_time(self, window: Window) -> int:
        """Return the watermark after which no window of another event reaches back to the end."""
        return window.end + self._size + self._lateness + 1

    def message_bounds(self, window: Window) -> tuple[int, int]:
        """Return the bounds, which are inclusive."""
        return window.start, window.end

    def needed_from(self, clock: int) -> int | None:
        """Return the least time in the window of an event that is not late."""
        return clock - self._lateness - self._size
