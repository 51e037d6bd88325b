"""Lets the windows of a key come out and close, and lets go of what none of them needs."""

from __future__ import annotations

from collections.abc import Mapping

from streamer.window.emission import WindowReason
from streamer.window.keyed.counts import Counts
from streamer.window.keyed.drawers import NO_DUES, Dues
from streamer.window.keyed.folds import Folds
from streamer.window.keyed.outputs import AS_THEY_STAND, CLOSED
from streamer.window.keyed.pending import Pending
from streamer.window.keyed.rules import Rules
from streamer.window.keyed.state import FOREVER, NEVER, KeyState, Part, Window
from streamer.window.kinds import EventTime


class Closing:
    """Looks at the keys of one micro-batch when their messages are in."""

    def __init__(
        self,
        rules: Rules,
        settings: EventTime,
        folds: Folds,
        pending: Pending,
        clock: int,
        active: int | None,
        ended: bool,
        by_key: bool,
    ) -> None:
        """Prepare.

        Args:
            rules: of the kind of windows.
            settings: of their times.
            folds: is told of windows that close.
            pending: is told what comes out, and what is given back.
            clock: the one that closes windows of all keys; `NEVER` where each key has its own.
            active: the running time, by which idleness is told; None when none may be idle now.
            ended: the input has ended.
            by_key: each key has a clock of its own.
        """
        self._rules = rules
        self._settings = settings
        self._folds = folds
        self._pending = pending
        self._clock = clock
        self._active = active
        self._ended = ended
        self._flush = ended and settings.end_of_input == "flush"
        self._by_key = by_key
        plain = not by_key and not self._flush and settings.emit in ("final", "each")
        self._plain = plain and settings.idle_timeout is None and rules.disjoint

    def settle(self, key: bytes, state: KeyState) -> Dues:
        """Do all that there is to do with a key; return when it must be looked at again."""
        dues = self._quiet_dues(state) if self._plain else None
        if dues is None:
            self._end(key, state, state.clock if self._by_key else self._clock)
            dues = NO_DUES if state.idle else self._dues(state)
        return dues

    def _quiet_dues(self, state: KeyState) -> Dues | None:
        """Return the dues of a key of which nothing comes out and nothing is let go; else None.

        Most keys that have messages are such, and there may be a million of them.
        """
        if not state.windows or state.remembered:
            return None
        closes_at, due = self._rules.closes_at, FOREVER
        for window in state.windows:
            closes = closes_at(window)
            if closes <= self._clock:
                return None
            if closes < due:
                due = closes
        return due, FOREVER, FOREVER

    def _end(self, key: bytes, state: KeyState, clock: int) -> None:
        emit = self._settings.emit
        several = self._rules.joins and len(state.windows) > 1
        apart = state.all_apart(self._pending.since) if several else {}
        if emit == "changes" or emit == "forward":
            for window in state.windows:
                if window.changed:
                    self._as_it_stands(key, window, apart.get(window, ()))
        if state.windows:
            self._close(key, state, clock, apart)
        if state.remembered:
            state.remembered = [
                bounds
                for bounds in state.remembered
                if clock < self._rules.closes_at(Window(*bounds, 0, 0, 0))
            ]
        state.fresh = []
        if self._rules.timeless:
            self._let_go_counted(key, state)
        else:
            self._let_go(key, state, clock)

    def _as_it_stands(self, key: bytes, window: Window, apart: tuple[Part, ...]) -> None:
        pending = self._pending
        if self._settings.emit == "changes":
            place = (AS_THEY_STAND, window.end, window.first, window.start)
            pending.put_out(key, window, "changes", place, since=window.first, apart=apart)
        elif window.fresh != FOREVER:
            place = (AS_THEY_STAND, window.end, window.fresh, window.start)
            pending.put_out(key, window, "forward", place, since=pending.since, apart=apart)

    def _close(
        self,
        key: bytes,
        state: KeyState,
        clock: int,
        apart: Mapping[Window, tuple[Part, ...]],
    ) -> None:
        rules, pending = self._rules, self._pending
        left = []
        several = rules.joins and len(state.windows) > 1
        for window in state.windows:
            reason = self._reason(window, clock)
            if reason is None:
                window.changed, window.fresh, window.excluded = False, FOREVER, None
                left.append(window)
                continue
            self._folds.let_go(window)
            if reason != "final" and rules.remembers:
                state.remembered.append((window.start, window.end))
            gone = rules.disjoint
            if self._settings.emit == "final":
                place = (CLOSED, window.end, window.first, window.start)
                pending.put_out(
                    *(key, window, reason, place),
                    since=window.first,
                    gone=gone,
                    apart=apart.get(window, ()),
                )
            elif gone:
                until = window.until(pending.since) if several else FOREVER
                pending.release(key, *rules.inside(window), until)
        if several and len(left) < len(state.windows):
            # A session that was closed before another's first message may lie among its times.
            pending.spared.setdefault(key, set()).update(window.first for window in left)
        state.windows = left

    def _reason(self, window: Window, clock: int) -> WindowReason | None:
        if clock >= self._rules.closes_at(window):
            return "final"
        timeout, active = self._settings.idle_timeout, self._active
        if timeout is not None and active is not None and active - window.active >= timeout:
            return "idle"
        return "flush" if self._flush else None

    def _let_go(self, key: bytes, state: KeyState, clock: int) -> None:
        """Give messages back that no window needs, and forget what was known of them."""
        rules = self._rules
        needed = [rules.inside(window)[0] for window in state.windows]
        kept = rules.kept_from(clock)
        if kept is not None and state.marks:
            state.marks = [mark for mark in state.marks if mark[0] >= kept]
            if state.marks:
                needed.append(max(kept, state.oldest))
        oldest = min(needed, default=FOREVER)
        if not rules.disjoint and oldest > state.oldest:
            self._pending.release(key, state.oldest, oldest - 1)
        state.oldest = max(oldest, state.oldest) if needed else FOREVER

    def _let_go_counted(self, key: bytes, state: KeyState) -> None:
        """Give back what no later output holds; at the end of the input, drop what never came."""
        rules = self._rules
        assert isinstance(rules, Counts)
        first = state.oldest
        if self._ended:
            unseen = rules.incomplete(state)
            if unseen:
                self._pending.incomplete.setdefault(key, []).extend(unseen)
            state.marks, state.total = [], 0
        state.oldest = state.marks[0][0] if state.marks else FOREVER
        if state.oldest > first:
            self._pending.release(key, first, state.oldest - 1)

    def _dues(self, state: KeyState) -> Dues:
        """Return when a key must be looked at, though nothing of it comes in."""
        rules, settings, by_key = self._rules, self._settings, self._by_key
        clock = active = now = FOREVER
        if not by_key and not rules.timeless:
            closes = [rules.closes_at(window) for window in state.windows]
            closes += [rules.closes_at(Window(*bounds, 0, 0, 0)) for bounds in state.remembered]
            if state.marks:
                newest = max(time for time, _ in state.marks)
                closes.append(newest + 1 - (rules.kept_from(0) or 0))
            clock = min(closes, default=FOREVER)
        if settings.idle_timeout is not None and state.windows:
            active = min(window.active for window in state.windows) + settings.idle_timeout
        if by_key and state.clock != NEVER:
            now = state.seen + settings.key_retention
        return min(clock, FOREVER), min(active, FOREVER), min(now, FOREVER)
