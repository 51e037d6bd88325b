"""The step of a `system_window`: late messages, expired windows, and windows that are due."""

from __future__ import annotations

from collections.abc import Iterator

from streamer.core.timestamps import format_rfc3339
from streamer.window.contract import ClosedWindow, Emission
from streamer.window.fire.passthrough import emit_to_late_output
from streamer.window.fire.shard_input import ShardInput
from streamer.window.pack.message_builder import SameMetadata
from streamer.window.pack.window_metadata import WINDOW_END
from streamer.window.panes.expiry import count_emitted, note_expired, prune_expired
from streamer.window.panes.grid_step import ClosingWindow, GridStep, OrderedEmissions
from streamer.window.settings.back_pressure import BackPressure
from streamer.window.settings.system_window import SystemWindow
from streamer.window.state_store import StateStore


class SystemStep(GridStep):
    """One step of one shard."""

    def __init__(self, window: SystemWindow, store: StateStore, keep_dropped: bool) -> None:
        super().__init__(window, store, keep_dropped)
        self._window: SystemWindow = window

    def _initial_closed_until(self) -> int:
        return self._window.initial_closed_until(self._now)

    def _take_messages(self, shard_input: ShardInput) -> Iterator[Emission]:
        grid, head, closed_until = self._window.grid, self._head, self._closed_until
        newest = shard_input.newest_end(grid, self._now, closed_until)
        if newest is not None:
            head.newest = newest if head.newest is None else max(head.newest, newest)
        panes, head.next_arrival = shard_input.assign_panes(
            grid, self._now, closed_until, head.next_arrival
        )
        late, late_until = 0, closed_until
        for pane in sorted(panes):
            count = sum(pack.header.messages for pack in panes[pane])
            if not self._window.is_late(pane, closed_until):
                before_first = grid.end_at_or_after(pane) - grid.epoch
                self._pane_store.put(pane, panes[pane], max(closed_until, before_first))
                head.counters.taken += count
                continue
            late, late_until = late + count, grid.last_end(pane)
            if self._keep_dropped:
                yield from emit_to_late_output([(p.body, p.shift) for p in panes[pane]], "late")
        if late:
            head.counters.count_dropped("late", late)
            self._report.add_late(late, late_until, closed_until)

    def _emit_window(self, closing: ClosingWindow) -> OrderedEmissions:
        counters = self._head.counters
        counters.emitted_windows += 1
        counters.emitted_messages += closing.messages
        labels = SameMetadata({WINDOW_END: format_rfc3339(closing.end)})
        for first, key, messages in self._fire_window(closing, labels):
            yield first, Emission(closing.end, messages, closing.reason, key)

    def _expire_windows(self, pressure: BackPressure) -> Iterator[Emission]:
        """Drop windows, since nothing could be emitted for too long."""
        until = self._window.expired_until(self._now, pressure)
        if until is None or not self._window.drops_expired:
            return
        head, grid = self._head, self._window.grid
        for end in self._closing_ends(until):
            ((start, panes),) = self._windows_ending_at(end)
            count = sum(pane.count for pane in panes)
            head.counters.expired_windows += 1
            self._closed.append(ClosedWindow(end, count, "expired"))
            self._report.add_expired(start, end, count, self._now, pressure)
            note_expired(head, grid, end)
            for pane in self._panes_freed_by(end, panes):
                emitted = count_emitted(pane, head, grid)
                head.counters.released += emitted
                head.counters.count_dropped("expired", pane.count - emitted)
                if self._keep_dropped:
                    yield from emit_to_late_output(
                        self._pane_store.load_packs(pane), "expired", emitted
                    )
                self._pane_store.remove(pane)

    def _update_head(self) -> None:
        self._head.horizon = self._closed_until
        prune_expired(self._head, self._window.grid)
