"""The order of a step: let pass, take in, let go of what is due, move the horizon.

A step is a function of the state and the rows alone, so that a replayed micro-batch decides the
same. This is what windows on a grid have in common: whole panes are kept, and given back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator
from heapq import merge
from operator import itemgetter
from typing import Final, Literal, NamedTuple

from streamer.window.aside import aside
from streamer.window.clock import Reading
from streamer.window.emission import Emission
from streamer.window.event import EventWindow
from streamer.window.folds.release import Parts, release_folded
from streamer.window.index import Index, Pane
from streamer.window.intake import Intake
from streamer.window.keep import Keep
from streamer.window.listing import Listing, open_windows
from streamer.window.metas import Labels, Released
from streamer.window.release import (
    release,
    release_shared,
    release_whole,
    release_whole_shared,
)
from streamer.window.row import Row
from streamer.window.shelf import MOST, Shelf
from streamer.window.status import Closed, Status
from streamer.window.store import Store
from streamer.window.system import SystemWindow

_LAST_PANE: Final = 2**63 - 1

Arrivals = Iterator[tuple[int, Emission]]
"""Batches, each with the arrival of its first message, by which they are in order."""


class Closing(NamedTuple):
    """A window that closes.

    Attributes:
        start: as the grid names it, ns.
        end: as the grid names it, ns.
        panes: those that hold messages, one at least.
        reason: why it closes.
        shared: another window that closes in this step holds some of its panes too.
    """

    start: int
    end: int
    panes: list[Pane]
    reason: Literal["final", "flush"]
    shared: bool

    @property
    def messages(self) -> int:
        """How many messages it holds."""
        return sum(pane.count for pane in self.panes)


class StepRun(ABC):
    """One step of one shard."""

    # What is added to bounds as the grid names them, to name them as the kind's rules do.
    beyond = 0

    def __init__(
        self, window: SystemWindow | EventWindow, store: Store, keep_dropped: bool
    ) -> None:
        self._flushes = window.end_of_input == "flush"
        self._grid = window.grid
        self._index = Index(store, window)
        self._head = self._index.head
        self._keep = Keep(store, self._index)
        self._shelf = Shelf(self._keep)
        self._keep_dropped = keep_dropped
        self._now = 0
        self._horizon = 0
        self._closed: list[Closed] = []
        self._listing = Listing()

    def run(self, rows: Iterable[Row]) -> Generator[Emission, None, Status]:
        """Do it: give what goes on, return the status."""
        intake = Intake(rows)
        head = self._head
        reading = Reading.of(intake.clock)
        self._now, pressed, head.clock = head.clock.advance(reading)
        self._horizon = self._first_horizon() if head.horizon is None else head.horizon

        yield from aside(intake, head.counters)
        yield from self._take(intake)
        yield from self._let_go(reading, pressed)
        if reading.ended and self._flushes and head.newest is not None:
            yield from self._close(head.newest, "flush")

        self._settle()
        status = self._status()
        self._index.save()
        return status

    @abstractmethod
    def _first_horizon(self) -> int:
        """Return the horizon at the very first start."""

    @abstractmethod
    def _take(self, intake: Intake) -> Iterator[Emission]:
        """Keep what is not late."""

    @abstractmethod
    def _let_go(self, reading: Reading, pressed: bool) -> Iterator[Emission]:
        """Close what is due; `pressed` means that it could have been closed before."""

    @abstractmethod
    def _emitted(self, closing: Closing) -> Arrivals:
        """Emit a window and count it."""

    @abstractmethod
    def _settle(self) -> None:
        """Write into the head what the step has moved."""

    @abstractmethod
    def _due(self, end: int) -> int | None:
        """Return when the system clock closes a window, ns; None when another clock does."""

    def _oldest_end(self) -> int | None:
        """Return the end of the oldest window that holds messages."""
        oldest = self._index.oldest()
        if oldest is None:
            return None
        return self._grid.end_at_or_after(max(oldest, self._horizon + 1))

    def _ends(self, until: int) -> Iterator[int]:
        """Give the ends up to one at which windows that hold messages close, oldest first.

        The horizon moves along, and is at or beyond the last when all are given.
        """
        while (end := self._oldest_end()) is not None and end <= until:
            yield end
            self._horizon = end
        self._horizon = max(self._horizon, until)

    def _windows(self, end: int) -> list[tuple[int, list[Pane]]]:
        """Return start and panes of each window with an end, the one that holds all first."""
        starts = self._grid.starts_of(end)
        until = min(end, _LAST_PANE)
        found = [(start, list(self._index.panes(start, until))) for start in starts]
        return [(start, panes) for start, panes in found if panes]

    def _left_by(self, end: int, panes: list[Pane]) -> list[Pane]:
        """Return the panes that no window after an end holds."""
        return [pane for pane in panes if self._grid.last_end(pane.pane) <= end]

    def _close(self, until: int, reason: Literal["final", "flush"]) -> Iterator[Emission]:
        grid = self._grid
        for end in self._ends(until):
            windows = self._windows(end)
            # A window that closes alone is better released group by group, with nothing remembered.
            together = grid.end_at_or_after(end + 1) <= until or not self._shelf.empty
            shared = grid.overlapping and together
            closing = [Closing(start, end, panes, reason, shared) for start, panes in windows]
            emitted = map(self._emitted, closing)
            for _, emission in merge(*emitted, key=itemgetter(0)):
                yield emission
            for window in closing:
                self._closed.append(Closed(end + self.beyond, window.messages, reason))
            for pane in self._left_by(end, windows[0][1] if windows else []):
                self._head.counters.released += pane.count
                self._keep.remove(pane)
                self._shelf.forget(pane.pane)

    def _released(
        self, closing: Closing, labels: Labels, whole: bool = False
    ) -> Iterator[Released]:
        """Give a window's groups; where the next one closes now too, they share what they hold.

        Args:
            closing: the window.
            labels: says what messages are told of it.
            whole: give all messages together, however they are grouped.
        """
        panes, shelf = closing.panes, self._shelf
        if any(pane.folded for pane in panes):
            each = [shelf.parts(pane) if closing.shared else self._parts(pane) for pane in panes]
            folded = [groups for parts in each for groups in parts.folded]
            return release_folded(folded, [pack for parts in each for pack in parts.whole], labels)
        if closing.shared and closing.messages <= MOST:
            packs = [pack for pane in panes for pack in shelf.packs(pane)]
            groups = None if whole else release_shared(packs, labels)
            return release_whole_shared(packs, labels) if groups is None else groups
        stored = [entry for pane in panes for entry in self._keep.take(pane)]
        return release_whole(stored, labels) if whole else release(stored, labels)

    def _parts(self, pane: Pane) -> Parts:
        return Parts(self._keep.take(pane))

    def _status(self) -> Status:
        held, size, newest = self._index.summary()
        oldest = self._oldest_end()
        return Status(
            now=self._now,
            horizon=None if self._head.horizon is None else self._head.horizon + self.beyond,
            counters=self._head.counters,
            held=held,
            held_bytes=size,
            open=tuple(open_windows(self._index, self._grid, self._horizon, self.beyond)),
            next_due=None if oldest is None else self._due(oldest),
            newest_end=None if newest is None else self._grid.last_end(newest),
            closed=tuple(self._closed),
            log=self._listing.lines(),
        )
