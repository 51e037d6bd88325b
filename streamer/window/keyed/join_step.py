"""One micro-batch of a join's shard: messages wait in two message stores, one for each side."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator

import numpy as np

from streamer.window.contract import (
    DroppedEntry,
    Emission,
    MicroBatchInfo,
    RowKind,
    ShuffleRow,
    Status,
    WindowReason,
)
from streamer.window.fire.step_io import ShardInput, emit_passthrough
from streamer.window.keyed.arrival_times import IdleMessages, open_arrival_times
from streamer.window.keyed.clocks import BatchClocks
from streamer.window.keyed.head import KeyedHead
from streamer.window.keyed.join_matching import SIDES, JoinRules, Side, find_pairs
from streamer.window.keyed.join_output import JoinOutput
from streamer.window.keyed.join_side import JoinSide, UnmatchedRow
from streamer.window.keyed.key_ids import KeyIds
from streamer.window.keyed.late_messages import DroppedRow, LateMessages
from streamer.window.keyed.matched_bits import MatchedBits
from streamer.window.keyed.state import MIN_TIME_NS, NEVER
from streamer.window.pack.pack_codec import Pack
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.int_codec import Ints
from streamer.window.settings.result_times import find_next_end
from streamer.window.settings.window_types import Join
from streamer.window.state.layout import FIRST_RIGHT_PACK_SEQ
from streamer.window.state_store import StateStore


class JoinStep:
    """One micro-batch of one shard."""

    def __init__(self, window: EventWindow, store: StateStore, keep_dropped: bool) -> None:
        """Read the head of the shard's state.

        Args:
            window: the join's settings.
            store: the shard's state.
            keep_dropped: emit dropped messages too, for `late_output`.
        """
        assert isinstance(window.kind, Join)
        self._window = window
        self._settings = window.time
        is_system_clock = window.time.clock == "system"
        self._rules = JoinRules(window.kind, window.time.allowed_lateness, is_system_clock)
        self._store = store
        self._keep_dropped = keep_dropped
        self._head = head = KeyedHead.read(store, window.fingerprint)
        rights = [entry for entry in head.packs if entry[0] >= FIRST_RIGHT_PACK_SEQ]
        lefts = [entry for entry in head.packs if entry[0] < FIRST_RIGHT_PACK_SEQ]
        after = max((entry[0] + 1 for entry in rights), default=FIRST_RIGHT_PACK_SEQ)
        self._matched = matched = MatchedBits(store)
        self._sides = {
            "left": JoinSide(store, matched, lefts, head.next_pack),
            "right": JoinSide(store, matched, rights, after),
        }
        self._arrival_times = open_arrival_times(head)
        self._late_messages = LateMessages()
        self._sorted_out: list[DroppedEntry] = []
        self._output = JoinOutput(window.keyed)

    def run(self, rows: Iterable[ShuffleRow]) -> Generator[Emission, None, Status]:
        """Run the micro-batch: give the emissions, return the status."""
        head, shard_input = self._head, ShardInput(rows)
        info = MicroBatchInfo.from_rows(shard_input.clock_bodies)
        now = head.clocks.advance(info)
        clocks = BatchClocks(self._settings, 1, head.clocks, shard_input.pieces, info)
        yield from emit_passthrough(shard_input, head.counters)
        self._sorted_out = shard_input.dropped_samples()
        self._store_arrivals(shard_input, clocks)
        clock = clocks.finish(info.backlog)
        yield from self._late_messages.drop_all(head.counters, self._keep_dropped)
        yield from self._emit_pairs()
        yield from self._emit_expired(clock, info.ended and self._settings.end_of_input == "flush")
        next_due = self._next_due(now, clock, clocks)
        for side in SIDES:
            self._sides[side].store.commit()
        self._matched.write()
        self._save_head()
        return self._make_status(now, clock, next_due, clocks)

    def _store_arrivals(self, shard_input: ShardInput, clocks: BatchClocks) -> None:
        """Add packs to their sides; free late messages."""
        since = self._head.next_arrival
        numbered, self._head.next_arrival = shard_input.number_arrivals(self._head.next_arrival)
        for (body, shift, header), row in numbered:
            side = self._sides["right" if row.kind == RowKind.RIGHT else "left"]
            pack = Pack(body, shift)
            clocks.cap_lags(pack, header.first)
            watermark = clocks.watermark_before(header.first)
            partition = clocks.partition_of(header.first)
            loaded = side.store.add_pack(pack, body, shift, watermark, partition)
            late = self._rules.find_late(loaded.times, pack.lags, watermark)
            if late.any():
                rows = np.flatnonzero(late)
                loaded.free(rows)
                self._late_messages += [
                    DroppedRow(int(pack.arrivals[at]), loaded, at, loaded.watermark_before(at))
                    for at in rows.tolist()
                ]
            self._head.counters.taken += side.add_incoming(loaded, np.flatnonzero(~late))
        if self._settings.idle_timeout is not None:
            self._note_arrival_time(since)

    def _note_arrival_time(self, since: int) -> None:
        """Note when the incoming messages were taken, whose arrival numbers begin with `since`."""
        times, expires = [], MIN_TIME_NS
        for side in SIDES:
            for rows in self._sides[side].incoming:
                times.append(rows.times)
                expires = max(expires, self._rules.expires_at(side, int(rows.times.max())))
        if times:
            active = self._head.clocks.active
            self._arrival_times.add(since, active, np.concatenate(times), expires)

    def _emit_pairs(self) -> Iterator[Emission]:
        """Emit the pairs that this micro-batch completes, in the order of the events."""
        left, right = self._sides["left"], self._sides["right"]
        lefts = list(left.rows_near(*self._match_bounds("right")))
        rights = list(right.rows_near(*self._match_bounds("left")))
        # Incoming messages get the smallest ids: messages with other keys have no match.
        parts = [left.incoming, right.incoming, lefts, rights]
        keys = KeyIds([share for part in parts for share in part])
        ends = np.cumsum([len(part) for part in parts]).tolist()
        below = keys.first_unused_id(ends[1])
        events = [
            side.to_events(part, keys.iterate_ids(end - len(part), end), below)
            for side, part, end in zip((left, right, left, right), parts, ends, strict=True)
        ]
        new_left, new_right, old_left, old_right = events
        counters = self._head.counters
        for matched in find_pairs(self._rules, new_left, old_left, new_right, old_right):
            self._matched.add(matched.left.arrivals)
            self._matched.add(matched.right.arrivals)
            counters.emitted_windows += len(matched.left)
            counters.emitted_messages += len(matched.left)
            yield from self._output.emit_pairs(matched, left.loaded_packs, right.loaded_packs, keys)

    def _match_bounds(self, side: Side) -> tuple[Ints, Ints]:
        """Return by incoming message of a side the least and largest time of a match."""
        times = [share.times for share in self._sides[side].incoming]
        return self._rules.match_bounds(side, np.concatenate([np.empty(0, np.int64), *times]))

    def _emit_expired(self, clock: int, flush: bool) -> Iterator[Emission]:
        """Free messages that no match can come for; emit those without one if configured."""
        rules, counters = self._rules, self._head.counters
        unmatched_rows: list[tuple[int, int, Side, UnmatchedRow]] = []
        idle = self._pop_idle(clock)
        for side in SIDES:
            until = rules.expires_before(side, clock)
            listed, reach = rules.emits_unmatched(side), rules.match_after(side)
            leaving = self._sides[side].free_expired(None if flush else until, idle, listed)
            count, without, unmatched = leaving
            if not listed:
                counters.passed_over += without
                count -= without
            counters.released += count
            unmatched_rows += [(one.time + reach, one.arrival, side, one) for one in unmatched]
        counters.emitted_windows += len(unmatched_rows)
        counters.emitted_messages += len(unmatched_rows)
        unmatched_rows.sort(key=lambda one: one[:2])
        for end, _, side, one in unmatched_rows:
            reason: WindowReason = "flush"
            if one.time < rules.expires_before(side, clock):
                reason = "final"
            elif idle is not None and one.arrival < idle.before:
                reason = "idle"
            yield self._output.emit_unmatched(
                side, one, (one.time - rules.match_before(side), end), reason
            )

    def _pop_idle(self, clock: int) -> IdleMessages | None:
        """Return the messages that have waited for `idle_timeout`, and forget when they came."""
        timeout, clocks = self._settings.idle_timeout, self._head.clocks
        if timeout is None:
            return None
        self._arrival_times.forget_expired(clock)
        if clocks.is_behind:
            return None
        return self._arrival_times.pop_idle(clocks.active, timeout, self._head.next_arrival)

    def _next_due(self, now: int, clock: int, clocks: BatchClocks) -> int | None:
        """Return when a message comes out alone without new ones, as batch time, ns, or None."""
        rules, settings = self._rules, self._settings
        idle = clocks.next_idle()
        is_waiting = any(self._sides[side].store.held_count for side in SIDES)
        dues = [idle] if idle is not None and is_waiting else []
        if settings.clock == "system":
            for side in filter(rules.emits_unmatched, SIDES):
                earliest = self._sides[side].earliest_time(rules.expires_before(side, clock))
                if earliest is not None:
                    dues.append(rules.expires_at(side, earliest))
        oldest = self._arrival_times.oldest
        if settings.idle_timeout is not None and oldest is not None:
            dues.append(now + oldest + settings.idle_timeout - self._head.clocks.active)
        return min(dues, default=None)

    def _make_status(
        self, now: int, clock: int, next_due: int | None, clocks: BatchClocks
    ) -> Status:
        """Return the shard's status after the micro-batch."""
        stores = [self._sides[side].store for side in SIDES]
        held_count = sum(store.held_count for store in stores)
        return Status(
            now=now,
            closed_until=None,
            counters=self._head.counters,
            held=held_count,
            held_bytes=sum(store.held_bytes for store in stores),
            open=(),
            next_due=next_due,
            newest_end=None,
            closed=(),
            log=self._late_messages.log_lines(),
            watermark=None if clock == NEVER else clock,
            dropped=(*self._sorted_out, *self._late_messages.list_samples()),
            # Each message that waits has a window of its own, in which its match would be.
            open_windows=held_count,
            clock_holder=clocks.holder,
            next_end=find_next_end(self._window, clock),
        )

    def _save_head(self) -> None:
        head = self._head
        lefts, head.next_pack = self._sides["left"].store.head_entries()
        rights, _ = self._sides["right"].store.head_entries()
        head.packs = lefts + rights
        is_timed = self._settings.idle_timeout is not None
        head.arrival_times = self._arrival_times.to_fields() if is_timed else None
        head.write(self._store)
