"""The step of windows on a grid that follow event times, where all keys share one clock.

Whole panes close together, whatever keys are in them. A message may come when some of its windows
have closed and others have not, by the clock before it: it waits until those are emitted that it
must not be in, before it joins its pane.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final, NamedTuple

from streamer.durations import MILLISECOND
from streamer.window.aside import handed_on
from streamer.window.clock import Reading
from streamer.window.emission import Emission
from streamer.window.event import EventWindow
from streamer.window.folds.release import FoldedGroup
from streamer.window.having import Having
from streamer.window.intake import Intake
from streamer.window.keep import Arrived
from streamer.window.labels import WindowLabels
from streamer.window.metas import Decoded, Metas
from streamer.window.piece_clocks import PieceClocks
from streamer.window.queries import Query
from streamer.window.row import Kind
from streamer.window.split import parted
from streamer.window.step import Arrivals, Closing, StepRun
from streamer.window.store import Store

_BEFORE_ALL: Final = -(2**63) - 1
"""The horizon before any window has closed: no window that holds a message ends there."""


class Waiting(NamedTuple):
    """Packs of a pane some of whose windows had closed before they came.

    Attributes:
        horizon: the newest of these windows' ends.
        pane: the pane.
        packs: the packs.
    """

    horizon: int
    pane: int
    packs: list[Arrived]


class PaneStep(StepRun):
    """One step of one shard."""

    # The grid names windows [start, end) by the instants before.
    beyond = 1

    def __init__(
        self, window: EventWindow, store: Store, keep_dropped: bool, having: Query | None
    ) -> None:
        super().__init__(window, store, keep_dropped)
        self._window = window
        self._follows = window.time.clock == "stream"
        self._asked = having
        self._waiting: list[Waiting] = []
        self._decoded: Decoded = {}

    def _first_horizon(self) -> int:
        return _BEFORE_ALL

    def _take(self, intake: Intake) -> Iterator[Emission]:
        head = self._head
        clocks = PieceClocks(intake.pieces, head.stream if self._follows else None)
        for piece in intake.pieces:
            end = self._grid.last_end(piece.newest)
            head.newest = end if head.newest is None else max(head.newest, end)
        late: list[Arrived] = []
        until = _BEFORE_ALL
        for (pane, horizon), packs in sorted(self._by_horizon(intake, clocks).items()):
            last = self._grid.last_end(pane)
            if last <= horizon:
                late += packs
                until = max(until, last)
            elif horizon <= self._horizon or horizon < self._grid.end_at_or_after(pane):
                self._admit(pane, packs)
            else:
                self._waiting.append(Waiting(horizon, pane, packs))
        self._waiting.sort(key=lambda waiting: waiting[:2], reverse=True)
        if self._follows:
            head.stream = clocks.after
        if late:
            yield from self._drop(late, until)

    def _drop(self, late: list[Arrived], until: int) -> Iterator[Emission]:
        """Drop messages, the newest of whose windows ended at `until`."""
        count = sum(pack.header.messages for pack in late)
        self._head.counters.drop("late", count)
        closed = self._horizon
        if self._head.stream is not None:
            closed = max(closed, self._window.closed_at(self._head.stream))
        self._listing.late(count, until + self.beyond, closed + self.beyond)
        if self._keep_dropped:
            yield from handed_on([(pack.body, pack.shift) for pack in late], "late")

    def _by_horizon(
        self, intake: Intake, clocks: PieceClocks
    ) -> dict[tuple[int, int], list[Arrived]]:
        """Return packs by pane and the horizon at which they came."""
        found: dict[tuple[int, int], list[Arrived]] = defaultdict(list)
        arrived, self._head.next_arrival = intake.arrived(self._head.next_arrival)
        for pack, row in arrived:
            base = clocks.before(row.arrival) if self._follows else None
            horizon = self._horizon
            if base is not None:
                horizon = max(horizon, self._window.closed_at(base))
            if row.kind == Kind.DISORDERED:
                ends = self._grid.windows_of(row.pane)
                for closed, part in parted(pack, base, map(self._window.closes, ends)):
                    at = ends[closed - 1] if closed else horizon
                    found[row.pane, max(at, horizon)].append(part)
            else:
                found[row.pane, horizon].append(pack)
        return found

    def _admit(self, pane: int, packs: list[Arrived]) -> None:
        self._keep.put(pane, packs)
        self._head.counters.taken += sum(pack.header.messages for pack in packs)

    def _oldest_end(self) -> int | None:
        end = super()._oldest_end()
        while self._waiting and (end is None or self._waiting[-1].horizon < end):
            horizon, pane, packs = self._waiting.pop()
            # All windows that they must not be in are closed.
            self._horizon = max(self._horizon, horizon)
            self._shelf.forget(pane)
            self._admit(pane, packs)
            end = super()._oldest_end()
        return end

    def _let_go(self, reading: Reading, pressed: bool) -> Iterator[Emission]:
        self._having = None
        if self._asked is not None:
            self._having = Having(self._asked, self._now, self._listing)
        clock = self._head.stream if self._follows else self._now
        if clock is not None and (self._follows or not reading.backlog):
            yield from self._close(self._window.closed_at(clock), "final")

    def _emitted(self, closing: Closing) -> Arrivals:
        counters, keyed = self._head.counters, self._window.keyed
        start, end = closing.start + self.beyond, closing.end + self.beyond
        told = Told(WindowLabels(start, end, closing.reason), keyed, self._decoded)
        windows = 0
        # What is asked of a window is asked of it as a whole, before a pipeline parts it.
        whole = self._having is not None and not keyed
        for first, key, messages in self._released(closing, told, whole):
            count = messages.size if isinstance(messages, FoldedGroup) else len(messages)
            if self._having is not None and not self._having.keeps(messages):
                counters.suppressed += count
                continue
            windows += 1
            counters.emitted_messages += count
            yield first, Emission(end, messages, closing.reason, key, start)
        counters.emitted_windows += windows if keyed else min(windows, 1)

    def _settle(self) -> None:
        self._head.horizon = None if self._horizon <= _BEFORE_ALL else self._horizon

    def _due(self, end: int) -> int | None:
        if self._follows:
            return None
        return -(-self._window.closes(end) // MILLISECOND) * MILLISECOND


class Told:
    """What the messages of a window are told of it; see `metas.Labels`."""

    def __init__(self, labels: WindowLabels, keyed: bool, decoded: Decoded) -> None:
        """Take the window's labels; `decoded` remembers metadata for all windows of a step."""
        self.by_group = keyed
        self._labels = labels
        self._decoded = decoded

    def of(self, key: bytes | None, newest: int | None) -> Metas:
        """See `metas.Labels`."""
        assert newest is not None
        return Metas(self._labels.of(newest, key if self.by_group else None), self._decoded)
