"""Rules of sliding windows of mode `event`: each event has the window that ends with it.

It is emitted at once, or when the clock is far enough beyond the event. Sources: eKuiper; Tenzir's
trailing windows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from streamer.window.contract import WindowReason
from streamer.window.keyed.state import FOREVER, FreshMessage, KeyState, MessageRange, Window
from streamer.window.pack.metadata_codec import EMITS
from streamer.window.settings.window_types import Sliding

_NO_RANGES: Final[tuple[MessageRange, ...]] = ()


class PerEventSlidingRules:
    """Rules of mode `event` with windows at once, see `WindowRules`. None stays open.

    Attributes:
        conditions: bits of the conditions that hold for the event that is assigned next.
        is_conditional: whether only some events have a window.
    """

    unit = 1
    tracks_closed = False
    per_event_reason: WindowReason | None = "event"
    non_overlapping = False
    count_based = False
    mergeable = False
    unbounded = False
    conditions = 0

    def __init__(self, settings: Sliding, lateness: int) -> None:
        self._size = settings.size
        self._every = settings.emit_every
        # Times are whole nanoseconds: what lies inside of an open bound is one of them further in.
        self._inset_left = int(settings.is_open_left)
        self._inset_right = int(settings.is_open_right)
        self.is_conditional = settings.conditional
        self._lateness = lateness

    def assign(
        self, state: KeyState, time: int, arrival: int, watermark: int, active: int
    ) -> list[Window] | None:
        """Return the window that ends with an event; none if it is not due; None for a late one."""
        if time < watermark - self._lateness:
            return None
        self._mark_newest(state, time, arrival)
        if not self._is_due(state, time, self._emits):
            return []
        return [Window(time - self._size, time, arrival, 1, active)]

    def close_time(self, window: Window) -> int:
        """Return the watermark after which no window of another event reaches back to the end."""
        return window.end + self._size + self._lateness + 1

    def message_bounds(self, window: Window) -> tuple[int, int]:
        """Return the first and the last instant that belong to a window."""
        return window.start + self._inset_left, window.end - self._inset_right

    def needed_from(self, clock: int) -> int | None:
        """Return the least time in the window of an event that is not late."""
        return clock - self._lateness - self._size

    @property
    def _emits(self) -> bool:
        """Whether the event that is assigned next may emit its window."""
        return not self.is_conditional or bool(self.conditions & EMITS)

    def _mark_newest(self, state: KeyState, time: int, arrival: int) -> None:
        # How long the record is needed depends on the newest time alone.
        if not state.marks or time > state.marks[-1][0]:
            state.marks = [(time, arrival)]

    def _is_due(self, state: KeyState, time: int, emits: bool) -> bool:
        """Return whether the window of an event is emitted; if it is, the next cadence begins.

        The first event begins the first one. A cadence that is over stays due until an event may
        emit its window.

        Args:
            state: the record of its key; it is changed.
            time: the event time, ns.
            emits: whether `emit_when` holds for it.
        """
        if self._every is None:
            return emits
        origin = state.cadence_start
        if origin is None:
            state.cadence_start = time
        elif emits and time >= origin + self._every:
            state.cadence_start = time
            return True
        return False


class WaitingSlidingRules(PerEventSlidingRules):
    """Rules of windows from t - size to t + delay, which wait for the clock; see `WindowRules`.

    The window of an event at t closes when the clock reaches t + delay + lateness. It holds what
    came before the event, and what came after it until the clock was there. Without a delay, it
    holds of the events at t those that came before its own alone.
    """

    per_event_reason = None

    def __init__(self, settings: Sliding, lateness: int) -> None:
        super().__init__(settings, lateness)
        self._delay = settings.delay

    def assign(
        self, state: KeyState, time: int, arrival: int, watermark: int, active: int
    ) -> list[Window] | None:
        """Open the window of an event, unless it cannot be due, or is late."""
        if time < watermark - self._lateness:
            return None
        self._mark_newest(state, time, arrival)
        state.fresh.append(FreshMessage(time, arrival, watermark))
        emits = self._emits
        # Of all events, the earliest one begins the first cadence.
        if not emits and (self._every is None or state.cadence_start is not None):
            return []
        window = Window(time - self._size, time + self._delay, 0, 0, active, opener=arrival)
        window.is_muted = not emits
        state.windows.append(window)
        return [window]

    def close_time(self, window: Window) -> int:
        """Return the end plus the allowed lateness."""
        return window.end + self._lateness

    def sort_windows(self, state: KeyState) -> None:
        """Sort the windows of a key by their events' times, then by arrival."""
        state.windows.sort(key=lambda window: (window.end, window.opener))

    def is_emitted(self, state: KeyState, window: Window) -> bool:
        """Return whether a window that closes is emitted; windows close in order of their times."""
        return self._is_due(state, window.end - self._delay, not window.is_muted)

    def exclude_later(
        self, state: KeyState, window: Window
    ) -> tuple[int | None, tuple[MessageRange, ...]]:
        """Exclude from a window that closes the messages that came when it was closed already.

        Returns:
            The last arrival number that it may hold, None for any; and ranges without it.
        """
        assert window.opener is not None
        if not self._delay:
            return None, ((window.end, window.end, window.opener + 1, FOREVER),)
        fresh, closes = state.fresh, self.close_time(window)
        if _is_in_order(fresh):
            first = bisect_left(fresh, closes, key=lambda one: one.watermark)
            if first == len(fresh):
                return None, _NO_RANGES
            return max(fresh[first].arrival - 1, window.opener), _NO_RANGES
        for one in fresh:
            if one.watermark >= closes and one.arrival > window.opener:
                window.exclude(one.arrival)
        return None, _NO_RANGES


def _is_in_order(fresh: Sequence[FreshMessage]) -> bool:
    return all(one.watermark <= other.watermark for one, other in pairwise(fresh))
