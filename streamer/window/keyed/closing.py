"""Emits and closes the windows of a key, and frees messages that no window needs.

After each micro-batch, by the setting `emit`:

| emit | a window that got messages | a window that closes |
|---|---|---|
| final | is not emitted | is emitted, with all its messages |
| changes | is emitted, with all its messages (`window_emit` is `changes`) | is not emitted again |
| each | was emitted for each message already (`assigning`) | is not emitted again |
| forward | its new messages are emitted | is not emitted again |

With `emit_also`, a window is emitted besides when the clock passes its end (`on_time`) or when it
closes (`close`), in a micro-batch once at most, but for the batches of `each`. Where it is emitted
on time, its changes are `early` before that and `late` after it.
"""

from __future__ import annotations

from collections.abc import Mapping

from streamer.window.contract import WindowReason
from streamer.window.keyed.clocks import Watermarks
from streamer.window.keyed.counting import CountRules
from streamer.window.keyed.emit_queue import ON_CHANGE, ON_CLOSE, PER_EVENT, EmitQueue
from streamer.window.keyed.empty_windows import EmptyWindowCloser, MissingSessionCloser
from streamer.window.keyed.hopping import HoppingRules
from streamer.window.keyed.key_buckets import NO_DUES, Dues
from streamer.window.keyed.keyed_aggregation import KeyedAggregation
from streamer.window.keyed.session import SessionRules
from streamer.window.keyed.sliding_per_event import WaitingSlidingRules
from streamer.window.keyed.state import FOREVER, NEVER, KeyState, MessageRange, Window
from streamer.window.keyed.window_rules import WindowRules
from streamer.window.settings.window_types import EventTimeSettings


class KeyCloser:
    """Closes the windows of one micro-batch, key by key, after their messages are assigned."""

    def __init__(
        self,
        rules: WindowRules,
        settings: EventTimeSettings,
        aggregation: KeyedAggregation,
        queue: EmitQueue,
        watermarks: Watermarks,
        active: int | None,
        ended: bool,
        by_key: bool,
    ) -> None:
        """Create a closer.

        Args:
            rules: the rules of the window kind.
            settings: the settings of event times.
            aggregation: counts the messages of closed windows as freed.
            queue: gets batches to be emitted, and ranges of messages to be freed.
            watermarks: of all keys; the one after is `NEVER` if each key has its own.
            active: the running time of the stream, ns; None if no window may become idle now.
            ended: whether the input has ended.
            by_key: whether each key has a clock of its own.
        """
        self._rules = rules
        self._settings = settings
        self._aggregation = aggregation
        self._queue = queue
        self._before, self._clock = watermarks
        self._on_time = "on_time" in settings.emit_also
        self._has_stages = bool(settings.emit_also - {"retractions"})
        self._at_close = settings.emit == "final" or "close" in settings.emit_also
        self._active = active
        self._ended = ended
        self._is_flushing = ended and settings.end_of_input == "flush"
        self._by_key = by_key
        self._empty: EmptyWindowCloser | MissingSessionCloser | None = None
        if isinstance(rules, HoppingRules) and rules.empty is not None:
            self._empty = EmptyWindowCloser(rules, queue, self._clock, self._is_flushing)
        elif isinstance(rules, SessionRules) and rules.expects_keys:
            self._empty = MissingSessionCloser(queue, self._clock)
        plain = not by_key and not self._is_flushing and settings.emit in ("final", "each")
        plain = plain and self._empty is None and not settings.emit_also
        self._is_simple = plain and settings.idle_timeout is None and rules.non_overlapping

    def close_due(self, key: bytes, state: KeyState) -> Dues:
        """Emit and close the due windows of a key; return when the key is due again."""
        dues = self._due_if_unchanged(state) if self._is_simple else None
        if dues is None:
            self._close_key(key, state, state.clock if self._by_key else self._clock)
            dues = NO_DUES if state.is_idle else self._next_dues(state)
        return dues

    def _due_if_unchanged(self, state: KeyState) -> Dues | None:
        """Return the dues of a key that emits and frees nothing; None for any other key.

        This is a shortcut for most keys that have messages, of which there may be a million.
        """
        if not state.windows or state.closed_bounds or state.full:
            return None
        closes_at, due = self._rules.close_time, FOREVER
        for window in state.windows:
            closes = closes_at(window)
            if closes <= self._clock:
                return None
            if closes < due:
                due = closes
        return due, FOREVER, FOREVER

    def _close_key(self, key: bytes, state: KeyState, clock: int) -> None:
        emit = self._settings.emit
        if state.full:
            state.readmit_full()
        several = self._rules.mergeable and len(state.windows) > 1
        excluded_ranges = state.all_excluded_ranges(self._queue.first_arrival) if several else {}
        if self._has_stages:
            for window in state.windows:
                self._emit_stage(key, state, window, clock, excluded_ranges.get(window, ()))
        elif emit == "changes" or emit == "forward":
            for window in state.windows:
                if window.changed:
                    self._emit_changed(key, window, excluded_ranges.get(window, ()))
        if self._empty is not None:
            self._empty.close_key(key, state)
        if state.windows:
            self._close_windows(key, state, clock, excluded_ranges)
        if state.closed_bounds:
            state.closed_bounds = [
                bounds
                for bounds in state.closed_bounds
                if clock < self._rules.close_time(Window(*bounds, 0, 0, 0))
            ]
        state.fresh = []
        if self._is_flushing and not self._rules.count_based:
            state.cadence_start = None
        if self._rules.count_based:
            self._free_counted_messages(key, state)
        else:
            self._free_messages(key, state, clock)

    def _emit_changed(
        self,
        key: bytes,
        window: Window,
        excluded_ranges: tuple[MessageRange, ...],
        stage: WindowReason | None = None,
    ) -> None:
        """Emit a window that this micro-batch has changed: whole, or its new messages alone.

        Args:
            key: its key.
            window: the window.
            excluded_ranges: messages in its bounds that are in other windows.
            stage: why it is emitted whole, where the setting `emit` does not say it.
        """
        reason: WindowReason
        since: int | None
        if stage is not None or self._settings.emit == "changes":
            reason, first, since = stage or "changes", window.first, window.first
        elif window.fresh != FOREVER:
            reason, first, since = "forward", window.fresh, self._queue.first_arrival
        else:
            return
        end = window.end
        if self._rules.unbounded:
            end, since = FOREVER, None
        order = (ON_CHANGE, end, first, window.start)
        self._queue.queue_emit(
            key, window, reason, order, since=since, excluded_ranges=excluded_ranges
        )

    def _emit_stage(
        self,
        key: bytes,
        state: KeyState,
        window: Window,
        clock: int,
        excluded_ranges: tuple[MessageRange, ...],
    ) -> None:
        """Emit a window that has changed, or whose end the clock has passed, once at most.

        One that is emitted at its close, in this micro-batch, comes only then.
        """
        before = self._clock_before(state)
        closing = self._close_reason(window, clock)
        if closing is not None and self._emits_at_close(window, before):
            return
        passed = self._end_time(window)
        stage: WindowReason | None = None
        if self._on_time and before < passed <= clock:
            stage = "on_time"
        elif self._settings.emit == "changes" and window.changed:
            stage = "changes"
            if self._on_time:
                stage = "early" if clock < passed else "late"
        if stage is not None:
            self._emit_changed(key, window, excluded_ranges, stage)

    def _emits_at_close(self, window: Window, before: int) -> bool:
        """Whether a window that closes now is emitted: always, or since it never was on time."""
        return self._at_close or (self._on_time and before < self._end_time(window))

    def _end_time(self, window: Window) -> int:
        """Return the least watermark that is past the end of a window, ns."""
        return self._rules.close_time(window) - self._settings.allowed_lateness

    def _clock_before(self, state: KeyState) -> int:
        return state.clock_before if self._by_key else self._before

    def _close_windows(
        self,
        key: bytes,
        state: KeyState,
        clock: int,
        excluded_ranges: Mapping[Window, tuple[MessageRange, ...]],
    ) -> None:
        rules, queue = self._rules, self._queue
        left = []
        several = rules.mergeable and len(state.windows) > 1
        waiting = rules if isinstance(rules, WaitingSlidingRules) else None
        if waiting is not None:
            waiting.sort_windows(state)
        for window in state.windows:
            reason = self._close_reason(window, clock)
            if reason is None:
                window.changed, window.fresh, window.excluded = False, FOREVER, None
                left.append(window)
                continue
            self._aggregation.free_closed(window)
            if waiting is not None:
                if waiting.is_emitted(state, window):
                    self._emit_waiting(key, state, window, reason, waiting)
                continue
            if reason != "final" and rules.tracks_closed:
                state.closed_bounds.append((window.start, window.end))
            gone = rules.non_overlapping
            if self._at_close or (
                self._on_time and self._emits_at_close(window, self._clock_before(state))
            ):
                if reason == "final" and not self._at_close:
                    reason = "on_time"
                order: tuple[int, ...] = (ON_CLOSE, window.end, window.first, window.start)
                if window.full_at is not None:
                    # After the batch that the same event makes of it.
                    order = (PER_EVENT, window.full_at, window.end, window.first, window.start, 1)
                queue.queue_emit(
                    *(key, window, reason, order),
                    since=window.first,
                    frees_messages=gone,
                    excluded_ranges=excluded_ranges.get(window, ()),
                )
            elif gone:
                until = window.last_arrival(queue.first_arrival) if several else FOREVER
                queue.queue_free(key, *rules.message_bounds(window), until)
        if several and len(left) < len(state.windows):
            # A session that was closed before another's first message may lie among its times.
            queue.spared_arrivals.setdefault(key, set()).update(window.first for window in left)
        state.windows = left
        if not left:
            state.latest = {}

    def _emit_waiting(
        self,
        key: bytes,
        state: KeyState,
        window: Window,
        reason: WindowReason,
        rules: WaitingSlidingRules,
    ) -> None:
        """Emit the window of an event that has waited for the clock."""
        until, excluded_ranges = rules.exclude_later(state, window)
        order = (ON_CLOSE, window.end, window.opener or 0, window.start)
        self._queue.queue_emit(
            *(key, window, reason, order, until), excluded_ranges=excluded_ranges
        )

    def _close_reason(self, window: Window, clock: int) -> WindowReason | None:
        if window.full_at is not None:
            return "count"
        if clock >= self._rules.close_time(window):
            return "final"
        timeout, active = self._settings.idle_timeout, self._active
        if timeout is not None and active is not None and active - window.active >= timeout:
            return "idle"
        return "flush" if self._is_flushing else None

    def _free_messages(self, key: bytes, state: KeyState, clock: int) -> None:
        """Free the messages of a key that no window needs, and forget their marks."""
        rules = self._rules
        needed = [rules.message_bounds(window)[0] for window in state.windows]
        kept = rules.needed_from(clock)
        if kept is not None and state.marks:
            state.marks = [mark for mark in state.marks if mark[0] >= kept]
            if state.marks:
                needed.append(max(kept, state.oldest))
        oldest = min(needed, default=FOREVER)
        if not rules.non_overlapping and oldest > state.oldest:
            self._queue.queue_free(key, state.oldest, oldest - 1)
        state.oldest = max(oldest, state.oldest) if needed else FOREVER

    def _free_counted_messages(self, key: bytes, state: KeyState) -> None:
        """Free messages that no later count window holds; drop incomplete ones at end of input."""
        rules = self._rules
        assert isinstance(rules, CountRules)
        first = state.oldest
        if self._ended and rules.end_of_input != "keep":
            if rules.end_of_input == "flush":
                self._flush_count_windows(key, state, rules)
            elif unseen := rules.incomplete_arrivals(state):
                self._queue.incomplete_arrivals.setdefault(key, []).extend(unseen)
            state.marks, state.total, state.cadence_start = [], 0, None
        state.oldest = state.marks[0][0] if state.marks else FOREVER
        if state.oldest > first:
            self._queue.queue_free(key, first, state.oldest - 1)

    def _flush_count_windows(self, key: bytes, state: KeyState, rules: CountRules) -> None:
        """Emit the count windows of a key that have begun, since nothing more comes."""
        for window in rules.begun_windows(state, self._active or 0):
            order = (ON_CLOSE, FOREVER, window.first, *(window.offsets or ()))
            self._queue.queue_emit(key, window, "flush", order)

    def _next_dues(self, state: KeyState) -> Dues:
        """Return when a key is due if it gets no messages."""
        rules, settings, by_key = self._rules, self._settings, self._by_key
        clock = active = now = FOREVER
        if not by_key and not rules.count_based:
            closes = [rules.close_time(window) for window in state.windows]
            if self._on_time:
                ends = map(self._end_time, state.windows)
                closes += [end for end in ends if end > self._clock]
            closes += [rules.close_time(Window(*bounds, 0, 0, 0)) for bounds in state.closed_bounds]
            if state.marks:
                newest = max(time for time, _ in state.marks)
                closes.append(newest + 1 - (rules.needed_from(0) or 0))
            if self._empty is not None:
                closes.append(self._empty.next_due(state))
            clock = min(closes, default=FOREVER)
        if settings.idle_timeout is not None and state.windows:
            active = min(window.active for window in state.windows) + settings.idle_timeout
        if by_key and state.clock != NEVER:
            now = state.clock_moved_at + settings.key_retention
        return min(clock, FOREVER), min(active, FOREVER), min(now, FOREVER)
