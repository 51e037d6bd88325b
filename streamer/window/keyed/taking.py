"""Puts the messages of a key into its windows, one after another in the order of their arrival.

Nearly every message of a session, or of a tumbling window, simply lies in the one window that its
key has open. As many such ones as follow one another are taken together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from streamer.window.emission import WindowReason
from streamer.window.keyed.counts import Counts
from streamer.window.keyed.folds import Folds
from streamer.window.keyed.hops import Hops
from streamer.window.keyed.lates import Dropped, Lates
from streamer.window.keyed.pending import Pending
from streamer.window.keyed.ranges import around
from streamer.window.keyed.rules import Rules
from streamer.window.keyed.segments import Line, Segment, in_order, line_of
from streamer.window.keyed.sessions import Sessions
from streamer.window.keyed.state import FOREVER, NEVER, KeyState, Window
from streamer.window.kinds import EventTime

Stretch = Callable[[Window, Sequence[int], int, int, int], int]


class Taking:
    """Takes the messages of one micro-batch.

    Attributes:
        taken: how many were put into windows.
        late: those that found all their windows closed.
    """

    def __init__(
        self,
        rules: Rules,
        settings: EventTime,
        folds: Folds,
        pending: Pending,
        now: int,
        active: int,
        by_key: bool,
        follow: bool,
    ) -> None:
        """Prepare.

        Args:
            rules: of the kind of windows.
            settings: of their times.
            folds: folds messages.
            pending: is told what comes out.
            now: T, ns.
            active: the running time, by which idleness is told.
            by_key: each key has a clock of its own.
            follow: all messages of each page have arrived before those of the next.
        """
        self._rules = rules
        self._retention = settings.key_retention
        self._folds = folds if folds.needed else None
        self._pending = pending
        self._now = now
        self._active = active
        self._by_key = by_key
        self._follow = follow
        self._reason: WindowReason | None = rules.at_once
        if self._reason is None and settings.emit == "each":
            self._reason = "each"
        self._stretch: Stretch | None = None
        if isinstance(rules, Sessions | Hops) and rules.disjoint:
            self._stretch = None if by_key or self._reason is not None else rules.stretch
        self.taken = 0
        self.late = Lates()

    def lapse(self, key: bytes, state: KeyState) -> None:
        """Let a key begin afresh when its clock is no longer kept; open windows stay."""
        if state.clock == NEVER or self._now - state.seen < self._retention:
            return
        state.clock = NEVER
        state.remembered = []
        ranges = [self._rules.inside(window) for window in state.windows]
        state.marks = [
            mark for mark in state.marks if any(low <= mark[0] <= high for low, high in ranges)
        ]
        # What comes now may have the times of what no window holds any more.
        if not self._rules.disjoint and state.oldest != FOREVER:
            self._pending.lapsed[key] = around(ranges, state.oldest)

    def take(self, key: bytes, state: KeyState, segments: list[Segment]) -> None:
        """Put the messages of a key into its windows."""
        stretch = self._stretch
        if stretch is not None and (len(segments) == 1 or self._follow):
            self._take_together(key, state, segments, stretch)
        else:
            self._take_singly(key, state, in_order(segments))

    def _take_together(
        self, key: bytes, state: KeyState, segments: list[Segment], stretch: Stretch
    ) -> None:
        for segment in segments:
            page, row, last = segment
            arrivals, times = page.listed
            while row < last:
                until = row
                if len(state.windows) == 1:
                    window = state.windows[0]
                    until = stretch(window, times, row, last, page.latest_before)
                if until == row:
                    self._take_singly(key, state, (line_of(page, row),))
                    row += 1
                    continue
                count, span = until - row, times[row:until]
                if self._folds is not None:
                    self._folds.take_together(window, page, row, until, max(span))
                window.count += count
                window.active = self._active
                window.changed = True
                window.last = arrivals[until - 1]
                if arrivals[row] < window.fresh:
                    window.fresh = arrivals[row]
                state.oldest = min(state.oldest, min(span))
                self.taken += count
                row = until

    def _take_singly(self, key: bytes, state: KeyState, lines: Iterable[Line]) -> None:
        rules, active, by_key = self._rules, self._active, self._by_key
        unit, reason, folds = rules.unit, self._reason, self._folds
        here: dict[bytes, int] = {}
        taken = 0
        for arrival, time, before, page, row in lines:
            if by_key:
                before = max(state.clock, here.get(page.partition, NEVER))
            if unit > 1 and before != NEVER:
                before -= before % unit
            changed = rules.take(state, time, arrival, before, active)
            if changed is None:
                self.late.append(Dropped(arrival, page, row))
                continue
            taken += 1
            if folds is not None:
                folds.take(state, changed, time, arrival, page, row)
            if time < state.oldest:
                state.oldest = time
            if by_key and time > here.get(page.partition, NEVER):
                here[page.partition] = time
            if reason is not None:
                self._pending.come_out(key, state, changed, reason, arrival)
            if isinstance(rules, Counts) and rules.passed_over(state.total):
                self._pending.incomplete.setdefault(key, []).append(arrival)
        self.taken += taken
        if by_key and here:
            state.clock = max(state.clock, *here.values())
            state.seen = self._now
