"""Assigns the messages of a key to its windows, one after another in order of arrival.

Nearly every message of a session or tumbling window belongs to the one window that its key has
open: consecutive messages of this kind, a stretch, are assigned together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from streamer.window.contract import WindowReason
from streamer.window.keyed.counting import CountRules
from streamer.window.keyed.emit_queue import EmitQueue
from streamer.window.keyed.hopping import HoppingRules
from streamer.window.keyed.keyed_aggregation import KeyedAggregation
from streamer.window.keyed.late_messages import DroppedRow, LateMessages
from streamer.window.keyed.message_rows import (
    MessageRow,
    Segment,
    find_gaps,
    iterate_in_order,
    make_message_row,
)
from streamer.window.keyed.session import LimitedSessionRules, MessageGapRules, SessionRules
from streamer.window.keyed.sliding_per_event import PerEventSlidingRules
from streamer.window.keyed.state import FOREVER, NEVER, EdgeMessage, KeyState, Window
from streamer.window.keyed.unbounded import UnboundedRules
from streamer.window.keyed.window_rules import WindowRules
from streamer.window.settings.window_types import EventTimeSettings

_STRETCHING_RULES: Final = SessionRules | HoppingRules | UnboundedRules

StretchFunction = Callable[[Window, Sequence[int], int, int, int], int]


class Assigner:
    """Assigns the messages of one micro-batch.

    Attributes:
        taken: how many messages were assigned to windows.
        late_messages: messages whose windows had all closed.
    """

    def __init__(
        self,
        rules: WindowRules,
        settings: EventTimeSettings,
        aggregation: KeyedAggregation,
        queue: EmitQueue,
        now: int,
        active: int,
        by_key: bool,
        is_in_order: bool,
    ) -> None:
        """Create an assigner.

        Args:
            rules: the rules of the window kind.
            settings: the settings of event times.
            aggregation: aggregates the messages.
            queue: gets the batches that events emit at once.
            now: batch time, ns.
            active: the running time of the stream, which idle timeouts are measured by, ns.
            by_key: whether each key has a clock of its own.
            is_in_order: whether each fresh pack arrived as a whole before the next one.
        """
        self._rules = rules
        self._retention = settings.key_retention
        self._aggregation = aggregation if aggregation.is_needed else None
        self._queue = queue
        self._now = now
        self._active = active
        self._by_key = by_key
        self._is_in_order = is_in_order
        self._reason: WindowReason | None = rules.per_event_reason
        if self._reason is None and settings.emit == "each":
            self._reason = "each"
        self._gap_rules = rules if isinstance(rules, MessageGapRules) else None
        conditional = isinstance(rules, PerEventSlidingRules | CountRules)
        self._conditional_rules = rules if conditional and rules.is_conditional else None
        self._stretch: StretchFunction | None = None
        self._needs_edges = isinstance(rules, HoppingRules) and rules.needs_edges
        if self._gap_rules is not None or self._needs_edges:
            pass  # the next message may bring another gap, or be the last of its window
        elif isinstance(rules, LimitedSessionRules):
            pass  # the next message may make its session full
        elif isinstance(rules, _STRETCHING_RULES) and rules.non_overlapping:
            self._stretch = None if by_key or self._reason is not None else rules.extend_over
        self.taken = 0
        self.late_messages = LateMessages()

    def reset_expired_clock(self, key: bytes, state: KeyState) -> None:
        """Reset the clock of a key after its retention time without events; windows stay open."""
        if state.clock == NEVER or self._now - state.clock_moved_at < self._retention:
            return
        state.clock = state.clock_before = NEVER
        state.closed_bounds = []
        ranges = [self._rules.message_bounds(window) for window in state.windows]
        state.marks = [
            mark for mark in state.marks if any(low <= mark[0] <= high for low, high in ranges)
        ]
        # New messages may have times of messages that no window holds any more.
        if not self._rules.non_overlapping and state.oldest != FOREVER:
            self._queue.lapsed_ranges[key] = find_gaps(ranges, state.oldest)

    def assign(self, key: bytes, state: KeyState, segments: list[Segment]) -> None:
        """Assign the messages of a key to its windows."""
        stretch = self._stretch
        can_stretch = stretch is not None and state.run is None
        if stretch is not None and can_stretch and (len(segments) == 1 or self._is_in_order):
            self._assign_stretches(key, state, segments, stretch)
        else:
            self._assign_one_by_one(key, state, iterate_in_order(segments))

    def _assign_stretches(
        self, key: bytes, state: KeyState, segments: list[Segment], stretch: StretchFunction
    ) -> None:
        for segment in segments:
            loaded, row, last = segment
            arrivals, times = loaded.arrivals_and_times
            while row < last:
                until = row
                if len(state.windows) == 1:
                    window = state.windows[0]
                    until = stretch(window, times, row, last, loaded.max_watermark)
                if until == row:
                    self._assign_one_by_one(key, state, (make_message_row(loaded, row),))
                    row += 1
                    continue
                count, span = until - row, times[row:until]
                if self._aggregation is not None:
                    self._aggregation.add_stretch(window, loaded, row, until, max(span))
                window.count += count
                window.active = self._active
                window.changed = True
                window.last = arrivals[until - 1]
                if self._rules.unbounded:
                    window.first = window.last
                if arrivals[row] < window.fresh:
                    window.fresh = arrivals[row]
                state.oldest = min(state.oldest, min(span))
                self.taken += count
                row = until

    def _assign_one_by_one(self, key: bytes, state: KeyState, rows: Iterable[MessageRow]) -> None:
        rules, active, by_key = self._rules, self._active, self._by_key
        unit, reason, aggregation = rules.unit, self._reason, self._aggregation
        gap_rules, needs_edges = self._gap_rules, self._needs_edges
        conditional_rules = self._conditional_rules
        count_rules = rules if isinstance(rules, CountRules) else None
        expected_until = None
        if isinstance(rules, SessionRules) and state.run is not None:
            expected_until = rules.expected_until(state.run)
        here: dict[bytes, int] = {}
        taken = 0
        for arrival, time, watermark, loaded, row in rows:
            if by_key:
                watermark = max(state.clock, here.get(loaded.partition, NEVER))
            if unit > 1 and watermark != NEVER:
                watermark -= watermark % unit
            if gap_rules is not None:
                gap_rules.message_gap = loaded.gap_of(row)
            if conditional_rules is not None:
                conditional_rules.conditions = loaded.conditions_of(row)
            changed = rules.assign(state, time, arrival, watermark, active)
            if changed is None:
                self.late_messages.append(DroppedRow(arrival, loaded, row, watermark))
                continue
            taken += 1
            # By its own time, whatever micro-batch the clock has passed it in.
            if expected_until is not None and time < expected_until:
                state.run = expected_until = None
            if aggregation is not None:
                aggregation.add(state, changed, time, arrival, loaded, row)
            if needs_edges:
                payload, meta = loaded.payloads[row], loaded.encoded_metadata(row)
                for window in changed:
                    window.add_edge(EdgeMessage(time, arrival, payload, meta))
            if time < state.oldest:
                state.oldest = time
            if by_key and time > here.get(loaded.partition, NEVER):
                here[loaded.partition] = time
            if reason is not None:
                self._queue.emit_for_event(key, state, changed, reason, arrival)
            if count_rules is not None and count_rules.passed_over:
                passed_over = count_rules.take_passed_over()
                self._queue.incomplete_arrivals.setdefault(key, []).extend(passed_over)
        self.taken += taken
        if by_key and here:
            state.clock = max(state.clock, *here.values())
            state.clock_moved_at = self._now
