"""A part whose values are not just what a field holds: they are worked out, and some are left out.

Around the accumulator that keeps the part up to date, for it is given only the values that are
left, stands one that knows which messages these are from, and what failed on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from streamer.bloblang.compiler.element import Dropped
from streamer.bloblang.element import Failed
from streamer.bloblang.errors import ToldError
from streamer.bloblang.parts import Part
from streamer.window.folds.empty import of_nothing
from streamer.window.folds.part import (
    Accumulator,
    Column,
    joined_bad,
    placed,
    places_in_groups,
    selected,
)
from streamer.window.ints import Ints, pack_ints, pack_strings, unpack_ints, unpack_strings
from streamer.window.plain import dump_plain, load_plain


class Fault(NamedTuple):
    """A message for which there is an error instead of a value.

    Attributes:
        place: its index in its column, or among what came to its step in its group.
        arrival: its arrival number.
        step: what failed: 0 for the expression before `from_all()`, then the steps behind it.
        text: the error's, with `AT` for the index.
        sealed: as in `Failed`.
        said: as in `Failed`.
    """

    place: int
    arrival: int
    step: int
    text: str
    sealed: bool
    said: bool


class Outcomes:
    """What some messages bring.

    Attributes:
        inner: the values that are left, as the accumulator takes them.
        at: by value, its message; None when there is one for each.
        steps: by message, the step that it failed at, or was left out by; one more than there are
            when it has a value. None when all have.
    """

    def __init__(self, inner: Column, length: int, at: Ints | None, steps: Ints | None) -> None:
        self.inner = inner
        self.at = at
        self.steps = steps
        self._length = length

    def __len__(self) -> int:
        return self._length

    def take(self, chosen: Ints) -> Outcomes:
        """Return what some of the messages bring, given by their indices in ascending order."""
        if self.at is None or self.steps is None:
            return Outcomes(selected(self.inner, chosen), len(chosen), None, None)
        number = np.full(self._length, -1, np.int64)
        number[chosen] = np.arange(len(chosen))
        at = number[self.at]
        kept = np.flatnonzero(at >= 0)
        return Outcomes(selected(self.inner, kept), len(chosen), at[kept], self.steps[chosen])


class ChosenState(NamedTuple):
    """What a part has come to in some groups.

    Attributes:
        inner: the accumulator's state.
        reached: by step and group, how many messages came to the step; at the end, how many values
            are left.
        faults: by group, what failed first.
    """

    inner: Any
    reached: Ints
    faults: dict[int, Fault]


class Chosen:
    """Keeps up to date what values come to that are worked out for each message."""

    def __init__(self, part: Part, inner: Accumulator) -> None:
        """Take the part, and what keeps it up to date when it is given the values."""
        assert part.element is not None
        self._part = part
        self._inner = inner
        self._top = len(part.element.steps) + 1

    def column(self, values: list[Any]) -> Column:
        """See `part.Accumulator`; the values are those, `Dropped` and `Failed`."""
        kinds = set(map(type, values))
        if Failed not in kinds and Dropped not in kinds:
            inner = self._inner.column(values)
            return Column(Outcomes(inner, len(values), None, None), size=inner.size)
        steps = np.full(len(values), self._top, np.int64)
        kept, faults = [], []
        for place, value in enumerate(values):
            if type(value) is Failed:
                steps[place] = value.step
                faults.append(Fault(place, 0, *value))
            elif type(value) is Dropped:
                steps[place] = value.step
            else:
                kept.append(value)
        at = np.flatnonzero(steps == self._top)
        inner = self._inner.column(kept)
        return Column(Outcomes(inner, len(values), at, steps), faults, inner.size + 16 * len(steps))

    def gathered(self, columns: list[Column]) -> Column:
        """See `part.Accumulator`."""
        found: list[Outcomes] = [column.values for column in columns]
        inner = self._inner.gathered([each.inner for each in found])
        sizes = [len(each) for each in found]
        bad = joined_bad(columns, sizes)
        if all(each.at is None for each in found):
            return Column(Outcomes(inner, sum(sizes), None, None), bad)
        steps = [
            np.full(len(each), self._top, np.int64) if each.steps is None else each.steps
            for each in found
        ]
        joined = np.concatenate(steps)
        at = np.flatnonzero(joined == self._top)
        return Column(Outcomes(inner, sum(sizes), at, joined), bad)

    def state(self, column: Column, groups: Ints, count: int, arrivals: Ints) -> ChosenState:
        """See `part.Accumulator`."""
        outcomes: Outcomes = column.values
        if outcomes.at is None or outcomes.steps is None:
            state = self._inner.state(outcomes.inner, groups, count, arrivals)
            reached = np.tile(np.bincount(groups, minlength=count), (self._top + 1, 1))
            return ChosenState(state, reached, {})
        at, steps = outcomes.at, outcomes.steps
        state = self._inner.state(outcomes.inner, groups[at], count, arrivals[at])
        came = [np.bincount(groups[steps >= n], minlength=count) for n in range(self._top + 1)]
        return ChosenState(state, np.array(came), _first_faults(column, groups, arrivals, steps))

    def merged(
        self, states: list[ChosenState], where: list[Ints], before: list[Ints], count: int
    ) -> ChosenState:
        """See `part.Accumulator`."""
        reached = np.zeros((self._top + 1, count), np.int64)
        kept = []
        faults: dict[int, Fault] = {}
        for state, numbers in zip(states, where, strict=True):
            for group, fault in state.faults.items():
                number = int(numbers[group])
                known = faults.get(number)
                if known is None or fault[1:3][::-1] < known[1:3][::-1]:
                    place = fault.place + int(reached[fault.step, number])
                    faults[number] = fault._replace(place=place)
            kept.append(reached[-1].copy())
            reached[:, numbers] += state.reached
        inner = self._inner.merged([state.inner for state in states], where, kept, count)
        return ChosenState(inner, reached, faults)

    def write(self, state: ChosenState) -> bytes:
        """See `part.Accumulator`."""
        faults = [[group, *fault] for group, fault in state.faults.items()]
        written = dump_plain(faults) if faults else b""
        reached = pack_ints(state.reached.ravel())
        return pack_strings([self._inner.write(state.inner), reached, written])

    def read(self, data: bytes, shift: int) -> ChosenState:
        """See `part.Accumulator`."""
        inner, reached, written = unpack_strings(data)
        faults = {
            group: Fault(place, arrival + shift, *rest)
            for group, place, arrival, *rest in load_plain(written or b"[]")
        }
        shape = (self._top + 1, -1)
        return ChosenState(
            self._inner.read(inner, shift), unpack_ints(reached).reshape(shape), faults
        )

    def value(self, state: ChosenState, group: int) -> Any:
        """See `part.Accumulator`."""
        fault = state.faults.get(group)
        if fault is not None:
            raise ToldError(placed(fault.text, fault.place), fault.sealed, fault.said)
        if not state.reached[-1, group]:
            return of_nothing(self._part)
        return self._inner.value(state.inner, group)


def _first_faults(column: Column, groups: Ints, arrivals: Ints, steps: Ints) -> dict[int, Fault]:
    """Return the fault of each group: one of the earliest step, and there the first."""
    found: dict[int, Fault] = {}
    faults: Sequence[Any] = column.bad
    for fault in faults:
        group = int(groups[fault.place])
        known = found.get(group)
        if known is None or fault.step < known.step:
            found[group] = fault
    places: dict[int, Ints] = {}
    for step in {fault.step for fault in found.values()}:
        came = np.flatnonzero(steps >= step)
        places[step] = np.zeros(len(steps), np.int64)
        places[step][came] = places_in_groups(groups[came])
    return {
        group: fault._replace(
            place=int(places[fault.step][fault.place]), arrival=int(arrivals[fault.place])
        )
        for group, fault in found.items()
    }
