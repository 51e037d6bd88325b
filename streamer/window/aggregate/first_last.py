"""The first or the last of the values that messages bring."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamer.bloblang.errors import RecordedError
from streamer.bloblang.message_expression import ErrorValue
from streamer.window.aggregate.accumulator import ValueColumn
from streamer.window.aggregate.value_codec import (
    Objects,
    estimate_size,
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
    """What was picked.

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


class FirstLastAggregate:
    """Picks the value of the first message, or of the last one."""

    def __init__(self, last: bool) -> None:
        """Take which one."""
        self._last = last

    def make_column(self, values: list[Any]) -> ValueColumn:
        """See `part.Accumulator`."""
        return ValueColumn(make_object_array(values), size=estimate_size(values))

    def concat_columns(self, columns: list[ValueColumn]) -> ValueColumn:
        """See `part.Accumulator`."""
        return ValueColumn(np.concatenate([column.values for column in columns]))

    def make_state(
        self, column: ValueColumn, groups: Ints, count: int, arrivals: Ints
    ) -> FirstLastState:
        """See `part.Accumulator`."""
        return self._make_state(column.values, groups, arrivals, count)

    def merge_states(
        self, states: list[FirstLastState], where: list[Ints], before: list[Ints], count: int
    ) -> FirstLastState:
        """See `part.Accumulator`."""
        groups = [numbers[state.groups] for state, numbers in zip(states, where, strict=True)]
        values = np.concatenate([state.values for state in states])
        arrivals = np.concatenate([state.arrivals for state in states])
        return self._make_state(values, np.concatenate(groups), arrivals, count)

    def _make_state(
        self, values: Objects, groups: Ints, arrivals: Ints, count: int
    ) -> FirstLastState:
        # Of those that are put in for a group, the last one stays.
        order = np.argsort(arrivals, kind="stable")
        order = order if self._last else order[::-1]
        which = np.full(count, -1, np.int64)
        which[groups[order]] = order
        some = np.flatnonzero(which >= 0)
        indices = which[some]
        return FirstLastState(some, values[indices], arrivals[indices], count)

    def encode_state(self, state: FirstLastState) -> bytes:
        """See `part.Accumulator`."""
        first = int(state.arrivals.min()) if len(state.arrivals) else 0
        start = first.to_bytes(8, "little", signed=True)
        arrivals = start + pack_ints(state.arrivals - first)
        known = pack_ints(np.bincount(state.groups, minlength=state.group_count))
        return pack_strings([known, arrivals, write_values(state.values.tolist())])

    def decode_state(self, data: bytes, shift: int) -> FirstLastState:
        """See `part.Accumulator`."""
        known, arrivals, values = unpack_strings(data)
        counts = unpack_ints(known)
        first = int.from_bytes(arrivals[:8], "little", signed=True) + shift
        arrival_numbers = unpack_ints(arrivals[8:]) + first
        return FirstLastState(
            np.flatnonzero(counts),
            make_object_array(read_values(values)),
            arrival_numbers,
            len(counts),
        )

    def result_of(self, state: FirstLastState, group: int) -> Any:
        """See `part.Accumulator`."""
        value = state.values[np.searchsorted(state.groups, group)]
        if type(value) is ErrorValue:
            raise RecordedError(value.text, value.sealed, value.is_mismatch)
        return value
