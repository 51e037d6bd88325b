"""Rules of tumbling and hopping windows: [start, end) on a grid, or in local days."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamer.window.keyed.state import KeyState, Window
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.window_types import Tumbling


class HoppingRules:
    """Rules of tumbling and hopping windows, see `WindowRules`."""

    unit = 1
    tracks_closed = True
    per_event_reason = None
    count_based = False
    mergeable = False
    unbounded = False

    def __init__(self, window: EventWindow, lateness: int) -> None:
        assert isinstance(window.kind, Tumbling)
        self._kind = window.kind
        self._days = window.days
        self._lateness = lateness
        self.non_overlapping = window.kind.size == window.kind.every
        self.empty = window.kind.empty
        self.needs_edges = self.empty is not None and self.empty.fill != "none"

    def assign(
        self, state: KeyState, time: int, arrival: int, watermark: int, active: int
    ) -> list[Window] | None:
        """Add an event to the windows that hold its time and that the watermark has not closed."""
        if self.non_overlapping and len(state.windows) == 1:
            # Nearly every event finds the one window of its key open.
            only = state.windows[0]
            if only.start <= time < only.end and watermark < only.end + self._lateness:
                only.add(arrival, active)
                return state.windows
        changed = []
        there = {(window.start, window.end): window for window in state.windows}
        for start, end in self._window_bounds(time):
            window = there.get((start, end))
            if watermark >= end + self._lateness or (start, end) in state.closed_bounds:
                if window is not None:
                    window.exclude(arrival)
                continue
            if window is None:
                window = Window(start, end, arrival, 0, active)
                state.windows.append(window)
            window.add(arrival, active)
            changed.append(window)
        return changed or None

    def extend_over(
        self, window: Window, times: Sequence[int], first: int, last: int, watermark: int
    ) -> int:
        """Return the first row whose time is not in a window, see `SessionRules.extend_over`."""
        start, end = window.start, window.end
        if watermark >= end + self._lateness:
            return first
        for row in range(first, last):
            if not start <= times[row] < end:
                return row
        return last

    def close_time(self, window: Window) -> int:
        """Return the end plus the allowed lateness."""
        return window.end + self._lateness

    def message_bounds(self, window: Window) -> tuple[int, int]:
        """Return the first and the last instant of a window."""
        return window.start, window.end - 1

    def needed_from(self, clock: int) -> int | None:
        """Return None: no message is kept for windows yet to open."""
        return None

    def start_of(self, time: int) -> int:
        """Return the start of the last window that holds a time, ns."""
        return next(self._window_bounds(time))[0]

    def end_of(self, start: int) -> int:
        """Return the end of a window, ns."""
        if self._days is None:
            return start + self._kind.size
        return self._days.begin_of(self._days.day_of(start) + self._kind.size_days)

    def next_start(self, start: int) -> int:
        """Return the start of the window after the one with a start, ns."""
        if self._days is None:
            return start + self._kind.every
        day = self._days.day_of(start) + self._kind.every_days
        while (following := self._days.begin_of(day)) <= start:
            day += self._kind.every_days  # a date that a zone left out
        return following

    def _window_bounds(self, time: int) -> Iterator[tuple[int, int]]:
        kind = self._kind
        if self._days is None:
            start = time - (time - kind.offset) % kind.every
            while time < start + kind.size:
                yield start, start + kind.size
                start -= kind.every
            return
        day = self._days.day_of(time)
        day -= day % kind.every_days
        while (end := self._days.begin_of(day + kind.size_days)) > time:
            yield self._days.begin_of(day), end
            day -= kind.every_days
