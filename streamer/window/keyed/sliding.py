"""Rules of sliding windows that open with an event: KIP-450's, and those of Kafka Streams."""

from __future__ import annotations

from typing import Final

from streamer.core.durations import MILLISECOND
from streamer.window.keyed.state import FOREVER, FreshMessage, KeyState, Window


class ForwardSlidingRules:
    """A window [t, t + size] for every distinct event time t; see `WindowRules`."""

    unit = 1
    tracks_closed = True
    per_event_reason = None
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
        """Add an event to the open windows around it, and open its own."""
        joined = self._join_open_windows(state, time, arrival, watermark, active)
        self._mark(state, time, arrival, watermark)
        opened = self._open_window(state, time, watermark, active)
        if not joined and not opened:
            self._unmark(state)
            return None
        state.windows += opened
        return joined + opened

    def close_time(self, window: Window) -> int:
        """Return the first watermark past the end plus the allowed lateness."""
        return window.end + self._lateness + self.unit

    def message_bounds(self, window: Window) -> tuple[int, int]:
        """Return the bounds, which are inclusive."""
        return window.start, window.end

    def needed_from(self, clock: int) -> int | None:
        """Return the least time that a window yet to open may hold."""
        return clock - self._lateness - self._size - self.unit

    def _join_open_windows(
        self, state: KeyState, time: int, arrival: int, watermark: int, active: int
    ) -> list[Window]:
        """Add an event to the open windows around it."""
        joined = []
        for window in state.windows:
            if window.start <= time <= window.end:
                if watermark >= self.close_time(window):
                    window.exclude(arrival)
                    continue
                window.add(arrival, active)
                joined.append(window)
        return joined

    def _open_window(
        self, state: KeyState, start: int, watermark: int, active: int
    ) -> list[Window]:
        """Return the window that begins at `start`, if an event opens it: one in a list, or none.

        It holds earlier messages, too: a message belongs to a window that was not closed by the
        watermark before the message, whether the window was open then or not.
        """
        end = start + self._size
        window = Window(start, end, 0, 0, active)
        closes_at = self.close_time(window)
        if watermark >= closes_at or (start, end) in state.closed_bounds:
            return []
        if any(other.start == start for other in state.windows):
            return []
        shut = {one.arrival for one in state.fresh if one.watermark >= closes_at}
        firsts = [
            arrival for time, arrival in state.marks if start <= time <= end and arrival not in shut
        ]
        if not firsts:
            return []
        window.first, window.count = min(firsts), len(firsts)
        known = set(firsts)
        window.fresh = min((o.arrival for o in state.fresh if o.arrival in known), default=FOREVER)
        for one in state.fresh:
            if one.arrival in shut and start <= one.time <= end:
                window.exclude(one.arrival)
        return [window]

    def _mark(self, state: KeyState, time: int, arrival: int, watermark: int) -> None:
        state.marks.append((time, arrival))
        state.fresh.append(FreshMessage(time, arrival, watermark))

    def _unmark(self, state: KeyState) -> None:
        state.marks.pop()
        state.fresh.pop()


_MILLISECOND: Final = MILLISECOND


class KafkaSlidingRules(ForwardSlidingRules):
    """Windows in whole milliseconds: [t - size, t] for every event time t, and a right window.

    The right window, [t + 1 ms, t + 1 ms + size], opens when a message falls into it.
    """

    unit = _MILLISECOND

    def assign(
        self, state: KeyState, time: int, arrival: int, watermark: int, active: int
    ) -> list[Window] | None:
        """Add an event to the open windows around it, and open those that it causes."""
        time -= time % _MILLISECOND
        joined = self._join_open_windows(state, time, arrival, watermark, active)
        earlier = {mark for mark, _ in state.marks if mark < time}
        self._mark(state, time, arrival, watermark)
        # Its left window, and the right ones of earlier messages that it falls into.
        starts = {time - self._size}
        starts.update(
            mark + _MILLISECOND for mark in earlier if time <= mark + _MILLISECOND + self._size
        )
        opened = [
            w
            for start in sorted(starts)
            for w in self._open_window(state, start, watermark, active)
        ]
        if not joined and not opened:
            self._unmark(state)
            return None
        # Its own right window, when it comes before messages that fall into it.
        opened += self._open_window(state, time + _MILLISECOND, watermark, active)
        state.windows += opened
        return joined + opened

    def needed_from(self, clock: int) -> int | None:
        """Return the least time that a window yet to open may hold, or begin just after."""
        return super().needed_from(clock - clock % _MILLISECOND)

    def message_bounds(self, window: Window) -> tuple[int, int]:
        """Return the range of its messages' times, which are not rounded."""
        return window.start, window.end + _MILLISECOND - 1
