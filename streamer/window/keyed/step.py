"""A micro-batch of a shard whose windows are decided key by key.

Events are put into windows by the rules of the kind, one key after another (`taking`); then what is
due is closed (`closing`). Which messages a batch has is looked up at the end, for many batches
together (`emitting`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable

from streamer.window.aside import aside
from streamer.window.clock import Reading
from streamer.window.emission import Emission
from streamer.window.event import EventWindow
from streamer.window.having import Having
from streamer.window.intake import Intake
from streamer.window.keyed.clocks import BatchClocks
from streamer.window.keyed.closing import Closing
from streamer.window.keyed.columns.came import Arrival
from streamer.window.keyed.columns.ended import Ended
from streamer.window.keyed.columns.parting import pack_of, records_of
from streamer.window.keyed.columns.sessions import Left, SessionColumns
from streamer.window.keyed.drawers import Drawers, Dues
from streamer.window.keyed.emitting import emitted
from streamer.window.keyed.folds import Folds
from streamer.window.keyed.head import Head
from streamer.window.keyed.incomplete import dropped_incomplete
from streamer.window.keyed.lates import Lates
from streamer.window.keyed.ledger import Ledger
from streamer.window.keyed.outputs import Released
from streamer.window.keyed.pending import Pending
from streamer.window.keyed.rules import rules_of
from streamer.window.keyed.segments import Segment
from streamer.window.keyed.state import FOREVER
from streamer.window.keyed.taking import Taking
from streamer.window.listing import Listing
from streamer.window.pack import Pack
from streamer.window.queries import Query
from streamer.window.row import Row
from streamer.window.status import Closed, LogLine, Status
from streamer.window.store import Store


class KeyedStep:
    """One micro-batch of one shard."""

    def __init__(
        self,
        window: EventWindow,
        store: Store,
        keep_dropped: bool,
        having: Query | None = None,
        folds: str | None = None,
        together: bool = False,
    ) -> None:
        """Prepare.

        Args:
            window: the settings.
            store: the shard's state.
            keep_dropped: emit dropped messages too, for `late_output`.
            having: a compiled mapping; a batch for which it is not true is suppressed.
            folds: the mapping that windows are folded for from now on; None to keep them whole.
            together: give runs of batches where there are some.
        """
        self._together = together
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
        self._columns = SessionColumns(window, store, folds, head.columns)

    def run(self, rows: Iterable[Row]) -> Generator[Emission, None, Status]:
        """Do it: give what goes on, return the status."""
        head, intake = self._head, Intake(rows)
        counters = head.counters
        reading = Reading.of(intake.clock)
        now = head.clocks.begin(reading)
        clocks = BatchClocks(self._settings, self._rules.unit, head.clocks, intake.pieces)
        yield from aside(intake, counters)
        since = head.next_arrival
        arrivals = self._arrivals(intake, clocks)
        clock = clocks.end(reading.backlog)
        segments, ended = self._parted(arrivals, clock, reading.ended)
        forwards = self._settings.emit == "forward"
        pending = Pending(self._rules, forwards, since, head.next_arrival)
        late = self._visit(segments, clocks.by_key, reading, clock, now, pending)
        self._folds.settle(self._ledger.fresh)
        yield from late.drop(counters, self._keep_dropped)
        counters.released += pending.give_back_lapsed(self._ledger)
        having = None if self._asked is None else Having(self._asked, now, self._listing)
        released = Released(self._ledger, self._window.keyed, self._rules.unit, pending.spared)
        closed = yield from emitted(pending, released, ended, having, counters, self._together)
        counters.released += released.given_back + self._folds.released + self._columns.released
        yield from dropped_incomplete(
            pending.incomplete, self._ledger, counters, self._keep_dropped
        )
        counters.released += pending.give_back(self._ledger)
        self._ledger.settle()
        self._drawers.make_room()
        status = self._status(now, closed, (*late.lines(), *self._listing.lines()))
        self._save()
        return status

    def _arrivals(self, intake: Intake, clocks: BatchClocks) -> list[Arrival]:
        """Unpack the packs."""
        arrived, self._head.next_arrival = intake.arrived(self._head.next_arrival)
        found = []
        for (body, shift, header), _ in arrived:
            before, partition = clocks.before(header.first), clocks.partition(header.first)
            found.append(Arrival(Pack(body, shift), body, shift, before, partition))
        return found

    def _parted(
        self, arrivals: list[Arrival], clock: int, over: bool
    ) -> tuple[dict[bytes, list[Segment]], Ended]:
        """Put into columns of sessions what can be; return where other messages lie, by key."""
        columns, head = self._columns, self._head
        left = columns.leave()
        if left is not None:
            self._adopt(left)
        flush = over and self._settings.end_of_input == "flush"
        left, ended = columns.step(arrivals, self._drawers.known, clock, head.clocks.active, flush)
        self._adopt(left)
        head.counters.taken += columns.taken
        head.open += columns.opened
        return self._arrive(left.arrivals), ended

    def _adopt(self, left: Left) -> None:
        """Take sessions over that cannot go on as columns."""
        if left.lanes is None or not len(left.sessions):
            return
        number = self._folds.number_of(left.lanes.text)
        self._ledger.adopt(pack_of(left.sessions, self._window.keyed))
        records = list(records_of(left.sessions, left.lanes, number, self._rules))
        for _, state, _ in records:
            self._folds.counted(state, 1)
        self._folds.held += int(left.sessions.counts.sum()) - len(left.sessions)
        self._drawers.adopt(records)

    def _arrive(self, arrivals: Iterable[Arrival]) -> dict[bytes, list[Segment]]:
        """Take packs to the ledger; return where each key's messages lie."""
        segments: dict[bytes, list[Segment]] = {}
        for pack, body, shift, before, partition in arrivals:
            page = self._ledger.add(pack, body, shift, before, partition)
            spans = zip(pack.starts[:-1], pack.starts[1:], strict=True)
            for key, (first, last) in zip(pack.keys or [b""], spans, strict=True):
                mine = segments.get(key)
                if mine is None:
                    segments[key] = [(page, first, last)]
                else:
                    mine.append((page, first, last))
        return segments

    def _visit(
        self,
        segments: dict[bytes, list[Segment]],
        by_key: bool,
        reading: Reading,
        clock: int,
        now: int,
        pending: Pending,
    ) -> Lates:
        """Look at every key that has messages, or that is due; return what is late."""
        head, drawers, folds = self._head, self._drawers, self._folds
        rules, settings = self._rules, self._settings
        active, ended = head.clocks.active, reading.ended
        follow = self._ledger.fresh_follow
        taking = Taking(rules, settings, folds, pending, now, active, by_key, follow)
        idle = None if head.clocks.behind else active
        closing = Closing(rules, settings, folds, pending, clock, idle, ended, by_key)
        dues: Dues = (clock, active, now)
        numbers = drawers.numbers(segments, dues)
        flush = ended and (settings.end_of_input == "flush" or rules.timeless)
        if flush:
            numbers = dict(sorted({**dict.fromkeys(drawers.least, []), **numbers}.items()))
        for number, touched in numbers.items():
            drawer = drawers.take_out(number)
            before = len(drawer)
            keys = dict.fromkeys(touched)
            keys.update(dict.fromkeys(drawer.keys() if flush else drawer.due(dues)))
            for key in keys:
                state = drawer.get(key)
                windows = len(state.windows)
                if folds.needed:
                    folds.open(state)
                    folds.counted(state, -1)
                if by_key:
                    taking.lapse(key, state)
                mine = segments.get(key)
                if mine is not None:
                    taking.take(key, state, mine)
                when = closing.settle(key, state)
                head.open += len(state.windows) - windows
                if folds.needed:
                    folds.counted(state, 1)
                drawer.put(key, state, when)
            drawers.put_back(number, drawer, before)
        head.counters.taken += taking.taken
        return taking.late

    def _status(self, now: int, closed: tuple[Closed, ...], log: tuple[LogLine, ...]) -> Status:
        """Say how the shard is after the micro-batch."""
        records = sum(self._drawers.sizes.values()) if self._folds.needed else 0
        blocks = self._columns.blocks
        return Status(
            now=now,
            horizon=None,
            counters=self._head.counters,
            held=self._ledger.held + self._folds.held + blocks.held,
            held_bytes=self._ledger.size + records + blocks.size,
            open=(),
            next_due=self._next_due(now),
            newest_end=None,
            closed=closed,
            log=log,
            open_windows=self._head.open,
        )

    def _next_due(self, now: int) -> int | None:
        """Return when the next window is due by a clock that runs without messages."""
        clocks = self._head.clocks
        dues = [FOREVER]
        if self._settings.clock == "system" and self._columns.next_due is not None:
            dues.append(self._columns.next_due)
        for clock, active, _ in self._drawers.least.values():
            if self._settings.clock == "system":
                dues.append(clock)
            if active != FOREVER:
                dues.append(now + active - clocks.active)
        due = min(dues)
        return None if due == FOREVER else due

    def _save(self) -> None:
        head, drawers = self._head, self._drawers
        head.drawers, head.keys, head.least = drawers.count, drawers.keys, drawers.least
        head.packs, head.next_pack = self._ledger.head()
        self._folds.forget()
        head.texts, head.uses = self._folds.texts, self._folds.uses
        head.folded, head.sizes = self._folds.held, drawers.sizes
        self._columns.blocks.write()
        head.columns = len(self._columns.blocks) > 0
        head.write(self._store)
