"""Slots of messages: the pane and kind of the row that each goes into, by its event time.

`system_window` and windows that follow event times differ here: in the clock that stage 1 reports
to the shards, and in what of it decides the row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from streamer.window.contract import RowKind, ShuffleRow
from streamer.window.pack.message_columns import SLOT_BITS, EventTimes
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.int_codec import Ints
from streamer.window.settings.panes import panes_of_times
from streamer.window.settings.window import Window

_MIN_TIME_NS: Final = -(2**63)
_MAX_TIME_NS: Final = 2**63 - 1


class PieceOrigin(NamedTuple):
    """The place of a piece in the input.

    Attributes:
        first_arrival: its smallest arrival number.
        partition: names the source's partition that it is from.
        kind: of its rows: of which side of a join it is.
    """

    first_arrival: int = 0
    partition: bytes = b""
    kind: RowKind = RowKind.PACK


class SlotAssigner(ABC):
    """Gives messages their slots.

    Attributes:
        targets: by slot, the kind and pane of its row; slot 0 is none.
        batch_time: the micro-batch's time, ns.
    """

    def __init__(self, window: Window) -> None:
        self.targets: list[tuple[RowKind, int]] = [(RowKind.DROPPED, 0)]
        self.batch_time = 0
        self._panes = window.panes
        self._slot_of: dict[tuple[RowKind, int], int] = {}

    @abstractmethod
    def assign(self, times: Ints) -> tuple[Ints, EventTimes | None]:
        """Return slots by message, and event times where packs keep them.

        Args:
            times: by message, its event time, ns; one message at least.
        """

    @abstractmethod
    def clock_rows(self, shards: int) -> Iterator[ShuffleRow]:
        """Return the rows that report to each shard how far the messages have moved the clock."""

    def _slots_of_panes(self, kind: RowKind, panes: Ints) -> tuple[Ints, list[int], Ints]:
        """Return slots by message, the distinct panes, and the place of each message's in these."""
        least, most = int(panes.min()), int(panes.max())
        if least == most:
            slot = self._slot_of_row(kind, least)
            return np.full(len(panes), slot), [least], np.zeros(len(panes), np.int64)
        distinct_panes, places = np.unique(panes, return_inverse=True)
        distinct = distinct_panes.tolist()
        slots = np.array([self._slot_of_row(kind, pane) for pane in distinct], np.int64)
        return slots[places], distinct, places

    def _slot_of_row(self, kind: RowKind, pane: int) -> int:
        place = (kind, pane)
        slot = self._slot_of.get(place)
        if slot is None:
            slot = self._slot_of[place] = len(self.targets) << SLOT_BITS
            self.targets.append(place)
        return slot


class BatchTimeSlots(SlotAssigner):
    """Slots of `system_window`, whose clock is the batch time.

    Only a shard knows which pane that time itself belongs to: messages of exactly this time have
    rows of their own.
    """

    def __init__(self, window: Window, uses_now: bool) -> None:
        """Begin; `uses_now` means that a mapping gives the batch time by `now()`."""
        super().__init__(window)
        self._uses_now = uses_now
        self._reports_newest_pane = window.end_of_input == "flush"

    def assign(self, times: Ints) -> tuple[Ints, EventTimes | None]:
        """Return slots by message; packs keep no event times."""
        exact = times == self.batch_time
        if not exact.any():
            return self._slots_of_panes(RowKind.PACK, panes_of_times(self._panes, times))[0], None
        row = (RowKind.NOW, 0) if self._uses_now else (RowKind.EXACT, self.batch_time)
        slots = np.full(len(times), self._slot_of_row(*row))
        others = np.flatnonzero(~exact)
        if len(others):
            panes = panes_of_times(self._panes, times[others])
            slots[others] = self._slots_of_panes(RowKind.PACK, panes)[0]
        return slots, None

    def clock_rows(self, shards: int) -> Iterator[ShuffleRow]:
        """Return the newest pane of each kind for each shard: a flush closes the same in all."""
        if not self._reports_newest_pane or shards < 2:
            return
        newest: dict[RowKind, int] = {}
        for kind, pane in self.targets[1:]:
            newest[kind] = max(pane, newest.get(kind, pane))
        for kind, pane in newest.items():
            for shard in range(shards):
                yield ShuffleRow(shard, RowKind.NEWEST_PANE, pane, 0, bytes([kind]))


class EventTimeSlots(SlotAssigner):
    """Slots of windows that follow event times, and of count windows, which have none.

    The watermark of the piece alone is known here. What earlier micro-batches and other pieces did
    to the clock is added by the shards.
    """

    def __init__(self, window: EventWindow, origin: PieceOrigin) -> None:
        super().__init__(window)
        self._window = window
        self._origin = origin
        # A key's own watermark is known by the shards alone.
        self._tracks_watermark = window.uses_event_time and window.time.clock_scope == "stream"
        self._watermark = _MIN_TIME_NS
        self._max_event_time: int | None = None
        self._due_times: dict[int, int] = {}

    def assign(self, times: Ints) -> tuple[Ints, EventTimes | None]:
        """Return slots by message, event times with their lags, and move the watermark."""
        lags = np.zeros(len(times), np.int64)
        max_time = int(times.max())
        self._max_event_time = (
            max_time if self._max_event_time is None else max(self._max_event_time, max_time)
        )
        before: Ints | None = None
        if self._tracks_watermark:
            watermark = np.array([self._watermark])
            before = np.maximum.accumulate(np.concatenate((watermark, times)))[:-1]
            self._watermark = max(self._watermark, max_time)
            late = before > times
            if late.any():
                lags[late] = before[late] - times[late]
        count_based = self._window.count_based
        panes = np.zeros_like(times) if count_based else panes_of_times(self._panes, times)
        slots, distinct, places = self._slots_of_panes(self._origin.kind, panes)
        if before is not None and self._window.strategy == "panes" and lags.any():
            self._separate_disordered(slots, before, distinct, places)
        return slots, EventTimes(times, lags)

    def clock_rows(self, shards: int) -> Iterator[ShuffleRow]:
        """Return the largest event time of the piece for each shard."""
        if self._max_event_time is not None:
            first, partition, _ = self._origin
            for shard in range(shards):
                yield ShuffleRow(shard, RowKind.PIECE, self._max_event_time, first, partition)

    def _separate_disordered(
        self, slots: Ints, before: Ints, panes: list[int], places: Ints
    ) -> None:
        """Give other slots to messages of which a window had closed before they came."""
        dues = np.array([self._first_due_time(pane) for pane in panes], np.int64)[places]
        apart = before >= dues
        for place in np.unique(places[apart]).tolist():
            slots[apart & (places == place)] = self._slot_of_row(RowKind.DISORDERED, panes[place])

    def _first_due_time(self, pane: int) -> int:
        """Return when the first window of a pane closes."""
        due_time = self._due_times.get(pane)
        if due_time is None:
            first = self._window.first_due_time(pane)
            due_time = self._due_times[pane] = min(first, _MAX_TIME_NS)
        return due_time


def make_slot_assigner(window: Window, uses_now: bool, origin: PieceOrigin) -> SlotAssigner:
    """Return the assigner of a piece's messages.

    Args:
        window: the window's settings.
        uses_now: the mapping of the event time may give the batch time by `now()`.
        origin: of the piece.
    """
    if isinstance(window, EventWindow):
        return EventTimeSlots(window, origin)
    return BatchTimeSlots(window, uses_now)
