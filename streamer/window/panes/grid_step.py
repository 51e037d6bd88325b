"""Steps of windows on a grid: the order of each step, and what `system_window` does in it.

A step is a function of the state and the rows alone, so that a replayed micro-batch decides the
same. What windows on a grid have in common: whole panes are kept, and given back.

A message of a sliding window counts as expired only when none of its windows was emitted, so the
ends of windows that were dropped under back pressure are remembered while a message of theirs is
held.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator
from heapq import merge
from operator import itemgetter
from typing import Final, Literal, NamedTuple

from streamer.core.durations import MILLISECOND
from streamer.core.timestamps import format_rfc3339
from streamer.window.aggregate.fire_groups import CollectedGroups, PaneParts, fire_groups
from streamer.window.contract import (
    MAX_DROPPED_SAMPLES,
    ClockHolder,
    ClosedWindow,
    DroppedSample,
    Emission,
    MicroBatchInfo,
    ShuffleRow,
    Status,
)
from streamer.window.fire.dropped_sample import sample_dropped
from streamer.window.fire.fire_sorted import fire_sorted
from streamer.window.fire.fire_window import (
    MAX_CACHED_MESSAGES,
    PaneCache,
    fire_cached,
    fire_ungrouped,
    fire_ungrouped_cached,
    fire_window,
)
from streamer.window.fire.group_batches import GroupBatches
from streamer.window.fire.group_labels import make_shared_labels
from streamer.window.fire.step_io import (
    ShardInput,
    StepReport,
    emit_passthrough,
    emit_to_late_output,
    list_open_windows,
)
from streamer.window.pack.message_columns import FiredGroup, GroupMetadata, SameMetadata
from streamer.window.pack.pack_codec import Pack
from streamer.window.pack.window_metadata import WINDOW_END
from streamer.window.settings.back_pressure import BackPressure
from streamer.window.settings.grid import Grid
from streamer.window.settings.system_window import SystemWindow
from streamer.window.settings.window import Window
from streamer.window.state.pane_store import Pane, PaneHead, PaneIndex, PaneStore
from streamer.window.state_store import StateStore

_LAST_PANE: Final = 2**63 - 1

OrderedEmissions = Iterator[tuple[int, Emission]]
"""Batches, each with the arrival of its first message, by which they are in order."""


class ClosingWindow(NamedTuple):
    """A window that closes.

    Attributes:
        start: as the grid names it, ns.
        end: as the grid names it, ns.
        panes: those that hold messages, one at least.
        reason: why it closes.
        shared: another window that closes in this step holds some of its panes too.
        is_only: no other window ends with it.
    """

    start: int
    end: int
    panes: list[Pane]
    reason: Literal["final", "flush"]
    shared: bool
    is_only: bool

    @property
    def messages(self) -> int:
        """Number of messages in the window."""
        return sum(pane.count for pane in self.panes)


class GridStep(ABC):
    """One step of one shard."""

    # What is added to bounds as the grid names them, to name them as the kind's rules do.
    bound_offset = 0

    def __init__(
        self,
        window: Window,
        store: StateStore,
        keep_dropped: bool,
        batch_emissions: bool = False,
    ) -> None:
        self._window = window
        self._batch_emissions = batch_emissions
        self._flushes_at_end = window.end_of_input == "flush"
        self._grid = window.grid
        self._index = PaneIndex(store, window)
        self._head = self._index.head
        self._pane_store = PaneStore(store, self._index)
        self._pane_cache = PaneCache(self._pane_store)
        self._keep_dropped = keep_dropped
        self._now = 0
        self._closed_until = 0
        self._closed: list[ClosedWindow] = []
        self._report = StepReport()
        self._clock_holder: ClockHolder | None = None
        self._next_idle: int | None = None

    def run(self, rows: Iterable[ShuffleRow]) -> Generator[Emission, None, Status]:
        """Run the step: yield emissions, return the status."""
        shard_input = ShardInput(rows)
        head = self._head
        info = MicroBatchInfo.from_rows(shard_input.clock_bodies)
        self._now, under_back_pressure, head.clock = head.clock.advance(info)
        self._closed_until = self._initial_closed_until() if head.horizon is None else head.horizon

        yield from emit_passthrough(shard_input, head.counters)
        self._report.dropped += shard_input.dropped_samples()
        yield from self._take_messages(shard_input, info)
        if under_back_pressure and info.pressure is not None:
            yield from self._expire_windows(info.pressure)
        yield from self._close_due(info)
        if info.ended and self._flushes_at_end and head.newest is not None:
            yield from self._close_until(head.newest, "flush")

        self._update_head()
        status = self._make_status()
        self._index.save()
        return status

    @abstractmethod
    def _initial_closed_until(self) -> int:
        """Return `closed_until` at the very first start."""

    @abstractmethod
    def _take_messages(self, shard_input: ShardInput, info: MicroBatchInfo) -> Iterator[Emission]:
        """Keep what is not late."""

    def _expire_windows(self, pressure: BackPressure) -> Iterator[Emission]:
        """Drop windows that back pressure has held up for too long, where a kind has such."""
        return iter(())

    @abstractmethod
    def _emit_window(self, closing: ClosingWindow) -> OrderedEmissions:
        """Emit a window and count it."""

    @abstractmethod
    def _update_head(self) -> None:
        """Write into the head what the step has moved."""

    def _close_due(self, info: MicroBatchInfo) -> Iterator[Emission]:
        """Close the windows that are due by the largest event time, or by the batch time."""
        by_event_time = self._window.uses_event_time
        clock = self._head.stream if by_event_time else self._now
        # While the input is behind, the batch time is ahead of its messages: windows wait.
        if clock is not None and (by_event_time or not info.backlog):
            yield from self._close_until(self._window.closed_until(clock), "final")

    def _due_time(self, end: int) -> int | None:
        """Return when the system clock closes a window, ns; None when another clock does."""
        if self._window.uses_event_time:
            return None
        return -(-self._window.due_time(end) // MILLISECOND) * MILLISECOND

    def _find_next_due(self, oldest: int | None) -> int | None:
        """Return when the system clock closes the next window, whose end is `oldest`."""
        if oldest is None:
            return None
        due = self._due_time(oldest)  # which may be 0, the beginning of 1970
        return self._next_idle if due is None else due

    def _oldest_end(self) -> int | None:
        """Return the end of the oldest window that holds messages."""
        oldest = self._index.oldest_pane()
        if oldest is None:
            return None
        return self._grid.end_at_or_after(max(oldest, self._closed_until + 1))

    def _closing_ends(self, until: int) -> Iterator[int]:
        """Give the ends up to one at which windows that hold messages close, oldest first.

        `closed_until` moves along, and is at or beyond the last when all are given.
        """
        while (end := self._oldest_end()) is not None and end <= until:
            yield end
            self._closed_until = end
        self._closed_until = max(self._closed_until, until)

    def _windows_ending_at(self, end: int) -> list[tuple[int, list[Pane]]]:
        """Return start and panes of each window with an end, the one that holds all first."""
        starts = self._grid.starts_of(end)
        until = min(end, _LAST_PANE)
        windows = [(start, list(self._index.panes_between(start, until))) for start in starts]
        return [(start, panes) for start, panes in windows if panes]

    def _panes_freed_by(self, end: int, panes: list[Pane]) -> list[Pane]:
        """Return the panes that no window after an end holds."""
        return [pane for pane in panes if self._grid.last_end(pane.pane) <= end]

    def _close_until(self, until: int, reason: Literal["final", "flush"]) -> Iterator[Emission]:
        grid = self._grid
        for end in self._closing_ends(until):
            windows = self._windows_ending_at(end)
            # A window that closes alone is better released group by group, with nothing remembered.
            together = grid.end_at_or_after(end + 1) <= until or not self._pane_cache.is_empty
            shared = grid.overlapping and together
            is_only = len(windows) == 1
            closing = [
                ClosingWindow(start, end, panes, reason, shared, is_only)
                for start, panes in windows
            ]
            emitted = map(self._emit_window, closing)
            for _, emission in merge(*emitted, key=itemgetter(0)):
                yield emission
            for window in closing:
                bounds = window.end + self.bound_offset, window.start + self.bound_offset
                self._closed.append(ClosedWindow(bounds[0], window.messages, reason, bounds[1]))
            for pane in self._panes_freed_by(end, windows[0][1] if windows else []):
                self._head.counters.released += pane.count
                self._pane_store.remove(pane)
                self._pane_cache.evict(pane.pane)

    def _fire_window(
        self,
        closing: ClosingWindow,
        collected: CollectedGroups | None,
        labels: GroupMetadata,
        whole: bool = False,
    ) -> Iterator[FiredGroup]:
        """Give a window's groups; where the next one closes now too, they share what they hold.

        Args:
            closing: the window.
            collected: its groups, where something of it is aggregated.
            labels: the metadata that it adds to messages.
            whole: give all messages together, however they are grouped.
        """
        panes, cache = closing.panes, self._pane_cache
        if collected is not None:
            return fire_groups(collected, labels)
        if closing.shared and closing.messages <= MAX_CACHED_MESSAGES:
            packs = [pack for pane in panes for pack in cache.load_packs(pane)]
            if self._window.sorts_by_time:
                return fire_sorted(packs, labels, whole)
            groups = None if whole else fire_cached(packs, labels)
            return fire_ungrouped_cached(packs, labels) if groups is None else groups
        stored = [entry for pane in panes for entry in self._pane_store.load_packs(pane)]
        if self._window.sorts_by_time:
            return fire_sorted([Pack(*entry) for entry in stored], labels, whole)
        return fire_ungrouped(stored, labels) if whole else fire_window(stored, labels)

    def _collect_groups(self, closing: ClosingWindow) -> CollectedGroups | None:
        """Return the groups of a window; None where nothing of it is aggregated."""
        if not any(pane.is_aggregated for pane in closing.panes):
            return None
        each = [
            self._pane_cache.load_parts(pane) if closing.shared else self._load_parts(pane)
            for pane in closing.panes
        ]
        aggregated = [groups for parts in each for groups in parts.aggregated]
        return CollectedGroups(aggregated, [pack for parts in each for pack in parts.message_packs])

    def _batch_groups(
        self, closing: ClosingWindow, collected: CollectedGroups | None
    ) -> GroupBatches | None:
        """Return the groups of a window, many at a time; None where they go one by one."""
        if collected is None or not self._batch_emissions or not closing.is_only:
            return None
        return GroupBatches(collected.windows[0]) if collected.are_alike else None

    def _load_parts(self, pane: Pane) -> PaneParts:
        return PaneParts(self._pane_store.load_packs(pane))

    def _make_status(self) -> Status:
        held_count, size, newest = self._index.summarise()
        oldest = self._oldest_end()
        return Status(
            now=self._now,
            closed_until=None
            if self._head.horizon is None
            else self._head.horizon + self.bound_offset,
            counters=self._head.counters,
            held=held_count,
            held_bytes=size,
            open=tuple(
                list_open_windows(self._index, self._grid, self._closed_until, self.bound_offset)
            ),
            next_due=self._find_next_due(oldest),
            newest_end=None if newest is None else self._grid.last_end(newest),
            closed=tuple(self._closed),
            log=self._report.log_lines(),
            clock_holder=self._clock_holder,
            next_end=None
            if self._head.horizon is None
            else self._grid.end_at_or_after(self._head.horizon + 1) + self.bound_offset,
            due_clock=self._window.due_time(oldest)
            if oldest is not None and self._window.uses_event_time
            else None,
            watermark=self._head.stream if self._window.uses_event_time else self._now,
            dropped=tuple(self._report.dropped),
        )


class SystemStep(GridStep):
    """One step of one shard."""

    def __init__(
        self,
        window: SystemWindow,
        store: StateStore,
        keep_dropped: bool,
        batch_emissions: bool = False,
    ) -> None:
        super().__init__(window, store, keep_dropped, batch_emissions)
        self._window: SystemWindow = window

    def _initial_closed_until(self) -> int:
        return self._window.initial_closed_until(self._now)

    def _take_messages(self, shard_input: ShardInput, info: MicroBatchInfo) -> Iterator[Emission]:
        grid, head, closed_until = self._window.grid, self._head, self._closed_until
        newest = shard_input.newest_end(grid, self._now, closed_until)
        if newest is not None:
            head.newest = newest if head.newest is None else max(head.newest, newest)
        panes, head.next_arrival = shard_input.assign_panes(
            grid, self._now, closed_until, head.next_arrival
        )
        late, late_until, samples = 0, closed_until, list[DroppedSample]()
        for pane in sorted(panes):
            count = sum(pack.header.messages for pack in panes[pane])
            if not self._window.is_late(pane, closed_until):
                before_first = grid.end_at_or_after(pane) - grid.epoch
                self._pane_store.put(pane, panes[pane], max(closed_until, before_first))
                head.counters.taken += count
                continue
            late, late_until = late + count, grid.last_end(pane)
            if len(samples) < MAX_DROPPED_SAMPLES:
                first, keyed = panes[pane][0], self._window.keyed
                samples.append(sample_dropped(first, keyed, closed_until, late_until))
            if self._keep_dropped:
                yield from emit_to_late_output([(p.body, p.shift) for p in panes[pane]], "late")
        if late:
            head.counters.count_dropped("late", late)
            self._report.add_late(late, late_until, closed_until, samples)

    def _emit_window(self, closing: ClosingWindow) -> OrderedEmissions:
        counters = self._head.counters
        counters.emitted_windows += 1
        counters.emitted_messages += closing.messages
        entries = {WINDOW_END: format_rfc3339(closing.end)}
        collected = self._collect_groups(closing)
        batches = self._batch_groups(closing, collected)
        if batches is not None:
            labels = make_shared_labels(entries)
            for batch in batches.iterate_batches(
                None, closing.end, closing.reason, lambda times, keys: labels
            ):
                yield 0, batch
            return
        metadata = SameMetadata(entries)
        for first, key, messages in self._fire_window(closing, collected, metadata):
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
            self._closed.append(ClosedWindow(end, count, "expired", start))
            self._report.add_expired(start, end, count, self._now, pressure)
            _note_expired(head, grid, end)
            for pane in self._panes_freed_by(end, panes):
                emitted = _count_emitted(pane, head, grid)
                head.counters.released += emitted
                head.counters.count_dropped("expired", pane.count - emitted)
                if self._keep_dropped:
                    yield from emit_to_late_output(
                        self._pane_store.load_packs(pane), "expired", emitted
                    )
                self._pane_store.remove(pane)

    def _update_head(self) -> None:
        self._head.horizon = self._closed_until
        _prune_expired(self._head, self._window.grid)


def _note_expired(head: PaneHead, grid: Grid, end: int) -> None:
    """Remember that a window was dropped; ends come in their order."""
    if head.expired and head.expired[-1][1] == end - grid.epoch:
        head.expired[-1][1] = end
    else:
        head.expired.append([end, end])


def _prune_expired(head: PaneHead, grid: Grid) -> None:
    """Forget the windows of which nothing can be held any more."""
    if head.horizon is not None:
        oldest = head.horizon - grid.size
        head.expired = [run for run in head.expired if run[1] > oldest]


def _count_emitted(pane: Pane, head: PaneHead, grid: Grid) -> int:
    """Return how many messages of a pane were emitted, all its windows being closed.

    They are the first ones in order of arrival: who came later had no windows that who came before
    did not have.
    """
    windows = [end for end in grid.windows_of(pane.pane) if not _is_expired(head, end)]
    newest = max(windows, default=None)
    if newest is None:
        return 0
    return sum(count for closed_until, count in pane.runs if newest > closed_until)


def _is_expired(head: PaneHead, end: int) -> bool:
    return any(first <= end <= last for first, last in head.expired)
