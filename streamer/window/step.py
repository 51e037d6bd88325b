"""The order of a step: let pass, take in, expire, close what is due, move the horizon.

A step is a function of the state and the rows alone, so that a replayed micro-batch decides the
same.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import Literal

from streamer.message import Batch
from streamer.timestamps import format_rfc3339
from streamer.window.clock import Reading
from streamer.window.drops import REASON
from streamer.window.emission import Emission
from streamer.window.expiry import emitted_of, note_expired, prune_expired
from streamer.window.folds.release import Parts, release_folded
from streamer.window.index import Index, Pane
from streamer.window.intake import Intake
from streamer.window.keep import Keep
from streamer.window.labels import END
from streamer.window.listing import Listing, open_windows
from streamer.window.metas import Metas
from streamer.window.pack import Stored, peek
from streamer.window.release import in_order, release, release_shared
from streamer.window.row import Row
from streamer.window.shelf import MOST, Shelf
from streamer.window.status import Closed, Status
from streamer.window.store import Store
from streamer.window.system import SystemWindow


class StepRun:
    """One step of one shard."""

    def __init__(self, window: SystemWindow, store: Store, keep_dropped: bool) -> None:
        self._window = window
        self._grid = window.grid
        self._index = Index(store, window)
        self._head = self._index.head
        self._keep = Keep(store, self._index)
        self._keep_dropped = keep_dropped
        self._horizon = 0
        self._closed: list[Closed] = []
        self._listing = Listing()

    def run(self, rows: Iterable[Row]) -> Generator[Emission, None, Status]:
        """Do it: give what goes on, return the status."""
        intake = Intake(rows)
        head, window = self._head, self._window
        reading = Reading.of(intake.clock)
        now, pressed, head.clock = head.clock.advance(reading)
        self._horizon = window.first_horizon(now) if head.horizon is None else head.horizon

        yield from self._aside(intake)
        yield from self._take(intake, now)
        if not reading.backlog:
            if pressed and window.on_expired == "drop":
                yield from self._expire(window.expired_at(now), now)
            yield from self._close(window.closed_at(now), "final")
        if reading.ended and window.end_of_input == "flush" and head.newest is not None:
            yield from self._close(head.newest, "flush")

        head.horizon = self._horizon
        prune_expired(head, self._grid)
        status = self._status(now)
        self._index.save()
        return status

    def _aside(self, intake: Intake) -> Iterator[Emission]:
        """Let pass what goes into no window."""
        counters = self._head.counters
        for reason, count in intake.dropped_before():
            counters.drop(reason, count)
        for columns in in_order(intake.failed):
            for message in Metas({}).messages(columns.payloads, columns.metas, columns.meta_ids):
                counters.failed += 1
                yield Emission(None, [message], "failed")
        for columns in in_order(intake.dropped):
            messages = Metas({}).messages(columns.payloads, columns.metas, columns.meta_ids)
            yield Emission(None, messages, "dropped")

    def _take(self, intake: Intake, now: int) -> Iterator[Emission]:
        """Keep what is not late."""
        grid, head, horizon = self._grid, self._head, self._horizon
        newest = intake.newest(grid, now, horizon)
        if newest is not None:
            head.newest = newest if head.newest is None else max(head.newest, newest)
        panes, head.next_arrival = intake.panes(grid, now, horizon, head.next_arrival)
        late, late_until = 0, horizon
        for pane in sorted(panes):
            count = sum(pack.header.messages for pack in panes[pane])
            if not self._window.is_late(pane, horizon):
                before_first = grid.end_at_or_after(pane) - grid.epoch
                self._keep.put(pane, max(horizon, before_first), panes[pane])
                head.counters.taken += count
                continue
            late, late_until = late + count, grid.last_end(pane)
            if self._keep_dropped:
                yield from _dropped([(p.body, p.shift) for p in panes[pane]], "late", 0)
        if late:
            head.counters.drop("late", late)
            self._listing.late(late, late_until, horizon)

    def _due(self, until: int) -> Iterator[tuple[int, list[Pane]]]:
        """Give the windows up to an end that hold messages, with their panes, oldest first.

        The horizon moves along, and is at or beyond the end when all are given.
        """
        grid = self._grid
        while (oldest := self._index.oldest()) is not None:
            end = grid.end_at_or_after(max(oldest, self._horizon + 1))
            if end > until:
                break
            yield end, list(self._index.panes(*grid.panes_of(end)))
            self._horizon = end
        self._horizon = max(self._horizon, until)

    def _close(self, until: int, reason: Literal["final", "flush"]) -> Iterator[Emission]:
        counters = self._head.counters
        shelf = Shelf(self._keep)
        for end, panes in self._due(until):
            count = sum(pane.count for pane in panes)
            for key, messages in self._released(end, panes, until, shelf):
                yield Emission(end, messages, reason, key)
            counters.emitted_windows += 1
            counters.emitted_messages += count
            self._closed.append(Closed(end, count, reason))
            for pane in panes:
                if self._window.is_late(pane.pane, end):
                    counters.released += pane.count
                    self._keep.remove(pane)
                    shelf.forget(pane)

    def _released(
        self, end: int, panes: list[Pane], until: int, shelf: Shelf
    ) -> Iterator[tuple[bytes | None, Batch]]:
        """Give a window's groups; where the next one closes now too, they share what they hold."""
        metas = Metas({END: format_rfc3339(end)})
        # A window that closes alone is better released group by group, with nothing remembered.
        together = end + self._grid.epoch <= until or not shelf.empty
        shared = self._grid.size > self._grid.epoch and together
        if any(pane.folded for pane in panes):
            each = [shelf.parts(pane) if shared else self._parts(pane) for pane in panes]
            folded = [groups for parts in each for groups in parts.folded]
            return release_folded(folded, [pack for parts in each for pack in parts.whole], metas)
        if shared and sum(pane.count for pane in panes) <= MOST:
            groups = release_shared([pack for pane in panes for pack in shelf.packs(pane)], metas)
            if groups is not None:
                return groups
        return release([entry for pane in panes for entry in self._keep.take(pane)], metas)

    def _parts(self, pane: Pane) -> Parts:
        return Parts(self._keep.take(pane))

    def _expire(self, until: int, now: int) -> Iterator[Emission]:
        """Drop windows, since nothing could be emitted for too long."""
        counters = self._head.counters
        for end, panes in self._due(until):
            count = sum(pane.count for pane in panes)
            counters.expired_windows += 1
            self._closed.append(Closed(end, count, "expired"))
            self._listing.expired(end - self._grid.size, end, count, now)
            note_expired(self._head, self._grid, end)
            for pane in panes:
                if self._window.is_late(pane.pane, end):
                    emitted = emitted_of(pane, self._head, self._grid)
                    counters.released += emitted
                    counters.drop("expired", pane.count - emitted)
                    if self._keep_dropped:
                        yield from _dropped(self._keep.take(pane), "expired", emitted)
                    self._keep.remove(pane)

    def _status(self, now: int) -> Status:
        held, size, newest = self._index.summary()
        oldest = self._index.oldest()
        next_due = None
        if oldest is not None:
            next_end = self._grid.end_at_or_after(max(oldest, self._horizon + 1))
            next_due = self._window.due(next_end)
        return Status(
            now=now,
            horizon=self._horizon,
            counters=self._head.counters,
            held=held,
            held_bytes=size,
            open=tuple(open_windows(self._index, self._grid, self._horizon)),
            next_due=next_due,
            newest_end=None if newest is None else self._grid.last_end(newest),
            closed=tuple(self._closed),
            log=self._listing.lines(),
        )


def _dropped(stored: list[Stored], reason: str, skip: int) -> Iterator[Emission]:
    # What was folded before the config had a late_output is counted, and cannot be handed on.
    for columns in in_order([entry for entry in stored if not peek(entry[0]).folded]):
        metas = Metas({REASON: reason})
        messages = metas.messages(columns.payloads, columns.metas, columns.meta_ids)
        passed, skip = messages[skip:], max(0, skip - len(messages))
        if passed:
            yield Emission(None, passed, "dropped")
