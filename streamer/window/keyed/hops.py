"""Tumbling and hopping windows: [start, end) on a grid, or from one local day to another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamer.window.event import EventWindow
from streamer.window.keyed.state import KeyState, Window
from streamer.window.kinds import Tumbling


class Hops:
    """The rules; see `rules.Rules`."""

    unit = 1
    remembers = True
    at_once = None
    timeless = False
    joins = False

    def __init__(self, window: EventWindow, lateness: int) -> None:
        assert isinstance(window.kind, Tumbling)
        self._kind = window.kind
        self._days = window.days
        self._lateness = lateness
        self.disjoint = window.kind.size == window.kind.every

    def take(
        self, state: KeyState, time: int, arrival: int, before: int, active: int
    ) -> list[Window] | None:
        """Put an event into the windows that hold its time and are open for it."""
        if self.disjoint and len(state.windows) == 1:
            # Nearly every event finds the one window of its key open.
            only = state.windows[0]
            if only.start <= time < only.end and before < only.end + self._lateness:
                only.take(arrival, active)
                return state.windows
        changed = []
        there = {(window.start, window.end): window for window in state.windows}
        for start, end in self._bounds(time):
            window = there.get((start, end))
            if before >= end + self._lateness or (start, end) in state.remembered:
                if window is not None:
                    window.exclude(arrival)
                continue
            if window is None:
                window = Window(start, end, arrival, 0, active)
                state.windows.append(window)
            window.take(arrival, active)
            changed.append(window)
        return changed or None

    def stretch(
        self, window: Window, times: Sequence[int], first: int, last: int, before: int
    ) -> int:
        """Return the first message that does not simply lie in a window; see `Sessions.stretch`."""
        start, end = window.start, window.end
        if before >= end + self._lateness:
            return first
        for row in range(first, last):
            if not start <= times[row] < end:
                return row
        return last

    def closes_at(self, window: Window) -> int:
        """Return the end and the lateness after it."""
        return window.end + self._lateness

    def inside(self, window: Window) -> tuple[int, int]:
        """Return the first and the last instant of a window."""
        return window.start, window.end - 1

    def kept_from(self, clock: int) -> int | None:
        """Nothing is kept for windows yet to come."""
        return None

    def _bounds(self, time: int) -> Iterator[tuple[int, int]]:
        kind = self._kind
        if self._days is None:
            start = time - (time - kind.offset) % kind.every
            while time < start + kind.size:
                yield start, start + kind.size
                start -= kind.every
            return
        day = self._days.day_of(time)
        day -= day % kind.every_days
        while (end := self._days.begin(day + kind.size_days)) > time:
            yield self._days.begin(day), end
            day -= kind.every_days
