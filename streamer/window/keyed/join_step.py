"""A micro-batch of a shard that joins: its messages wait in two ledgers, one for each side."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import Final

import numpy as np

from streamer.window.aside import aside
from streamer.window.clock import Reading
from streamer.window.emission import Emission, WindowReason
from streamer.window.event import EventWindow
from streamer.window.intake import Intake
from streamer.window.ints import Ints
from streamer.window.keyed.clocks import BatchClocks
from streamer.window.keyed.head import Head
from streamer.window.keyed.joined import Joined
from streamer.window.keyed.joins import SIDES, Joins, Side, pairs
from streamer.window.keyed.key_numbers import KeyNumbers
from streamer.window.keyed.lates import Dropped, Lates
from streamer.window.keyed.matched import Matched
from streamer.window.keyed.waiting import Alone, Waiting
from streamer.window.kinds import Join
from streamer.window.pack import Pack
from streamer.window.row import Kind, Row
from streamer.window.status import Status
from streamer.window.store import Store

_RIGHT: Final = 1 << 30
"""From this number on, packs are the right side's."""


class JoinStep:
    """One micro-batch of one shard."""

    def __init__(self, window: EventWindow, store: Store, keep_dropped: bool) -> None:
        """Prepare.

        Args:
            window: the settings, of a join.
            store: the shard's state.
            keep_dropped: emit dropped messages too, for `late_output`.
        """
        assert isinstance(window.kind, Join)
        self._settings = window.time
        self._rules = Joins(window.kind, window.time.allowed_lateness)
        self._store = store
        self._keep_dropped = keep_dropped
        self._head = head = Head.read(store, window.fingerprint)
        rights = [entry for entry in head.packs if entry[0] >= _RIGHT]
        lefts = [entry for entry in head.packs if entry[0] < _RIGHT]
        after = max((entry[0] + 1 for entry in rights), default=_RIGHT)
        self._matched = matched = Matched(store)
        self._waiting = {
            "left": Waiting(store, matched, lefts, head.next_pack),
            "right": Waiting(store, matched, rights, after),
        }
        self._late = Lates()
        self._joined = Joined(window.keyed)

    def run(self, rows: Iterable[Row]) -> Generator[Emission, None, Status]:
        """Do it: give what goes on, return the status."""
        head, intake = self._head, Intake(rows)
        reading = Reading.of(intake.clock)
        now = head.clocks.begin(reading)
        clocks = BatchClocks(self._settings, 1, head.clocks, intake.pieces)
        yield from aside(intake, head.counters)
        self._arrive(intake, clocks)
        clock = clocks.end(reading.backlog)
        yield from self._late.drop(head.counters, self._keep_dropped)
        yield from self._pair()
        yield from self._leave(clock, reading.ended and self._settings.end_of_input == "flush")
        for side in SIDES:
            self._waiting[side].ledger.settle()
        self._matched.write()
        self._save()
        return self._status(now)

    def _arrive(self, intake: Intake, clocks: BatchClocks) -> None:
        """Take the packs to their sides; sort out what is late."""
        arrived, self._head.next_arrival = intake.arrived(self._head.next_arrival)
        for (body, shift, header), row in arrived:
            side = self._waiting["right" if row.kind == Kind.RIGHT else "left"]
            pack = Pack(body, shift)
            page = side.ledger.add(pack, body, shift)
            late = self._rules.late(page.times, pack.lags, clocks.before(header.first))
            if late.any():
                rows = np.flatnonzero(late)
                page.give_back(rows)
                self._late += [Dropped(int(pack.arrivals[at]), page, at) for at in rows.tolist()]
            self._head.counters.taken += side.take(page, np.flatnonzero(~late))

    def _pair(self) -> Iterator[Emission]:
        """Give the pairs that this micro-batch completes, in the order of the events."""
        left, right = self._waiting["left"], self._waiting["right"]
        lefts = list(left.near(*self._bounds("right")))
        rights = list(right.near(*self._bounds("left")))
        # What came in gets the smallest numbers: all other keys are of no interest.
        parts = [left.came, right.came, lefts, rights]
        keys = KeyNumbers([share for part in parts for share in part])
        ends = np.cumsum([len(part) for part in parts]).tolist()
        below = keys.below(ends[1])
        events = [
            side.events(part, keys.of(end - len(part), end), below)
            for side, part, end in zip((left, right, left, right), parts, ends, strict=True)
        ]
        new_left, new_right, old_left, old_right = events
        counters = self._head.counters
        for found in pairs(self._rules, new_left, old_left, new_right, old_right):
            self._matched.add(found.left.arrivals)
            self._matched.add(found.right.arrivals)
            counters.emitted_windows += len(found.left)
            counters.emitted_messages += len(found.left)
            yield from self._joined.pairs(found, left.sheets, right.sheets, keys)

    def _bounds(self, side: Side) -> tuple[Ints, Ints]:
        """Return between which times the matches of what came in on a side lie."""
        times = [share.times for share in self._waiting[side].came]
        return self._rules.bounds(side, np.concatenate([np.empty(0, np.int64), *times]))

    def _leave(self, clock: int, flush: bool) -> Iterator[Emission]:
        """Let go of what no match can come for any more, by the latest time of one."""
        rules, counters = self._rules, self._head.counters
        alone: list[tuple[int, int, Side, Alone]] = []
        for side in SIDES:
            until = rules.gone_before(side, clock)
            listed, reach = rules.alone(side), rules.reach(side)
            leaving = self._waiting[side].leave(None if flush else until, listed)
            count, without, unmatched = leaving
            if not listed:
                counters.passed_over += without
                count -= without
            counters.released += count
            alone += [(one.time + reach, one.arrival, side, one) for one in unmatched]
        counters.emitted_windows += len(alone)
        counters.emitted_messages += len(alone)
        alone.sort(key=lambda one: one[:2])
        for end, _, side, one in alone:
            final = one.time < rules.gone_before(side, clock)
            reason: WindowReason = "final" if final else "flush"
            yield self._joined.alone(side, one, (one.time - rules.back(side), end), reason)

    def _status(self, now: int) -> Status:
        """Say how the shard is after the micro-batch."""
        ledgers = [self._waiting[side].ledger for side in SIDES]
        held = sum(ledger.held for ledger in ledgers)
        return Status(
            now=now,
            horizon=None,
            counters=self._head.counters,
            held=held,
            held_bytes=sum(ledger.size for ledger in ledgers),
            open=(),
            next_due=None,
            newest_end=None,
            closed=(),
            log=self._late.lines(),
            # Each message that waits has a window of its own, in which its match would be.
            open_windows=held,
        )

    def _save(self) -> None:
        head = self._head
        lefts, head.next_pack = self._waiting["left"].ledger.head()
        rights, _ = self._waiting["right"].ledger.head()
        head.packs = lefts + rights
        head.write(self._store)
