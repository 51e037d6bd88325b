"""The step of a `system_window`: what is late, what has expired, and what the clock closes."""

from __future__ import annotations

from collections.abc import Iterator

from streamer.timestamps import format_rfc3339
from streamer.window.aside import handed_on
from streamer.window.clock import Reading
from streamer.window.emission import Emission
from streamer.window.expiry import emitted_of, note_expired, prune_expired
from streamer.window.intake import Intake
from streamer.window.labels import END
from streamer.window.metas import Alike
from streamer.window.pressure import Pressure
from streamer.window.status import Closed
from streamer.window.step import Arrivals, Closing, StepRun
from streamer.window.store import Store
from streamer.window.system import SystemWindow


class SystemStep(StepRun):
    """One step of one shard."""

    def __init__(self, window: SystemWindow, store: Store, keep_dropped: bool) -> None:
        super().__init__(window, store, keep_dropped)
        self._window = window

    def _first_horizon(self) -> int:
        return self._window.first_horizon(self._now)

    def _take(self, intake: Intake) -> Iterator[Emission]:
        grid, head, horizon = self._window.grid, self._head, self._horizon
        newest = intake.newest(grid, self._now, horizon)
        if newest is not None:
            head.newest = newest if head.newest is None else max(head.newest, newest)
        panes, head.next_arrival = intake.panes(grid, self._now, horizon, head.next_arrival)
        late, late_until = 0, horizon
        for pane in sorted(panes):
            count = sum(pack.header.messages for pack in panes[pane])
            if not self._window.is_late(pane, horizon):
                before_first = grid.end_at_or_after(pane) - grid.epoch
                self._keep.put(pane, panes[pane], max(horizon, before_first))
                head.counters.taken += count
                continue
            late, late_until = late + count, grid.last_end(pane)
            if self._keep_dropped:
                yield from handed_on([(p.body, p.shift) for p in panes[pane]], "late")
        if late:
            head.counters.drop("late", late)
            self._listing.late(late, late_until, horizon)

    def _let_go(self, reading: Reading, pressed: bool) -> Iterator[Emission]:
        if reading.backlog:
            return
        pressure = reading.pressure
        if pressed and pressure is not None and self._window.on_expired == "drop":
            until = self._window.expired_at(self._now, pressure)
            if until is not None:
                yield from self._expire(until, pressure)
        yield from self._close(self._window.closed_at(self._now), "final")

    def _emitted(self, closing: Closing) -> Arrivals:
        counters = self._head.counters
        counters.emitted_windows += 1
        counters.emitted_messages += closing.messages
        labels = Alike({END: format_rfc3339(closing.end)})
        for first, key, messages in self._released(closing, labels):
            yield first, Emission(closing.end, messages, closing.reason, key)

    def _expire(self, until: int, pressure: Pressure) -> Iterator[Emission]:
        """Drop windows, since nothing could be emitted for too long."""
        head, grid = self._head, self._window.grid
        for end in self._ends(until):
            ((start, panes),) = self._windows(end)
            count = sum(pane.count for pane in panes)
            head.counters.expired_windows += 1
            self._closed.append(Closed(end, count, "expired"))
            self._listing.expired(start, end, count, self._now, pressure)
            note_expired(head, grid, end)
            for pane in self._left_by(end, panes):
                emitted = emitted_of(pane, head, grid)
                head.counters.released += emitted
                head.counters.drop("expired", pane.count - emitted)
                if self._keep_dropped:
                    yield from handed_on(self._keep.take(pane), "expired", emitted)
                self._keep.remove(pane)

    def _settle(self) -> None:
        self._head.horizon = self._horizon
        prune_expired(self._head, self._window.grid)

    def _due(self, end: int) -> int:
        return self._window.due(end)
