"""History of a stream's figures in rings: fine for the last minutes, coarse for the last hour.

A micro-batch gives what has flowed over a span of time: counts are spread over that span, and
divided by the seconds that are known. So a steady stream has a steady rate, however long its
micro-batches are. Seconds in which nobody knows what flowed, such as those of a stop, are gaps.

Memory: each figure has a number of 4 bytes for each of the 360 slots of the rings, 1.4 KB. Of at
most `MAX_COLUMNS` figures that is 190 KB for a stream, of the twenty that most have 30 KB.
"""

from __future__ import annotations

import math
import threading
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple

MAX_COLUMNS: Final = 136
"""Figures that are kept of a stream; those of nodes and partitions count singly."""

MAX_SINGLE_COLUMNS: Final = 80
"""Figures of nodes and partitions, of which older ones are forgotten when there are more."""

FINE_STEP_S, FINE_SLOTS = 5, 180
COARSE_STEP_S, COARSE_SLOTS = 20, 180

_MAX_LONG_SLOTS: Final = 24
"""Slots that have the number of the micro-batch that ends after them, at most."""

_COVERED: Final = "covered"
_BATCHES: Final = "batches"
_NAN: Final = float("nan")
_NOTHING: Final[Mapping[str, float]] = {}


class FigureKind(StrEnum):
    """The meaning of a slot's number."""

    RATE = "rate"
    """A count by second."""
    SHARE = "share"
    """The part of the time, 0 to 1."""
    MEAN = "mean"
    """The mean of the micro-batches."""
    MAX = "max"
    """The largest of the micro-batches."""
    LAST = "last"
    """The value after the newest micro-batch."""


class Figure(NamedTuple):
    """A figure of the history.

    Attributes:
        name: its name in the API.
        kind: the meaning of its numbers.
        unit: of them.
        title: its name in words.
    """

    name: str
    kind: FigureKind
    unit: str
    title: str


FIGURES: Final = (
    Figure("in", FigureKind.RATE, "messages/s", "Messages in"),
    Figure("out", FigureKind.RATE, "messages/s", "Messages out"),
    Figure("errors", FigureKind.RATE, "messages/s", "Errors"),
    Figure("dropped", FigureKind.RATE, "messages/s", "Messages dropped, late ones too"),
    Figure("late", FigureKind.RATE, "messages/s", "Late messages"),
    Figure("event_time_lag", FigureKind.MAX, "seconds", "Event-time lag"),
    Figure("backlog", FigureKind.LAST, "messages", "Messages that wait at the input"),
    Figure("kafka_lag", FigureKind.LAST, "messages", "Kafka lag"),
    Figure("batch_seconds", FigureKind.MEAN, "seconds", "Duration of a micro-batch"),
    Figure("stage_1_seconds", FigureKind.MEAN, "seconds", "Stage 1 of a micro-batch"),
    Figure("stage_2_seconds", FigureKind.MEAN, "seconds", "Stage 2 of a micro-batch"),
    Figure("delivery_seconds", FigureKind.MEAN, "seconds", "Delivery of a micro-batch"),
    Figure("overhead_seconds", FigureKind.MEAN, "seconds", "Spark's own part of a micro-batch"),
    Figure("open_windows", FigureKind.LAST, "windows", "Open windows"),
    Figure("held_messages", FigureKind.LAST, "messages", "Messages in open windows"),
    Figure("state_bytes", FigureKind.LAST, "bytes", "State"),
    Figure("latency_p50", FigureKind.LAST, "seconds", "Median latency"),
    Figure("latency_p99", FigureKind.LAST, "seconds", "99th percentile of the latency"),
)
"""The figures that are not of a node or of a partition."""

NODE_PREFIXES: Final = ("busy:", "waiting:")
"""Begin the names of figures of nodes, whose paths follow."""

PARTITION_PREFIX: Final = "kafka_lag:"
"""Begins the name of the lag of a partition, whose topic and number follow."""

_KINDS: Final = {figure.name: figure.kind for figure in FIGURES}


def kind_of(name: str) -> FigureKind:
    """Return the kind of a figure."""
    if name.startswith(NODE_PREFIXES):
        return FigureKind.SHARE
    if name.startswith(PARTITION_PREFIX):
        return FigureKind.LAST
    return _KINDS[name]


@dataclass(frozen=True, slots=True)
class BatchFigures:
    """The figures of a micro-batch.

    Attributes:
        since: when what it has taken in began to come, Unix s.
        until: when that ended.
        at: when it was delivered.
        amounts: what is spread over that time, by figure: counts of messages, seconds of work.
        values: durations and gauges, by figure.
    """

    since: float
    until: float
    at: float
    amounts: Mapping[str, float] = field(default_factory=dict)
    values: Mapping[str, float] = field(default_factory=dict)


class Reading(NamedTuple):
    """The history as it is read.

    Attributes:
        step: seconds of a slot.
        start: when the first slot begins, Unix s.
        values: of each figure a number for each slot; None where it is not known.
    """

    step: int
    start: int
    values: dict[str, list[float | None]]


class _Ring:
    """Slots of one length, of which the newest replaces the oldest."""

    def __init__(self, step: int, slots: int) -> None:
        self.step, self.slots = step, slots
        self.newest: int | None = None
        self.columns: dict[str, array[float]] = {}
        self._blank = array("f", [_NAN]) * slots

    def advance(self, at: float) -> None:
        """Have a slot for a time; the slots between are empty."""
        slot = int(at // self.step)
        newest = self.newest
        if newest is None or abs(slot - newest) >= self.slots:
            # A clock that was set back by more than the ring leaves nothing that could be told.
            for column in self.columns.values():
                column[:] = self._blank
            self.newest = slot
            return
        for empty in range(newest + 1, slot + 1):
            index = empty % self.slots
            for column in self.columns.values():
                column[index] = _NAN
        self.newest = max(slot, newest)

    def column(self, name: str) -> array[float] | None:
        """Return the numbers of a figure; None when there are too many figures."""
        column = self.columns.get(name)
        if column is None and len(self.columns) < MAX_COLUMNS:
            column = self.columns[name] = self._blank[:]
        return column

    def forget_others(self, names: Iterable[str]) -> None:
        """Forget the figures of other nodes and partitions than these, if there are many."""
        single = [name for name in self.columns if ":" in name]
        if len(single) > MAX_SINGLE_COLUMNS:
            current = frozenset(names)
            for name in single:
                if name not in current:
                    del self.columns[name]

    def parts_of(self, since: float, until: float) -> list[tuple[int, float]]:
        """Return which slots a span lies in, and how many of its seconds lie in each."""
        assert self.newest is not None
        first = max(int(since // self.step), self.newest - self.slots + 1)
        last = min(int(until // self.step), self.newest)
        return [
            (slot % self.slots, min(until, (slot + 1) * self.step) - max(since, slot * self.step))
            for slot in range(first, last + 1)
        ]

    def add(self, name: str, parts: Iterable[tuple[int, float]], factor: float) -> None:
        """Add to slots: for each of the parts its seconds times a factor."""
        column = self.column(name)
        if column is None:
            return
        for index, seconds in parts:
            before = column[index]
            column[index] = seconds * factor + (0.0 if math.isnan(before) else before)

    def put(self, name: str, at: float, value: float) -> None:
        """Put a value into the slot of a time, by the kind of the figure."""
        column = self.column(name)
        slot = int(at // self.step)
        if column is None or self.newest is None or not 0 <= self.newest - slot < self.slots:
            return
        index, kind = slot % self.slots, kind_of(name)
        before = column[index]
        if kind is FigureKind.MEAN and not math.isnan(before):
            value += before
        elif kind is FigureKind.MAX and before > value:
            value = before
        column[index] = value

    def read(self, name: str, slots: range) -> list[float | None]:
        """Return the numbers of a figure in slots.

        Slots that lie in a micro-batch which is longer than they are have its number.
        """
        values = [*self._read_slots(name, slots)]
        covered = self.columns.get(_COVERED)
        if covered is None or kind_of(name) in (FigureKind.RATE, FigureKind.SHARE):
            return values
        later, distance = None, 0
        for index in range(len(values) - 1, -1, -1):
            if values[index] is not None:
                later, distance = values[index], 0
            elif covered[slots[index] % self.slots] > 0 and distance < _MAX_LONG_SLOTS:
                values[index], distance = later, distance + 1
            else:
                later = None
        return values

    def _read_slots(self, name: str, slots: range) -> Iterator[float | None]:
        column, kind = self.columns.get(name), kind_of(name)
        spread = kind in (FigureKind.RATE, FigureKind.SHARE)
        divisors = self.columns.get(_COVERED if spread else _BATCHES)
        for slot in slots:
            index = slot % self.slots
            value = _NAN if column is None else column[index]
            if spread or kind is FigureKind.MEAN:
                divisor = _NAN if divisors is None else divisors[index]
                # Nothing was counted in seconds that are known.
                value = 0.0 if spread and math.isnan(value) and divisor > 0 else value
                value = value / divisor if divisor > 0 else _NAN
                value = min(value, 1.0) if kind is FigureKind.SHARE else value
            if math.isnan(value):
                yield None
            else:
                yield round(value, 4) if kind is FigureKind.SHARE else float(f"{value:.4g}")


class FigureHistory:
    """The figures of a stream for an hour. Threads may read them while they are added to."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._lock = threading.Lock()
        self._rings = (_Ring(FINE_STEP_S, FINE_SLOTS), _Ring(COARSE_STEP_S, COARSE_SLOTS))
        self._gauges: dict[str, float] = {}
        self._known_until = 0.0

    @property
    def known_until(self) -> float:
        """The time up to which it is known what flowed, Unix s; 0 before anything is."""
        return self._known_until

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever recorded."""
        return self._rings[0].newest is None

    def record(self, batch: BatchFigures) -> None:
        """Add a micro-batch."""
        until = max(batch.until, batch.since)
        span = until - batch.since
        with self._lock:
            for ring in self._rings:
                ring.advance(batch.at)
                parts = ring.parts_of(batch.since, until)
                ring.add(_COVERED, parts, 1.0)
                for name, amount in batch.amounts.items():
                    if span > 0:
                        ring.add(name, parts, amount / span)
                ring.add(_BATCHES, [(int(batch.at // ring.step) % ring.slots, 1.0)], 1.0)
                for name, value in batch.values.items():
                    ring.put(name, batch.at, value)
                ring.forget_others((*batch.amounts, *batch.values))
            self._gauges = {
                name: value
                for name, value in batch.values.items()
                if kind_of(name) is FigureKind.LAST
            }
            self._known_until = until

    def pass_time(
        self,
        until: float,
        shares: Mapping[str, float] = _NOTHING,
        amounts: Mapping[str, float] = _NOTHING,
    ) -> None:
        """Note that no micro-batch was delivered since the last that is known.

        Args:
            until: up to this time, Unix s.
            shares: of nodes, the part of this time in which they worked or waited.
            amounts: what was counted all the same, such as errors, by figure.
        """
        with self._lock:
            since = self._known_until
            if not since or until <= since:
                return
            for ring in self._rings:
                ring.advance(until)
                parts = ring.parts_of(since, until)
                ring.add(_COVERED, parts, 1.0)
                for name, share in shares.items():
                    ring.add(name, parts, share)
                for name, amount in amounts.items():
                    ring.add(name, parts, amount / (until - since))
                for name, value in self._gauges.items():
                    ring.put(name, until, value)
            self._known_until = until

    def note_gauges(self, at: float, values: Mapping[str, float | None]) -> None:
        """Note gauges that were measured while no micro-batch was delivered.

        Args:
            at: when, Unix s.
            values: by figure; None for one that nobody knows any more.
        """
        with self._lock:
            for ring in self._rings:
                ring.advance(at)
                for name, value in values.items():
                    if value is not None:
                        ring.put(name, at, value)
                ring.forget_others(values)
            kept = {name: value for name, value in self._gauges.items() if name not in values}
            known = {name: value for name, value in values.items() if value is not None}
            self._gauges = kept | known

    def interrupt(self, at: float) -> None:
        """Note that the stream has stopped, or starts: what flows until then, nobody knows."""
        with self._lock:
            self._gauges = {}
            self._known_until = at

    def read(self, since: float, now: float, select: Callable[[str], bool]) -> Reading:
        """Return the figures of the last minutes, or of the last hour.

        Those that have no number at all are left out.

        Args:
            since: where to begin, Unix s; it decides which ring is read.
            now: the time, Unix s: the last slot is that before it.
            select: which figures, by name.
        """
        fine, coarse = self._rings
        ring = fine if now - since <= fine.step * fine.slots else coarse
        last = int(now // ring.step)
        first = max(int(since // ring.step), last - ring.slots + 1)
        with self._lock:
            has_flow = _COVERED in ring.columns
            names = [
                *(
                    name
                    for name, kind in _KINDS.items()
                    if name in ring.columns or (has_flow and kind is FigureKind.RATE)
                ),
                *(name for name in ring.columns if ":" in name),
            ]
            newest = -1 if ring.newest is None else ring.newest
            shown = range(first, last + 1)
            known = range(max(first, newest - ring.slots + 1), min(newest, last) + 1)
            before, after = known.start - first, len(shown)
            values = {
                name: ([None] * before + ring.read(name, known) + [None] * after)[: len(shown)]
                for name in names
                if select(name)
            }
        return Reading(ring.step, first * ring.step, values)

    def to_fields(self) -> dict[str, Any]:
        """Return the history as plain values; see `load_fields`."""
        with self._lock:
            return {
                "rings": [
                    {
                        "step": ring.step,
                        "newest": ring.newest,
                        "columns": {name: one.tobytes() for name, one in ring.columns.items()},
                    }
                    for ring in self._rings
                ]
            }

    def load_fields(self, fields: Mapping[str, Any], now: float) -> None:
        """Load the fields that `to_fields` gave, unless something is recorded already.

        Args:
            fields: from there.
            now: the time, Unix s; what is of the future is left out.

        Raises:
            ValueError: it is something else.
        """
        rings = (_Ring(FINE_STEP_S, FINE_SLOTS), _Ring(COARSE_STEP_S, COARSE_SLOTS))
        for ring, given in zip(rings, fields["rings"], strict=True):
            if given["step"] != ring.step or len(given["columns"]) > MAX_COLUMNS:
                raise ValueError("its slots are of another length, or there are too many figures")
            newest = given["newest"]
            if newest is None or newest > now // ring.step + 1:
                continue
            ring.newest = int(newest)
            for name, body in given["columns"].items():
                column = array("f", body)
                if len(column) != ring.slots:
                    raise ValueError(f"{name} has {len(column)} slots, not {ring.slots}")
                if name in (_COVERED, _BATCHES) or name in _KINDS or ":" in name:
                    ring.columns[name] = column
        with self._lock:
            if all(ring.newest is None for ring in self._rings):
                self._rings = rings
