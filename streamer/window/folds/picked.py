"""The first or the last of the values that messages bring."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamer.bloblang.element import Failed
from streamer.bloblang.errors import ToldError
from streamer.window.folds.part import Column
from streamer.window.folds.values import Objects, objects, read_values, size_of, write_values
from streamer.window.ints import Ints, pack_ints, pack_strings, unpack_ints, unpack_strings


class PickedState(NamedTuple):
    """What was picked.

    Attributes:
        groups: those that have a value, in ascending order.
        values: by these.
        arrivals: by these, that of the value's message.
        of: how many groups there are in all.
    """

    groups: Ints
    values: Objects
    arrivals: Ints
    of: int


class Picked:
    """Picks the value of the first message, or of the last one."""

    def __init__(self, last: bool) -> None:
        """Take which one."""
        self._last = last

    def column(self, values: list[Any]) -> Column:
        """See `part.Accumulator`."""
        return Column(objects(values), size=size_of(values))

    def gathered(self, columns: list[Column]) -> Column:
        """See `part.Accumulator`."""
        return Column(np.concatenate([column.values for column in columns]))

    def state(self, column: Column, groups: Ints, count: int, arrivals: Ints) -> PickedState:
        """See `part.Accumulator`."""
        return self._state(column.values, groups, arrivals, count)

    def merged(
        self, states: list[PickedState], where: list[Ints], before: list[Ints], count: int
    ) -> PickedState:
        """See `part.Accumulator`."""
        groups = [numbers[state.groups] for state, numbers in zip(states, where, strict=True)]
        values = np.concatenate([state.values for state in states])
        arrivals = np.concatenate([state.arrivals for state in states])
        return self._state(values, np.concatenate(groups), arrivals, count)

    def _state(self, values: Objects, groups: Ints, arrivals: Ints, count: int) -> PickedState:
        # Of those that are put in for a group, the last one stays.
        order = np.argsort(arrivals, kind="stable")
        order = order if self._last else order[::-1]
        which = np.full(count, -1, np.int64)
        which[groups[order]] = order
        some = np.flatnonzero(which >= 0)
        chosen = which[some]
        return PickedState(some, values[chosen], arrivals[chosen], count)

    def write(self, state: PickedState) -> bytes:
        """See `part.Accumulator`."""
        first = int(state.arrivals.min()) if len(state.arrivals) else 0
        start = first.to_bytes(8, "little", signed=True)
        arrivals = start + pack_ints(state.arrivals - first)
        known = pack_ints(np.bincount(state.groups, minlength=state.of))
        return pack_strings([known, arrivals, write_values(state.values.tolist())])

    def read(self, data: bytes, shift: int) -> PickedState:
        """See `part.Accumulator`."""
        known, arrivals, values = unpack_strings(data)
        counts = unpack_ints(known)
        first = int.from_bytes(arrivals[:8], "little", signed=True) + shift
        found = unpack_ints(arrivals[8:]) + first
        return PickedState(np.flatnonzero(counts), objects(read_values(values)), found, len(counts))

    def value(self, state: PickedState, group: int) -> Any:
        """See `part.Accumulator`."""
        value = state.values[np.searchsorted(state.groups, group)]
        if type(value) is Failed:
            raise ToldError(value.text, value.sealed, value.said)
        return value
