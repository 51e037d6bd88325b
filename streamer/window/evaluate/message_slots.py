"""Places of messages in windows: filter, event time and key of many at once, then pane and row.

Mappings are evaluated for many messages at once where documents are enough. `system_window` and
windows that follow event times differ in the clock that stage 1 reports to the shards, and in what
of it decides the row.

A pane is named by its last instant. Windows on a grid have the grid's panes (`Grid`); windows
that lie where the events are have slices of one width, for no more than finding messages again.

"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import orjson

from streamer.core.json.parse import parse_json
from streamer.core.timestamps import parse_event_time
from streamer.window.contract import RowKind, ShuffleRow
from streamer.window.evaluate.queries import (
    CompiledKey,
    CompiledMapping,
    field_getter_of,
    is_now_mapping,
)
from streamer.window.pack.message_columns import (
    MAX_CACHED_RESULTS,
    SLOT_BITS,
    EventTimes,
    KeyGroups,
)
from streamer.window.settings.day_grid import DayGrid
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.grid import YEAR_ONE, Grid, Slices
from streamer.window.settings.int_codec import Ints
from streamer.window.settings.window import Window
from streamer.window.settings.window_types import TableJoin

NO_EVENT_TIME: Final = -(2**63)
"""Stands in for the time of a message that has none; its reason tells it from a real one."""

DocumentFunction = Callable[[Any], Any]

_MIN_TIME_NS: Final = -(2**63)
_MAX_TIME_NS: Final = 2**63 - 1

_MAX_ARITHMETIC_TIME_NS: Final = 2**62


@dataclass(slots=True)
class EvaluatedMessages:
    """Results of the mappings for messages, which are evaluated a thousand at a time.

    Attributes:
        times: by message, its event time, ns; empty when all have the micro-batch's.
        groups: by message, the group of its key; empty without keys.
        kept: by message, whether the filter keeps it; empty without a filter.
        reasons: why messages have no time, in their order.
        other_spellings: by message, how it spells its key, where equal ones are written otherwise.
    """

    times: list[int] | Ints = field(default_factory=list)
    groups: list[int] | Ints = field(default_factory=list)
    kept: list[bool] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    other_spellings: dict[int, bytes] = field(default_factory=dict)


class EventTimeCache(dict[str, int]):
    """Event times by their text: `times[value]` is ns; what is no time has a reason.

    Only strings are remembered: as keys of a dict, `True`, `1` and `1.0` would be one.

    Attributes:
        reasons: why values were none, in their order; the user of the times takes them.
        texts_only: refuse what is not a string with TypeError.
    """

    def __init__(self) -> None:
        super().__init__()
        self.reasons: list[str] = []
        self.texts_only = False

    def __missing__(self, value: Any) -> int:
        if self.texts_only and type(value) is not str:
            raise TypeError(value)
        try:
            time = parse_event_time(value)
        except ValueError as e:
            self.reasons.append(str(e))
            return NO_EVENT_TIME
        if type(value) is str:
            if len(self) >= MAX_CACHED_RESULTS:
                self.clear()
            self[value] = time
        return time


class MessageEvaluator:
    """A way to evaluate many messages at once, which raises whatever one makes it raise."""

    def __init__(
        self,
        times: EventTimeCache,
        groups: KeyGroups | None,
        *,
        time: DocumentFunction | None,
        key: DocumentFunction | None,
        keep: DocumentFunction | None,
        simple: bool,
        key_is_text: bool,
    ) -> None:
        """Prepare.

        Args:
            times: remembers event times.
            groups: remembers keys; None without.
            time: gives a document's time; None when it is the micro-batch's, or there is none.
            key: gives a document's key; None without.
            keep: the filter; None without.
            simple: all are fields that hold strings, so orjson's numbers have no part in them.
            key_is_text: `key` gives texts.
        """
        self._times = times
        self._groups = groups
        self._time = time
        self._key = key
        self._keep = keep
        self._simple = simple
        self._texts = simple or key_is_text
        needs = time or key or keep
        self.parser = None if needs is None else orjson.loads if simple else parse_json
        self.evaluated = EvaluatedMessages()

    def reset(self) -> None:
        """Begin with other messages."""
        self.evaluated = EvaluatedMessages()
        self._times.reasons.clear()
        self._times.texts_only = self._simple
        if self._groups is not None:
            self._groups.other_spellings.clear()

    def evaluate(self, docs: Sequence[Any]) -> list[int]:
        """Evaluate documents that follow those before; return their groups."""
        evaluated = self.evaluated
        if self._keep is not None:
            keep = self._keep
            kept = [keep(doc) for doc in docs]
            if not all(type(flag) is bool for flag in kept):
                raise TypeError("the filter gave no boolean")
            evaluated.kept += kept
        if self._time is not None:
            times, time = self._times, self._time
            new_times = list(map(times.__getitem__, map(time, docs)))
            if times.reasons:
                if new_times.count(NO_EVENT_TIME) != len(times.reasons):
                    raise ValueError("an event time is the one that stands for none")
                evaluated.reasons += times.reasons
                times.reasons.clear()
            evaluated.times += new_times
        if self._groups is None or self._key is None:
            return []
        key = self._key
        if self._texts:
            groups = self._groups.groups_of_texts(list(map(key, docs)))
        else:
            of_result = self._groups.group_of_result
            groups = [of_result(key(doc)) for doc in docs]
            if self._groups.other_spellings:
                self._record_spellings(docs, key, self._groups)
        evaluated.groups += groups
        return groups

    def _record_spellings(
        self, docs: Sequence[Any], key: DocumentFunction, groups: KeyGroups
    ) -> None:
        """Find out which of the documents it was that spell their keys otherwise."""
        for index, doc in enumerate(docs, len(self.evaluated.groups)):
            groups.other_spellings.clear()
            groups.group_of_result(key(doc))
            if groups.other_spellings:
                self.evaluated.other_spellings[index] = groups.other_spellings.pop()
        groups.other_spellings.clear()


def make_message_evaluators(
    timestamp: CompiledMapping | None,
    key: CompiledKey | None,
    keep: CompiledMapping | None,
    times: EventTimeCache,
    groups: KeyGroups | None,
) -> list[MessageEvaluator]:
    """Return the ways that there are for these mappings, the fastest first.

    Args:
        timestamp: gives the event time; None where windows have none.
        key: gives the key; None without.
        keep: the filter; None without.
        times: remembers event times.
        groups: remembers keys; None without.
    """
    no_time = timestamp is None or is_now_mapping(timestamp)
    evaluators = []
    time = None if no_time or timestamp is None else field_getter_of(timestamp)
    name = None if key is None else field_getter_of(key)
    is_text = key is not None and key.gives_text
    if keep is None and (time or no_time) and (name or key is None):
        evaluators.append(
            MessageEvaluator(
                times, groups, time=time, key=name, keep=None, simple=True, key_is_text=is_text
            )
        )
    time = None if no_time or timestamp is None else timestamp.doc_fn
    fn = None if key is None else key.doc_fn
    kept = None if keep is None else keep.doc_fn
    if (time or no_time) and (fn or key is None) and (kept or keep is None):
        evaluators.append(
            MessageEvaluator(
                times, groups, time=time, key=fn, keep=kept, simple=False, key_is_text=is_text
            )
        )
    return evaluators


class PieceOrigin(NamedTuple):
    """The place of a piece in the input.

    Attributes:
        first_arrival: its smallest arrival number.
        partition: names the source's partition that it is from.
        kind: of its rows: of which side of a join it is.
        follows_windows: it is for windows behind others, whose clock says what is late.
    """

    first_arrival: int = 0
    partition: bytes = b""
    kind: RowKind = RowKind.PACK
    follows_windows: bool = False


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
        self._moves_clock = not _is_table_row(window, origin)
        self._tracks_watermark = (
            window.uses_event_time
            and window.time.clock_scope != "key"
            and not origin.follows_windows
            and self._moves_clock
        )
        self._watermark = _MIN_TIME_NS
        self._max_event_time: int | None = None
        self._first_event_time: int | None = None
        self._due_times: dict[int, int] = {}

    def assign(self, times: Ints) -> tuple[Ints, EventTimes | None]:
        """Return slots by message, event times with their lags, and move the watermark."""
        lags = np.zeros(len(times), np.int64)
        if self._first_event_time is None:
            self._first_event_time = int(times[0])
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
        """Return the largest event time of the piece for each shard, and where asked the first."""
        if self._max_event_time is None or self._first_event_time is None:
            return
        first, partition = self._origin.first_arrival, self._origin.partition
        moved_to = self._max_event_time if self._moves_clock else _MIN_TIME_NS
        for shard in range(shards):
            yield ShuffleRow(shard, RowKind.PIECE, moved_to, first, partition)
            if self._window.listed_keys:
                yield ShuffleRow(shard, RowKind.FIRST_TIME, self._first_event_time, first, b"")

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


def _is_table_row(window: EventWindow, origin: PieceOrigin) -> bool:
    """Return whether a piece has rows of a table, and the clock is the one of the stream alone."""
    is_row = isinstance(window.kind, TableJoin) and origin.kind == RowKind.RIGHT
    return is_row and not window.time.waits_for_sources


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


class Panes(Protocol):
    """Gives an event time its pane."""

    def pane_of(self, t: int) -> int:
        """Return the pane of a time, ns."""


def panes_of_times(panes: Panes, times: Ints) -> Ints:
    """Return the panes of many times."""
    # Arithmetic on times that are further out might leave int64.
    near = not len(times) or (
        int(times.min()) > -_MAX_ARITHMETIC_TIME_NS and int(times.max()) < _MAX_ARITHMETIC_TIME_NS
    )
    if near and isinstance(panes, Slices):
        return times - times % panes.width + (panes.width - 1)
    if near and isinstance(panes, Grid):
        return _compute_grid_panes(panes, times)
    if isinstance(panes, DayGrid):
        return panes.panes_of_times(times)
    distinct, places = np.unique(times, return_inverse=True)
    distinct_panes = np.array([panes.pane_of(t) for t in distinct.tolist()], np.int64)
    return distinct_panes[places]


def _compute_grid_panes(grid: Grid, times: Ints) -> Ints:
    ends = times + ((YEAR_ONE + grid.offset) % grid.epoch - times) % grid.epoch
    if grid.size % grid.epoch == 0:
        return ends
    starts = times + ((YEAR_ONE + grid.offset - grid.size) % grid.epoch - times) % grid.epoch
    nearest: Ints = np.minimum(ends, starts)
    return nearest
