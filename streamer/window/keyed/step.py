"""A micro-batch of a shard whose windows are decided key by key.

Events are put into windows by the rules of the kind, one key after another; then what is due is
closed. Which messages a batch has is looked up at the end, for many batches together.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import Final

import numpy as np

from streamer.window.aside import aside
from streamer.window.clock import Reading
from streamer.window.emission import Emission, WindowReason
from streamer.window.event import EventWindow
from streamer.window.folds.release import FoldedGroup
from streamer.window.having import Having
from streamer.window.intake import Intake
from streamer.window.keyed.clocks import BatchClocks
from streamer.window.keyed.counts import Counts
from streamer.window.keyed.drawers import Drawers, Dues
from streamer.window.keyed.folds import Folds
from streamer.window.keyed.groups import Snapshot
from streamer.window.keyed.head import Head
from streamer.window.keyed.lates import Dropped, Lates, messages_of
from streamer.window.keyed.ledger import Ledger
from streamer.window.keyed.moments import Moment, emissions_of, output_of
from streamer.window.keyed.outputs import AS_THEY_STAND, AT_ONCE, CLOSED, Output, Released
from streamer.window.keyed.ranges import Range, around
from streamer.window.keyed.rules import rules_of
from streamer.window.keyed.segments import Segment, in_order
from streamer.window.keyed.state import FOREVER, NEVER, KeyState, Window
from streamer.window.listing import Listing
from streamer.window.pack import Pack
from streamer.window.queries import Query
from streamer.window.row import Row
from streamer.window.status import Closed, Status
from streamer.window.store import Store

_KEYS_TOGETHER: Final = 50_000
_SHOWN: Final = 16


class KeyedStep:
    """One micro-batch of one shard."""

    def __init__(
        self,
        window: EventWindow,
        store: Store,
        keep_dropped: bool,
        having: Query | None = None,
        folds: str | None = None,
    ) -> None:
        """Prepare.

        Args:
            window: the settings.
            store: the shard's state.
            keep_dropped: emit dropped messages too, for `late_output`.
            having: a compiled mapping; a batch for which it is not true is suppressed.
            folds: the mapping that windows are folded for from now on; None to keep them whole.
        """
        self._window = window
        self._settings = window.time
        self._rules = rules_of(window)
        self._store = store
        self._keep_dropped = keep_dropped
        self._asked = having
        self._listing = Listing()
        self._head = head = Head.read(store, window.fingerprint)
        self._drawers = Drawers(store, head.least, head.drawers, head.keys, head.sizes)
        self._ledger = Ledger(store, self._rules.timeless, head.packs, head.next_pack)
        self._folds = Folds(folds, head.texts, head.uses, head.folded, self._rules.joins)
        self._outputs: list[Output] = []
        self._moments: list[Moment] = []
        self._late = Lates()
        self._incomplete: dict[bytes, list[int]] = {}
        self._passed_over = 0
        self._releases: dict[bytes, list[Range]] = {}
        self._lapsed: dict[bytes, list[Range]] = {}
        self._spared: dict[bytes, set[int]] = {}
        self._clock_after = NEVER
        self._ended = self._behind = self._by_key = False
        self._now = 0
        self._since = 0

    def run(self, rows: Iterable[Row]) -> Generator[Emission, None, Status]:
        """Do it: give what goes on, return the status."""
        head, intake = self._head, Intake(rows)
        reading = Reading.of(intake.clock)
        self._now = head.clocks.begin(reading)
        self._ended, self._behind = reading.ended, head.clocks.behind
        clocks = BatchClocks(self._settings, self._rules.unit, head.clocks, intake.pieces)
        yield from aside(intake, head.counters)
        segments = self._arrive(intake, clocks)
        self._clock_after = clocks.end(reading.backlog)
        self._by_key = clocks.by_key
        self._visit(segments, clocks.by_key)
        self._folds.settle(self._ledger.fresh)
        yield from self._late.drop(head.counters, self._keep_dropped)
        self._head.counters.released += self._give_away(self._lapsed, self._since)
        closed = yield from self._emit()
        yield from self._drop_incomplete()
        self._give_back()
        self._ledger.settle()
        self._drawers.make_room()
        status = self._status(closed)
        self._save()
        return status

    def _arrive(self, intake: Intake, clocks: BatchClocks) -> dict[bytes, list[Segment]]:
        """Take the packs to the ledger; return where each key's messages lie."""
        segments: dict[bytes, list[Segment]] = {}
        self._since = self._head.next_arrival
        arrived, self._head.next_arrival = intake.arrived(self._since)
        for (body, shift, header), _ in arrived:
            pack = Pack(body, shift)
            page = self._ledger.add(pack, body, shift)
            before = clocks.before(header.first)
            partition = clocks.partition(header.first)
            for group, key in enumerate(pack.keys or [b""]):
                first, last = pack.starts[group], pack.starts[group + 1]
                segment = Segment(page, first, last, before, partition)
                segments.setdefault(key, []).append(segment)
        return segments

    def _visit(self, segments: dict[bytes, list[Segment]], by_key: bool) -> None:
        """Look at every key that has messages, or that is due."""
        clocks: Dues = (self._clock_after, self._head.clocks.active, self._now)
        drawers, folds = self._drawers, self._folds
        flush = self._ended and (self._settings.end_of_input == "flush" or self._rules.timeless)
        settings = self._settings
        plain = not by_key and not flush and settings.emit in ("final", "each")
        plain = plain and settings.idle_timeout is None and self._rules.disjoint
        numbers = drawers.numbers(segments, clocks)
        if flush:
            numbers = dict(sorted({**dict.fromkeys(drawers.least, []), **numbers}.items()))
        for number, touched in numbers.items():
            drawer = drawers.take_out(number)
            before = len(drawer)
            keys = dict.fromkeys(touched)
            keys.update(dict.fromkeys(drawer.keys() if flush else drawer.due(clocks)))
            for key in keys:
                state = drawer.get(key)
                windows = len(state.windows)
                if folds.needed:
                    folds.open(state)
                    folds.counted(state, -1)
                if by_key:
                    self._lapse(key, state)
                if key in segments:
                    self._take(key, state, segments[key], by_key)
                dues = self._quiet_dues(state) if plain else None
                if dues is None:
                    self._end_of(key, state, state.clock if by_key else self._clock_after)
                    dues = self._dues(state, by_key)
                self._head.open += len(state.windows) - windows
                if folds.needed:
                    folds.counted(state, 1)
                drawer.put(key, state, dues)
            drawers.put_back(number, drawer, before)

    def _lapse(self, key: bytes, state: KeyState) -> None:
        """Let a key begin afresh when its clock is no longer kept; open windows stay."""
        if state.clock != NEVER and self._now - state.seen >= self._settings.key_retention:
            state.clock = NEVER
            state.remembered = []
            ranges = [self._rules.inside(window) for window in state.windows]
            state.marks = [
                mark for mark in state.marks if any(low <= mark[0] <= high for low, high in ranges)
            ]
            # What comes now may have the times of what no window holds any more.
            if not self._rules.disjoint and state.oldest != FOREVER:
                self._lapsed[key] = around(ranges, state.oldest)

    def _take(self, key: bytes, state: KeyState, segments: list[Segment], by_key: bool) -> None:
        """Put the messages of a key into its windows."""
        rules, active = self._rules, self._head.clocks.active
        unit = rules.unit
        folds = self._folds if self._folds.needed else None
        here: dict[bytes, int] = {}
        taken = 0
        reason: WindowReason | None = rules.at_once
        if reason is None and self._settings.emit == "each":
            reason = "each"
        for arrival, time, before, partition, page, row in in_order(segments):
            if by_key:
                before = max(state.clock, here.get(partition, NEVER))
            if unit > 1 and before != NEVER:
                before -= before % unit
            changed = rules.take(state, time, arrival, before, active)
            if changed is None:
                self._late.append(Dropped(arrival, page, row))
                continue
            taken += 1
            if folds is not None:
                folds.take(state, changed, time, arrival, page, row)
            if time < state.oldest:
                state.oldest = time
            if by_key and time > here.get(partition, NEVER):
                here[partition] = time
            if reason is not None:
                self._come_out(key, changed, reason, arrival)
            if isinstance(rules, Counts) and rules.passed_over(state.total):
                self._passed_over += 1
        self._head.counters.taken += taken
        if by_key and here:
            state.clock = max(state.clock, *here.values())
            state.seen = self._now

    def _come_out(
        self, key: bytes, windows: list[Window], reason: WindowReason, arrival: int
    ) -> None:
        """Let windows come out that an event has changed, with what they hold by then."""
        for window in windows:
            folded, end, first = window.folded, window.end, window.first
            if folded is not None:
                told = (folded, folded.states, folded.newest, window.count)
                self._moments.append((arrival, end, first, window.start, key, *told))
                continue
            place = (AT_ONCE, arrival, window.end, window.first, window.start)
            self._put_out(key, window, reason, place, until=arrival)

    def _put_out(
        self,
        key: bytes,
        window: Window,
        reason: WindowReason,
        place: tuple[int, ...],
        until: int | None = None,
        since: int | None = None,
        gone: bool = False,
    ) -> None:
        low, high = self._rules.inside(window)
        start: int | None = window.start
        end: int | None = window.end
        if self._rules.timeless:
            start = end = None
        self._outputs.append(
            Output(
                key,
                low,
                high,
                start,
                end,
                reason,
                place,
                window.count,
                until,
                since,
                window.excluded,
                gone,
                (window.first, window.until(self._since)) if self._rules.joins else None,
                Snapshot.of(window, self._head.next_arrival),
            )
        )

    def _quiet_dues(self, state: KeyState) -> Dues | None:
        """Return the dues of a key of which nothing comes out and nothing is let go; else None.

        Most keys that have messages are such, and there may be a million of them.
        """
        if not state.windows or state.remembered:
            return None
        closes_at, due = self._rules.closes_at, FOREVER
        for window in state.windows:
            closes = closes_at(window)
            if closes <= self._clock_after:
                return None
            if closes < due:
                due = closes
        return due, FOREVER, FOREVER

    def _end_of(self, key: bytes, state: KeyState, clock: int) -> None:
        """Let windows come out as they stand, close what is due, let go of what is not needed."""
        emit = self._settings.emit
        if emit == "changes" or emit == "forward":
            for window in state.windows:
                if window.changed:
                    self._as_it_stands(key, window)
        if state.windows:
            self._close(key, state, clock)
        if state.remembered:
            state.remembered = [
                bounds
                for bounds in state.remembered
                if clock < self._rules.closes_at(Window(*bounds, 0, 0, 0))
            ]
        state.fresh = []
        self._let_go(key, state, clock)

    def _as_it_stands(self, key: bytes, window: Window) -> None:
        if self._settings.emit == "changes":
            place = (AS_THEY_STAND, window.end, window.first, window.start)
            self._put_out(key, window, "changes", place, since=window.first)
        elif window.fresh != FOREVER:
            place = (AS_THEY_STAND, window.end, window.fresh, window.start)
            self._put_out(key, window, "forward", place, since=self._since)

    def _close(self, key: bytes, state: KeyState, clock: int) -> None:
        left = []
        several = self._rules.joins and len(state.windows) > 1
        for window in state.windows:
            reason = self._reason(window, clock)
            if reason is None:
                window.changed, window.fresh, window.excluded = False, FOREVER, None
                left.append(window)
                continue
            self._folds.let_go(window)
            if reason != "final" and self._rules.remembers:
                state.remembered.append((window.start, window.end))
            gone = self._rules.disjoint
            if self._settings.emit == "final":
                place = (CLOSED, window.end, window.first, window.start)
                self._put_out(key, window, reason, place, since=window.first, gone=gone)
            elif gone:
                low, high = self._rules.inside(window)
                self._release(key, low, high, window.until(self._since) if several else FOREVER)
        if several and len(left) < len(state.windows):
            # A session that was closed before another's first message may lie among its times.
            self._spared.setdefault(key, set()).update(window.first for window in left)
        state.windows = left

    def _reason(self, window: Window, clock: int) -> WindowReason | None:
        if clock >= self._rules.closes_at(window):
            return "final"
        timeout = self._settings.idle_timeout
        idle = self._head.clocks.active - window.active
        if timeout is not None and not self._behind and idle >= timeout:
            return "idle"
        return "flush" if self._ended and self._settings.end_of_input == "flush" else None

    def _let_go(self, key: bytes, state: KeyState, clock: int) -> None:
        """Give messages back that no window needs, and forget what was known of them."""
        rules = self._rules
        needed = [rules.inside(window)[0] for window in state.windows]
        kept = rules.kept_from(clock)
        if rules.timeless:
            self._let_go_counted(key, state)
            return
        if kept is not None and state.marks:
            state.marks = [mark for mark in state.marks if mark[0] >= kept]
            if state.marks:
                needed.append(max(kept, state.oldest))
        oldest = min(needed, default=FOREVER)
        if not rules.disjoint and oldest > state.oldest:
            self._release(key, state.oldest, oldest - 1)
        state.oldest = max(oldest, state.oldest) if needed else FOREVER

    def _let_go_counted(self, key: bytes, state: KeyState) -> None:
        """Give back what no later output holds; at the end of the input, drop what never came."""
        rules = self._rules
        assert isinstance(rules, Counts)
        first = state.oldest
        if self._ended:
            unseen = rules.incomplete(state)
            if unseen:
                self._incomplete[key] = unseen
            state.marks, state.total = [], 0
        state.oldest = state.marks[0][0] if state.marks else FOREVER
        if state.oldest > first:
            self._release(key, first, state.oldest - 1)

    def _release(self, key: bytes, low: int, high: int, until: int = FOREVER) -> None:
        """Give back what lies between two times, both inclusive, when everything has come out.

        What arrived after `until` stays.
        """
        if self._settings.emit != "forward":
            self._releases.setdefault(key, []).append((low, high, until))

    def _dues(self, state: KeyState, by_key: bool) -> Dues:
        """Return when a key must be looked at, though nothing of it comes in."""
        rules, settings = self._rules, self._settings
        clock = active = now = FOREVER
        if not by_key and not rules.timeless:
            closes = [rules.closes_at(window) for window in state.windows]
            closes += [rules.closes_at(Window(*bounds, 0, 0, 0)) for bounds in state.remembered]
            if state.marks:
                newest = max(time for time, _ in state.marks)
                closes.append(newest + rules.unit - (rules.kept_from(0) or 0))
            clock = min(closes, default=FOREVER)
        if settings.idle_timeout is not None and state.windows:
            active = min(window.active for window in state.windows) + settings.idle_timeout
        if by_key and state.clock != NEVER:
            now = state.seen + settings.key_retention
        return min(clock, FOREVER), min(active, FOREVER), min(now, FOREVER)

    def _emit(self) -> Generator[Emission, None, tuple[Closed, ...]]:
        """Give the batches, in their order."""
        counters = self._head.counters
        closed: list[Closed] = []
        having = None
        if self._asked is not None:
            having = Having(self._asked, self._now, self._listing)
        released = Released(self._ledger, self._window.keyed, self._rules.unit, self._spared)
        for emission in self._in_place(released):
            messages = emission.messages
            count = messages.size if isinstance(messages, FoldedGroup) else len(messages)
            if having is not None and not having.keeps(messages):
                counters.suppressed += count
                continue
            counters.emitted_windows += 1
            counters.emitted_messages += count
            if emission.end is not None and len(closed) < _SHOWN:
                closed.append(Closed(emission.end, count, emission.reason))
            yield emission
        counters.released += released.given_back + self._folds.released
        return tuple(closed)

    def _in_place(self, released: Released) -> Iterator[Emission]:
        """Give the batches in their order, their messages looked up."""
        outputs = self._outputs
        if self._moments and not outputs:
            yield from emissions_of(self._moments, self._ledger, self._window.keyed)
            return
        # Windows that are folded and such that are not, in between.
        outputs += [output_of(moment) for moment in self._moments]
        outputs.sort(key=lambda output: output.place)
        yield from released.emissions(outputs)

    def _drop_incomplete(self) -> Iterator[Emission]:
        """Drop what no count window will hold, since the input has ended."""
        if not self._incomplete:
            return
        self._head.counters.drop("incomplete", sum(map(len, self._incomplete.values())))
        if not self._keep_dropped:
            return
        claims = {key: (arrivals[0], arrivals[-1]) for key, arrivals in self._incomplete.items()}
        found = self._ledger.find(claims)
        for key in sorted(claims, key=lambda key: claims[key]):
            first, last = found.starts[key]
            wanted = np.isin(found.arrivals[first:last], self._incomplete[key])
            places = (np.flatnonzero(wanted) + first).tolist()
            dropped = [
                Dropped(int(found.arrivals[at]), found.sheets[found.pages[at]], int(found.rows[at]))
                for at in places
            ]
            yield Emission(None, messages_of(dropped, "incomplete"), "dropped")

    def _give_back(self) -> None:
        """Let go of what no window needs any more."""
        counters = self._head.counters
        given_back = 0
        if self._settings.emit == "forward":
            given_back += self._ledger.give_back_fresh()
        given_back += self._give_away(self._releases)
        counters.passed_over += self._passed_over
        incomplete = sum(map(len, self._incomplete.values()))
        counters.released += given_back - self._passed_over - incomplete

    def _give_away(self, ranges: dict[bytes, list[Range]], before: int | None = None) -> int:
        keys, given_back = list(ranges), 0
        for first in range(0, len(keys), _KEYS_TOGETHER):
            some = {key: ranges[key] for key in keys[first : first + _KEYS_TOGETHER]}
            given_back += self._ledger.give_back(some, self._spared, before)
        return given_back

    def _status(self, closed: tuple[Closed, ...]) -> Status:
        """Say how the shard is after the micro-batch."""
        records = sum(self._drawers.sizes.values()) if self._folds.needed else 0
        return Status(
            now=self._now,
            horizon=None,
            counters=self._head.counters,
            held=self._ledger.held + self._folds.held,
            held_bytes=self._ledger.size + records,
            open=(),
            next_due=self._next_due(),
            newest_end=None,
            closed=closed,
            log=(*self._late.lines(), *self._listing.lines()),
            open_windows=self._head.open,
        )

    def _next_due(self) -> int | None:
        """Return when the next window is due by a clock that runs without messages."""
        clocks = self._head.clocks
        dues = [FOREVER]
        for clock, active, _ in self._drawers.least.values():
            if self._settings.clock == "system":
                dues.append(clock)
            if active != FOREVER:
                dues.append(self._now + active - clocks.active)
        due = min(dues)
        return None if due == FOREVER else due

    def _save(self) -> None:
        head, drawers = self._head, self._drawers
        head.drawers, head.keys, head.least = drawers.count, drawers.keys, drawers.least
        head.packs, head.next_pack = self._ledger.head()
        self._folds.forget()
        head.texts, head.uses = self._folds.texts, self._folds.uses
        head.folded, head.sizes = self._folds.held, drawers.sizes
        head.write(self._store)
