"""Windows of two revisions of a stream, matched by identity and compared row by row."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple

from streamer.core.timestamps import format_rfc3339
from streamer.engine.canary.emissions import EmissionsByWindow, WindowEmission, WindowIdentity
from streamer.engine.canary.field_differences import (
    ALL_FIELDS,
    ComparisonRules,
    FieldDifference,
    compare_emissions,
)

MAX_SHOWN_DIFFERENCES: Final = 200
"""Windows that differ of which the fields are kept; all are counted."""

MAX_SHOWN_FIELDS: Final = 20
"""Fields of a window that are kept."""

MAX_WAITING: Final = 50_000
"""Emissions of one revision that may wait for the other one's."""


class DifferenceKind(StrEnum):
    """The kinds of differences of a window."""

    CHANGED = "changed"
    MISSING = "missing"
    ADDED = "added"


class ComparedBuffer(NamedTuple):
    """A buffer whose windows are compared.

    Attributes:
        label: its label; empty where the stream has a single buffer.
        has_times: whether bounds of its windows are times, and not numbers of messages.
    """

    label: str
    has_times: bool


@dataclass(frozen=True, slots=True)
class WindowDifference:
    """A window that two revisions do not emit alike.

    Attributes:
        window: the window.
        kind: whether both emit it, or only the running one, or only the canary.
        fields: the fields that differ, some of them.
        field_count: how many there are.
    """

    window: WindowIdentity
    kind: DifferenceKind
    fields: tuple[FieldDifference, ...] = ()
    field_count: int = 0

    def to_document(self, buffers: Sequence[ComparedBuffer]) -> dict[str, Any]:
        """Return the difference for JSON.

        Args:
            buffers: the stream's buffers.
        """
        window = self.window
        buffer = buffers[window.buffer]
        return {
            "buffer": buffer.label,
            "key": window.key,
            "start": _format_bound(window.start, buffer.has_times),
            "end": _format_bound(window.end, buffer.has_times),
            "emit": window.emit,
            "kind": str(self.kind),
            "fields": [
                {"path": one.path, "old": one.old, "new": one.new, "row": one.row}
                for one in self.fields
            ],
            "field_count": self.field_count,
        }


@dataclass(slots=True)
class ComparisonCounts:
    """Counts of windows that were compared.

    Attributes:
        windows: emissions of windows that were compared, each of both revisions once.
        changed: those that differ in a field.
        missing: those that only the running revision has emitted.
        added: those that only the canary has emitted.
    """

    windows: int = 0
    changed: int = 0
    missing: int = 0
    added: int = 0

    @property
    def differences(self) -> int:
        """Number of windows that differ in any way."""
        return self.changed + self.missing + self.added


@dataclass(slots=True)
class _Side:
    """Emissions of one revision that the other one may still give."""

    waiting: dict[WindowIdentity, deque[WindowEmission]] = field(default_factory=dict)
    count: int = 0
    newest_ends: dict[tuple[Any, ...], int] = field(default_factory=dict)


class WindowComparison:
    """Compares two revisions micro-batch by micro-batch.

    Both run the same micro-batches. Where a change moves no close of a window, a window that one of
    them does not emit in the micro-batch of the other is a difference at once. Else it waits until
    the other one has emitted a later window of the same key.

    Attributes:
        counts: counts so far.
        differences: windows that differ, the first of them.
    """

    def __init__(self, rules: ComparisonRules = ALL_FIELDS, *, moves_closes: bool = False) -> None:
        """Begin.

        Args:
            rules: what matters.
            moves_closes: whether the change may let windows close at other times.
        """
        self._rules = rules
        self._moves_closes = moves_closes
        self._old, self._new = _Side(), _Side()
        self.counts = ComparisonCounts()
        self.differences: list[WindowDifference] = []

    @property
    def waiting(self) -> int:
        """Number of emissions that the other revision may still give."""
        return self._old.count + self._new.count

    def add_equal(self, windows: int) -> None:
        """Count windows that both revisions have emitted alike, byte by byte.

        Args:
            windows: how many; none of either revision waits.
        """
        self.counts.windows += windows

    def compare(self, old: EmissionsByWindow, new: EmissionsByWindow) -> None:
        """Compare the windows that both have emitted in a micro-batch.

        Args:
            old: of the running revision.
            new: of the canary.
        """
        windows = list(dict.fromkeys([*old, *new]))
        for window in windows:
            mine = [*self._take_waiting(self._old, window), *old.get(window, ())]
            others = [*self._take_waiting(self._new, window), *new.get(window, ())]
            for before, after in zip(mine, others, strict=False):
                self._compare_window(window, before, after)
            common = min(len(mine), len(others))
            self._put_aside(self._old, window, mine[common:])
            self._put_aside(self._new, window, others[common:])
        if self._moves_closes:
            for side, emitted in ((self._old, old), (self._new, new)):
                _note_ends(side, emitted)
            self._resolve_waiting(self._old, self._new.newest_ends, DifferenceKind.MISSING)
            self._resolve_waiting(self._new, self._old.newest_ends, DifferenceKind.ADDED)
        else:
            self._resolve_waiting(self._old, None, DifferenceKind.MISSING)
            self._resolve_waiting(self._new, None, DifferenceKind.ADDED)

    def _compare_window(
        self, window: WindowIdentity, old: WindowEmission, new: WindowEmission
    ) -> None:
        self.counts.windows += 1
        if fields := compare_emissions(old, new, self._rules):
            self.counts.changed += 1
            shown = tuple(fields[:MAX_SHOWN_FIELDS])
            self._note(WindowDifference(window, DifferenceKind.CHANGED, shown, len(fields)))

    def _note(self, difference: WindowDifference) -> None:
        if len(self.differences) < MAX_SHOWN_DIFFERENCES:
            self.differences.append(difference)

    def _take_waiting(self, side: _Side, window: WindowIdentity) -> list[WindowEmission]:
        waiting = list(side.waiting.pop(window, ()))
        side.count -= len(waiting)
        return waiting

    def _put_aside(
        self, side: _Side, window: WindowIdentity, emissions: Sequence[WindowEmission]
    ) -> None:
        if emissions:
            side.waiting[window] = deque(emissions)
            side.count += len(emissions)

    def _resolve_waiting(
        self,
        side: _Side,
        newest_ends: Mapping[tuple[Any, ...], int] | None,
        kind: DifferenceKind,
    ) -> None:
        """Count what the other revision does not give any more; all of it without its ends."""
        late = []
        for number, window in enumerate(side.waiting):
            end = None if newest_ends is None else newest_ends.get(window.series)
            is_too_many = side.count - MAX_WAITING > number
            if newest_ends is None or is_too_many or (end is not None and window.end < end):
                late.append(window)
        for window in late:
            for _ in self._take_waiting(side, window):
                self.counts.windows += 1
                if kind == DifferenceKind.MISSING:
                    self.counts.missing += 1
                else:
                    self.counts.added += 1
                self._note(WindowDifference(window, kind))


def _format_bound(bound: int, has_times: bool) -> str:
    return format_rfc3339(bound) if has_times else str(bound)


def _note_ends(side: _Side, emissions: EmissionsByWindow) -> None:
    """Note how far a revision has come with each key; of very many keys the oldest are left out."""
    ends = side.newest_ends
    for window in emissions:
        newest = ends.pop(window.series, window.end)
        ends[window.series] = max(newest, window.end)
    while len(ends) > MAX_WAITING:
        del ends[next(iter(ends))]
