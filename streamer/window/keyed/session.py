"""Rules of session windows: bounds are inclusive, and events in between merge sessions.

With a maximum duration, a session is cut at a multiple of it, or that long after its start. With a
maximum number of messages, it closes with the message that makes it full.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from streamer.window.keyed.state import KeyState, Window, WindowRun
from streamer.window.keyed.window_aggregate import merge_window_aggregates
from streamer.window.settings.window_types import Session

_START_OF: Final = attrgetter("start")


class SessionRules:
    """Rules of sessions, see `WindowRules`."""

    unit = 1
    # An event near a closed session begins another one.
    tracks_closed = False
    per_event_reason = None
    non_overlapping = True
    count_based = False
    mergeable = True
    unbounded = False

    def __init__(self, settings: Session, lateness: int) -> None:
        """Take the settings.

        Args:
            settings: of the sessions.
            lateness: for how long they wait for late messages, ns.
        """
        self.expects_keys = bool(settings.expected)
        self._gap = settings.gap
        self._length = length = settings.max_duration
        self._from_start = settings.max_duration_origin == "start"
        self._lateness = lateness
        # A cut counted from the start may come before the gap has passed.
        self._lone_gap = self._gap
        if length is not None and self._from_start:
            self._lone_gap = min(self._gap, length)

    def assign(
        self, state: KeyState, time: int, arrival: int, watermark: int, active: int
    ) -> list[Window] | None:
        """Add an event to the open sessions near it, which become one; or open a session."""
        windows = state.windows
        # Nearly every event finds the one session of its key, which has no cut, and stays in it.
        if len(windows) == 1:
            session = windows[0]
            gap, end = self._gap, session.end
            if (
                session.cut is None
                and session.start - gap <= time <= end + gap
                and watermark <= end + gap + self._lateness
            ):
                if time > end:
                    session.end = time
                elif time < session.start:
                    session.start = time
                session.add(arrival, active)
                return windows
        if not windows and watermark <= time + self._lone_gap + self._lateness:
            windows.append(self._new_session(time, arrival, active))
            return windows
        near = [window for window in windows if self._is_near(window, time, watermark)]
        if not near and watermark > time + self._lone_gap + self._lateness:
            return None
        session = self._new_session(time, arrival, active)
        return [self._join_near(windows, near, session, watermark)]

    def _join_near(
        self, windows: list[Window], near: list[Window], joined: Window, watermark: int
    ) -> Window:
        """Replace open sessions by one that has a new one's event too; return it.

        Args:
            windows: the open sessions of the key.
            near: those that the event is near to.
            joined: the new session of the event alone.
            watermark: the watermark before the event, ns.
        """
        if len(near) > 1:
            near.sort(key=_START_OF)
        merged, joined = self._merge_all(near, joined, watermark)
        for session in merged:
            windows.remove(session)
        windows.append(joined)
        return joined

    def _merge_all(
        self, near: list[Window], joined: Window, watermark: int
    ) -> tuple[list[Window], Window]:
        """Merge the sessions near an event, in order of their starts, with that of the event alone.

        Returns:
            Those that are merged, which none behind a cut is; and the session of all.
        """
        merged = []
        for session in near:
            if not merged or joined.cut is None or session.start <= joined.cut:
                merged.append(session)
                joined = self._merge_into(session, joined, watermark)
        return merged, joined

    def extend_over(
        self, window: Window, times: Sequence[int], first: int, last: int, watermark: int
    ) -> int:
        """Extend the only session of a key over consecutive messages in or near it.

        Args:
            window: the session; only its start and end are changed.
            times: event times by row, in order of arrival, ns.
            first: the first row.
            last: the row after the last.
            watermark: the watermark before each of the messages is at most this, ns.

        Returns:
            The first row that the session was not extended over.
        """
        gap, start, end = self._gap, window.start, window.end
        if window.cut is not None or watermark > end + gap + self._lateness:
            return first
        low, high = start - gap, end + gap
        for row in range(first, last):
            time = times[row]
            if time > end:
                if time > high:
                    break
                end, high = time, time + gap
            elif time < start:
                if time < low:
                    break
                start, low = time, time - gap
        else:
            row = last
        window.start, window.end = start, end
        return row

    def expires_at(self, time: int) -> int:
        """Return the clock at which a session closes whose only message has a time, ns."""
        return time + self._lone_gap + self._lateness + 1

    def expected_until(self, run: WindowRun) -> int:
        """Return the event time, ns, before which a message of an expected key is in time."""
        return run.until - self._lateness

    def close_time(self, window: Window) -> int:
        """Return the first instant after the gap or the cut, plus the allowed lateness."""
        limit = window.end + self._gap
        if window.cut is not None:
            limit = min(limit, window.cut)
        return limit + self._lateness + 1

    def message_bounds(self, window: Window) -> tuple[int, int]:
        """Return the bounds, which are inclusive."""
        return window.start, window.end

    def needed_from(self, clock: int) -> int | None:
        """Return None: no message is kept for windows yet to open."""
        return None

    def _new_session(self, time: int, arrival: int, active: int) -> Window:
        cut = self._cut_after(time)
        return Window(time, time, arrival, 1, active, cut, fresh=arrival, last=arrival)

    def _is_near(self, window: Window, time: int, watermark: int) -> bool:
        return (
            window.start - self._gap <= time <= window.end + self._gap
            and (window.cut is None or time <= window.cut)
            and watermark < self.close_time(window)
        )

    def _cut_after(self, start: int) -> int | None:
        """Return the last instant of a session with a start, by its longest duration; or None.

        It is the first multiple of the duration that is more than it after the start.
        """
        length = self._length
        if length is None:
            return None
        return start + length if self._from_start else (start // length + 2) * length

    def _merge_into(self, session: Window, other: Window, watermark: int) -> Window:
        """Merge a session with an earlier one, or with a new one of a single event.

        If that moves the start, the cut becomes that of the new start, unless the watermark before
        the event or the end of the merged session lies past it: then the old cut stays.
        """
        end = max(session.end, other.end)
        cut = session.cut
        if other.start < session.start and other.cut is not None:
            cut = session.cut if max(end, watermark) > other.cut else other.cut
        return Window(
            min(session.start, other.start),
            end,
            min(session.first, other.first),
            session.count + other.count,
            max(session.active, other.active),
            cut,
            fresh=min(session.fresh, other.fresh),
            aggregate=merge_window_aggregates(session.aggregate, other.aggregate),
            last=max(session.last, other.last),
        )


class LimitedSessionRules(SessionRules):
    """Rules of sessions with a maximum number of messages.

    The event that makes a session full closes it at once. Sessions near an event that together
    would hold more do not merge: the earlier ones close. So open sessions never lie among each
    other's messages, as without a maximum.
    """

    def __init__(self, settings: Session, lateness: int) -> None:
        """Take the settings, see `SessionRules`."""
        super().__init__(settings, lateness)
        assert settings.max_count is not None
        self._max_count = settings.max_count

    def assign(
        self, state: KeyState, time: int, arrival: int, watermark: int, active: int
    ) -> list[Window] | None:
        """Add an event to the open sessions near it, which become one; or open a session."""
        windows = state.windows
        near = [window for window in windows if self._is_near(window, time, watermark)]
        if not near and watermark > time + self._lone_gap + self._lateness:
            return None
        near.sort(key=_START_OF)
        lone = self._new_session(time, arrival, active)
        merged, joined = self._merge_all(near, lone, watermark)
        while joined.count > self._max_count:
            earliest = near.pop(0)
            windows.remove(earliest)
            state.close_full(earliest, arrival)
            merged, joined = self._merge_all(near, lone, watermark)
        for session in merged:
            windows.remove(session)
        if joined.count == self._max_count:
            state.close_full(joined, arrival)
        else:
            windows.append(joined)
        return [joined]


class MessageGapRules(SessionRules):
    """Rules of sessions whose messages bring gaps of their own.

    An event covers the times from its own to its gap later. Events whose times overlap or touch
    are in one session, however they come in: with one gap for all, these are the same sessions.

    Attributes:
        message_gap: the gap of the event that is assigned next, ns; None for the usual one.
    """

    message_gap: int | None = None

    def assign(
        self, state: KeyState, time: int, arrival: int, watermark: int, active: int
    ) -> list[Window] | None:
        """Add an event to the open sessions that it overlaps, which become one; or open one."""
        reach = time + (self.message_gap or self._gap)
        windows = state.windows
        near = [
            window
            for window in windows
            if window.start <= reach and self._is_near(window, time, watermark)
        ]
        if not near and watermark > self._lone_reach(time, reach) + self._lateness:
            return None
        session = self._new_session(time, arrival, active)
        session.reach = reach
        return [self._join_near(windows, near, session, watermark)]

    def _lone_reach(self, time: int, reach: int) -> int:
        """Return the time up to which another event belongs to the session of one alone."""
        if self._length is None or not self._from_start:
            return reach
        return min(reach, time + self._length)

    def close_time(self, window: Window) -> int:
        """Return the first instant after its reach or the cut, plus the allowed lateness."""
        assert window.reach is not None
        limit = window.reach if window.cut is None else min(window.reach, window.cut)
        return limit + self._lateness + 1

    def _is_near(self, window: Window, time: int, watermark: int) -> bool:
        assert window.reach is not None
        return (
            time <= window.reach
            and (window.cut is None or time <= window.cut)
            and watermark < self.close_time(window)
        )

    def _merge_into(self, session: Window, other: Window, watermark: int) -> Window:
        merged = super()._merge_into(session, other, watermark)
        assert session.reach is not None
        assert other.reach is not None
        merged.reach = max(session.reach, other.reach)
        return merged
