"""The value of the first message, or of the last one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from streamer.bloblang.errors import RecordedError
from streamer.bloblang.message_expression import ErrorValue
from streamer.window.aggregate.accumulator import (
    Accumulator,
    RowSpan,
    ValueColumn,
    decode_arrivals,
    encode_arrivals,
)
from streamer.window.aggregate.value_codec import (
    Objects,
    dump_value,
    estimate_size,
    load_value,
    make_object_array,
    read_values,
    write_values,
)
from streamer.window.settings.int_codec import (
    Ints,
    pack_ints,
    pack_strings,
    unpack_ints,
    unpack_strings,
)


class FirstLastState(NamedTuple):
    """The chosen values of groups.

    Attributes:
        groups: those that have a value, in ascending order.
        values: by these.
        arrivals: by these, that of the value's message.
        group_count: how many groups there are in all.
    """

    groups: Ints
    values: Objects
    arrivals: Ints
    group_count: int


class FirstLastAccumulator(Accumulator):
    """Keeps the first value or the last; a window's state is its arrival and the value, or None.

    A value may be an `ErrorValue`: its error is raised only if it is the chosen one.
    """

    def __init__(self, last: bool) -> None:
        """Choose the last value, and not the first."""
        self._last = last

    def make_column(self, values: list[Any]) -> ValueColumn:
        """Return a column of objects."""
        return ValueColumn(make_object_array(values), size=estimate_size(values))

    def make_state(
        self, column: ValueColumn, groups: Ints, count: int, arrivals: Ints
    ) -> FirstLastState:
        """Choose the value of each group that has messages."""
        # Of the values that are assigned to a group, the last one stays.
        order = np.argsort(arrivals, kind="stable")
        order = order if self._last else order[::-1]
        which = np.full(count, -1, np.int64)
        which[groups[order]] = order
        some = np.flatnonzero(which >= 0)
        indices = which[some]
        return FirstLastState(some, column.values[indices], arrivals[indices], count)

    def merge_states(
        self, states: list[FirstLastState], where: list[Ints], before: list[Ints], count: int
    ) -> FirstLastState:
        """Choose among the values that partial states have."""
        groups = [numbers[state.groups] for state, numbers in zip(states, where, strict=True)]
        values = np.concatenate([state.values for state in states])
        arrivals = np.concatenate([state.arrivals for state in states])
        return self.make_state(ValueColumn(values), np.concatenate(groups), count, arrivals)

    def take_groups(self, state: FirstLastState, indices: Ints) -> FirstLastState:
        """Return the state of some groups."""
        kept = np.isin(state.groups, indices)
        groups = np.searchsorted(indices, state.groups[kept])
        return FirstLastState(groups, state.values[kept], state.arrivals[kept], len(indices))

    def encode_state(self, state: FirstLastState) -> bytes:
        """Write which groups have a value, the arrivals and the values."""
        known = pack_ints(np.bincount(state.groups, minlength=state.group_count))
        arrivals = encode_arrivals(state.arrivals)
        return pack_strings([known, arrivals, write_values(state.values.tolist())])

    def decode_state(self, data: bytes, shift: int) -> FirstLastState:
        """Read what `encode_state` wrote."""
        known, arrivals, values = unpack_strings(data)
        counts = unpack_ints(known)
        return FirstLastState(
            np.flatnonzero(counts),
            make_object_array(read_values(values)),
            decode_arrivals(arrivals, shift),
            len(counts),
        )

    def result_of_group(self, state: FirstLastState, group: int) -> Any:
        """Return a group's value; raise its error if it is one."""
        value = state.values[np.searchsorted(state.groups, group)]
        if type(value) is ErrorValue:
            raise RecordedError(value.text, value.sealed, value.is_mismatch)
        return value

    def add(self, state: Any, value: Any, arrival: int, place: int) -> Any:
        """Choose between the state and a value that is later."""
        return (arrival, value) if self._last or state is None else state

    def add_all(self, state: Any, values: Sequence[Any], span: RowSpan, place: int) -> Any:
        """Choose between the state and the first or the last of some values that are later."""
        if not self._last and state is not None:
            return state
        at = span.last - 1 if self._last else span.first
        return span.arrivals[at], values[at]

    def _merge_valid(self, one: Any, other: Any) -> Any:
        return one if (one[0] > other[0]) == self._last else other

    def result_of(self, state: Any) -> Any:
        """Return a window's value; raise its error if it is one."""
        value = state[1]
        if type(value) is ErrorValue:
            raise RecordedError(value.text, value.sealed, value.is_mismatch)
        return value

    def _dump_valid(self, state: Any) -> Any:
        return None if state is None else [state[0], dump_value(state[1])]

    def _load_valid(self, plain: Any) -> Any:
        return None if plain is None else (plain[0], load_value(plain[1]))
