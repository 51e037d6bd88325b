"""Rules of windows without end: one for each key, which takes every message."""

from __future__ import annotations

from collections.abc import Sequence

from streamer.window.keyed.state import FOREVER, MIN_TIME_NS, KeyState, Window


class UnboundedRules:
    """Rules of windows without end, see `WindowRules`.

    An aggregated window holds no message; its `first` is the message that came last, which is at
    hand whenever the window is emitted, since nothing but a message changes it.
    """

    unit = 1
    tracks_closed = False
    per_event_reason = None
    non_overlapping = True
    count_based = False
    mergeable = False
    unbounded = True

    def assign(
        self, state: KeyState, time: int, arrival: int, watermark: int, active: int
    ) -> list[Window] | None:
        """Add an event to the window of its key; it is never late."""
        if not state.windows:
            state.windows.append(Window(MIN_TIME_NS, FOREVER, arrival, 0, active))
        window = state.windows[0]
        window.add(arrival, active)
        window.first = arrival
        return state.windows

    def extend_over(
        self, window: Window, times: Sequence[int], first: int, last: int, watermark: int
    ) -> int:
        """Return the row after the last: all messages are in the window."""
        return last

    def close_time(self, window: Window) -> int:
        """Return `FOREVER`."""
        return FOREVER

    def message_bounds(self, window: Window) -> tuple[int, int]:
        """Return the times of the window's first and last message, or of all there may be."""
        return window.start, window.end

    def needed_from(self, clock: int) -> int | None:
        """Return None: no message is kept for windows yet to open."""
        return None
