"""An aggregate of an expression's values, of which steps such as `filter` drop some.

Its accumulator wraps that of the plain aggregate, which gets only the values that are left: it
knows which messages these are from, and for which ones the expression failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from streamer.bloblang.analysis.aggregates import Aggregate
from streamer.bloblang.compiler.message_expression import DroppedElement
from streamer.bloblang.errors import RecordedError
from streamer.bloblang.message_expression import ErrorValue
from streamer.window.aggregate.accumulator import (
    Accumulator,
    ValueColumn,
    concat_invalid,
    insert_index,
    rank_in_groups,
    select_values,
    take_by_group,
)
from streamer.window.aggregate.empty_result import empty_result
from streamer.window.settings.int_codec import (
    Ints,
    pack_ints,
    pack_strings,
    unpack_ints,
    unpack_strings,
)
from streamer.window.state_store import dump_state_json, load_state_json


class EvaluationFault(NamedTuple):
    """A message for which the expression failed.

    Attributes:
        place: its index in its column, or among the messages of its group that reached its step.
        arrival: its arrival number.
        step: what failed: 0 for the expression before `from_all()`, then the steps behind it.
        text: the error's, with `INDEX_PLACEHOLDER` for the index.
        sealed: as in `ErrorValue`.
        is_mismatch: as in `ErrorValue`.
    """

    place: int
    arrival: int
    step: int
    text: str
    sealed: bool
    is_mismatch: bool


class FilteredValues:
    """The values of some messages.

    Attributes:
        inner: the column of the values that are left.
        message_of: by value, its message; None when each message has a value.
        steps: by message, the step that failed for it or dropped it; one more than there are
            when it has a value. None when each message has a value.
    """

    def __init__(
        self, inner: ValueColumn, length: int, at: Ints | None, steps: Ints | None
    ) -> None:
        self.inner = inner
        self.message_of = at
        self.steps = steps
        self._length = length

    def __len__(self) -> int:
        return self._length

    def take(self, indices: Ints) -> FilteredValues:
        """Return the values of some messages, given by their indices in ascending order."""
        if self.message_of is None or self.steps is None:
            return FilteredValues(select_values(self.inner, indices), len(indices), None, None)
        number = np.full(self._length, -1, np.int64)
        number[indices] = np.arange(len(indices))
        at = number[self.message_of]
        kept = np.flatnonzero(at >= 0)
        return FilteredValues(
            select_values(self.inner, kept), len(indices), at[kept], self.steps[indices]
        )


class FilteredState(NamedTuple):
    """The state of some groups.

    Attributes:
        inner: that of the values that are left.
        reached: by step and group, how many messages reached the step; at the end, how many values
            are left.
        faults: by group, the first message that failed at the earliest step.
    """

    inner: Any
    reached: Ints
    faults: dict[int, EvaluationFault]


class FilteredMessageState(NamedTuple):
    """The state of one window.

    Attributes:
        inner: that of the values that are left.
        reached: by step, how many messages reached it; at the end, how many values are left.
        fault: the first message that failed at the earliest step.
    """

    inner: Any
    reached: tuple[int, ...]
    fault: EvaluationFault | None


class FilteredAccumulator(Accumulator):
    """Keeps up to date an aggregate whose values an expression gives for each message."""

    def __init__(self, part: Aggregate, inner: Accumulator) -> None:
        """Take the aggregate, and the accumulator of the values that are left."""
        assert part.expression is not None
        self._part = part
        self._inner = inner
        self._top = len(part.expression.steps) + 1

    def make_column(self, values: list[Any]) -> ValueColumn:
        """Return a column of `FilteredValues`; a value may be `DroppedElement` or `ErrorValue`."""
        kinds = set(map(type, values))
        if ErrorValue not in kinds and DroppedElement not in kinds:
            inner = self._inner.make_column(values)
            return ValueColumn(FilteredValues(inner, len(values), None, None), size=inner.size)
        steps = np.full(len(values), self._top, np.int64)
        kept, faults = [], []
        for place, value in enumerate(values):
            if type(value) is ErrorValue:
                steps[place] = value.step
                faults.append(EvaluationFault(place, 0, *value))
            elif type(value) is DroppedElement:
                steps[place] = value.step
            else:
                kept.append(value)
        at = np.flatnonzero(steps == self._top)
        inner = self._inner.make_column(kept)
        return ValueColumn(
            FilteredValues(inner, len(values), at, steps), faults, inner.size + 16 * len(steps)
        )

    def concat_columns(self, columns: list[ValueColumn]) -> ValueColumn:
        """Return a column of `FilteredValues`."""
        parts: list[FilteredValues] = [column.values for column in columns]
        inner = self._inner.concat_columns([each.inner for each in parts])
        invalid = concat_invalid(columns)
        if all(each.message_of is None for each in parts):
            return ValueColumn(FilteredValues(inner, sum(map(len, parts)), None, None), invalid)
        steps = [
            np.full(len(each), self._top, np.int64) if each.steps is None else each.steps
            for each in parts
        ]
        joined = np.concatenate(steps)
        at = np.flatnonzero(joined == self._top)
        return ValueColumn(FilteredValues(inner, len(joined), at, joined), invalid)

    def make_state(
        self, column: ValueColumn, groups: Ints, count: int, arrivals: Ints
    ) -> FilteredState:
        """Make the state of the values that are left, and count the messages at each step."""
        outcomes: FilteredValues = column.values
        if outcomes.message_of is None or outcomes.steps is None:
            state = self._inner.make_state(outcomes.inner, groups, count, arrivals)
            reached = np.tile(np.bincount(groups, minlength=count), (self._top + 1, 1))
            return FilteredState(state, reached, {})
        at, steps = outcomes.message_of, outcomes.steps
        state = self._inner.make_state(outcomes.inner, groups[at], count, arrivals[at])
        reached_counts = [
            np.bincount(groups[steps >= n], minlength=count) for n in range(self._top + 1)
        ]
        return FilteredState(
            state, np.array(reached_counts), _find_first_faults(column, groups, arrivals, steps)
        )

    def merge_states(
        self, states: list[FilteredState], where: list[Ints], before: list[Ints], count: int
    ) -> FilteredState:
        """Merge the states of the values that are left, and add the counts."""
        reached = np.zeros((self._top + 1, count), np.int64)
        kept = []
        faults: dict[int, EvaluationFault] = {}
        for state, numbers in zip(states, where, strict=True):
            for group, fault in state.faults.items():
                number = int(numbers[group])
                known = faults.get(number)
                if known is None or fault[1:3][::-1] < known[1:3][::-1]:
                    place = fault.place + int(reached[fault.step, number])
                    faults[number] = fault._replace(place=place)
            kept.append(reached[-1].copy())
            reached[:, numbers] += state.reached
        inner = self._inner.merge_states([state.inner for state in states], where, kept, count)
        return FilteredState(inner, reached, faults)

    def take_groups(self, state: FilteredState, indices: Ints) -> FilteredState:
        """Return the state of some groups."""
        faults = take_by_group(state.faults, indices)
        inner = self._inner.take_groups(state.inner, indices)
        return FilteredState(inner, state.reached[:, indices], faults)

    def encode_state(self, state: FilteredState) -> bytes:
        """Write the state of the values that are left, the counts and the faults."""
        faults = [[group, *fault] for group, fault in state.faults.items()]
        written = dump_state_json(faults) if faults else b""
        reached = pack_ints(state.reached.ravel())
        return pack_strings([self._inner.encode_state(state.inner), reached, written])

    def decode_state(self, data: bytes, shift: int) -> FilteredState:
        """Read what `encode_state` wrote."""
        inner, reached, written = unpack_strings(data)
        faults = {
            group: EvaluationFault(place, arrival + shift, *rest)
            for group, place, arrival, *rest in load_state_json(written or b"[]")
        }
        shape = (self._top + 1, -1)
        return FilteredState(
            self._inner.decode_state(inner, shift), unpack_ints(reached).reshape(shape), faults
        )

    def result_of_group(self, state: FilteredState, group: int) -> Any:
        """Return a group's value; raise the error of a message that failed."""
        _check_fault(state.faults.get(group))
        if not state.reached[-1, group]:
            return empty_result(self._part)
        return self._inner.result_of_group(state.inner, group)

    @property
    def empty_state(self) -> FilteredMessageState:
        """The state without messages."""
        return FilteredMessageState(self._inner.empty_state, (0,) * (self._top + 1), None)

    def prepare(self, values: list[Any]) -> Sequence[Any]:
        """Return what the inner accumulator takes, `DroppedElement` or `ErrorValue`."""
        out = (ErrorValue, DroppedElement)
        kept = [value for value in values if type(value) not in out]
        if len(kept) == len(values):
            return self._inner.prepare(values)
        prepared = iter(self._inner.prepare(kept) if kept else ())
        return [value if type(value) in out else next(prepared) for value in values]

    def add(
        self, state: FilteredMessageState, value: Any, arrival: int, place: int
    ) -> FilteredMessageState:
        """Add a value that is left, and count the message at the steps that it reached."""
        inner, reached, fault = state
        kind = type(value)
        if kind is not ErrorValue and kind is not DroppedElement:
            inner = self._inner.add(inner, value, arrival, reached[-1])
            return FilteredMessageState(inner, tuple([count + 1 for count in reached]), fault)
        step = value.step
        if kind is ErrorValue and (fault is None or step < fault.step):
            fault = EvaluationFault(reached[step], arrival, *value)
        reached_counts = tuple([count + (n <= step) for n, count in enumerate(reached)])
        return FilteredMessageState(inner, reached_counts, fault)

    def _merge_valid(
        self, one: FilteredMessageState, other: FilteredMessageState
    ) -> FilteredMessageState:
        faults = [state.fault for state in (one, other) if state.fault is not None]
        fault = min(faults, key=lambda fault: (fault.step, fault.arrival), default=None)
        reached = tuple([a + b for a, b in zip(one.reached, other.reached, strict=True)])
        return FilteredMessageState(self._inner.merge(one.inner, other.inner), reached, fault)

    def result_of(self, state: FilteredMessageState) -> Any:
        """Return a window's value; raise the error of a message that failed."""
        _check_fault(state.fault)
        if not state.reached[-1]:
            return empty_result(self._part)
        return self._inner.result_of(state.inner)

    def _dump_valid(self, state: FilteredMessageState) -> Any:
        return [self._inner.dump(state.inner), state.reached, state.fault]

    def _load_valid(self, plain: Any) -> FilteredMessageState:
        inner, reached, fault = plain
        known = None if fault is None else EvaluationFault(*fault)
        return FilteredMessageState(self._inner.load(inner), tuple(reached), known)


def _check_fault(fault: EvaluationFault | None) -> None:
    if fault is not None:
        raise RecordedError(insert_index(fault.text, fault.place), fault.sealed, fault.is_mismatch)


def _find_first_faults(
    column: ValueColumn, groups: Ints, arrivals: Ints, steps: Ints
) -> dict[int, EvaluationFault]:
    """Return the fault of each group: one of the earliest step, and there the first."""
    first: dict[int, EvaluationFault] = {}
    faults: Sequence[Any] = column.invalid
    for fault in faults:
        group = int(groups[fault.place])
        known = first.get(group)
        if known is None or fault.step < known.step:
            first[group] = fault
    places: dict[int, Ints] = {}
    for step in {fault.step for fault in first.values()}:
        reached = np.flatnonzero(steps >= step)
        places[step] = np.zeros(len(steps), np.int64)
        places[step][reached] = rank_in_groups(groups[reached])
    return {
        group: fault._replace(
            place=int(places[fault.step][fault.place]), arrival=int(arrivals[fault.place])
        )
        for group, fault in first.items()
    }
