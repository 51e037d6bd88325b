"""So many of the first or the last values, in order of arrival."""

from __future__ import annotations

from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from streamer.window.aggregate.accumulator import (
    Accumulator,
    ValueColumn,
    decode_arrivals,
    encode_arrivals,
    find_entries,
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


class FirstValuesState(NamedTuple):
    """Some values of each group, in order of arrival.

    Attributes:
        counts: by group, how many there are.
        ends: by group, where its values end.
        values: of group after group.
        arrivals: likewise, those of their messages.
    """

    counts: Ints
    ends: Ints
    values: Objects
    arrivals: Ints


class FirstValuesAccumulator(Accumulator):
    """Keeps so many of the first values, or of the last.

    A window's state is a list of values with their arrivals, and how many of it are its own. All
    states of a window share the list, which only grows; of the last values it is copied when it
    has become too long.
    """

    def __init__(self, number: int, last: bool) -> None:
        """Choose how many, and the last ones or the first."""
        self._number = number
        self._last = last

    def make_column(self, values: list[Any]) -> ValueColumn:
        """Return a column of objects."""
        return ValueColumn(make_object_array(values), size=estimate_size(values))

    def make_state(
        self, column: ValueColumn, groups: Ints, count: int, arrivals: Ints
    ) -> FirstValuesState:
        """Choose the values of each group."""
        order = np.lexsort((-arrivals if self._last else arrivals, groups))
        ordered = groups[order]
        places = np.arange(len(order)) - np.searchsorted(ordered, ordered)
        kept = order[places < self._number]
        kept = kept[np.lexsort((arrivals[kept], groups[kept]))]
        counts = np.bincount(groups[kept], minlength=count)
        return FirstValuesState(counts, np.cumsum(counts), column.values[kept], arrivals[kept])

    def merge_states(
        self, states: list[FirstValuesState], where: list[Ints], before: list[Ints], count: int
    ) -> FirstValuesState:
        """Choose among the values that partial states have."""
        groups = [
            np.repeat(numbers, state.counts) for state, numbers in zip(states, where, strict=True)
        ]
        values = np.concatenate([state.values for state in states])
        arrivals = np.concatenate([state.arrivals for state in states])
        return self.make_state(ValueColumn(values), np.concatenate(groups), count, arrivals)

    def take_groups(self, state: FirstValuesState, indices: Ints) -> FirstValuesState:
        """Return the state of some groups."""
        at = find_entries(state.counts, indices)
        counts = state.counts[indices]
        return FirstValuesState(counts, np.cumsum(counts), state.values[at], state.arrivals[at])

    def encode_state(self, state: FirstValuesState) -> bytes:
        """Write the counts, the arrivals and the values."""
        values = write_values(state.values.tolist())
        return pack_strings([pack_ints(state.counts), encode_arrivals(state.arrivals), values])

    def decode_state(self, data: bytes, shift: int) -> FirstValuesState:
        """Read what `encode_state` wrote."""
        of_groups, arrivals, values = unpack_strings(data)
        counts = unpack_ints(of_groups)
        return FirstValuesState(
            counts,
            np.cumsum(counts),
            make_object_array(read_values(values)),
            decode_arrivals(arrivals, shift),
        )

    def result_of_group(self, state: FirstValuesState, group: int) -> list[Any]:
        """Return a group's values."""
        end = int(state.ends[group])
        values: list[Any] = state.values[end - int(state.counts[group]) : end].tolist()
        return values

    @property
    def empty_state(self) -> tuple[list[tuple[int, Any]], int]:
        """A new list: each window has its own."""
        return [], 0

    def add(self, state: Any, value: Any, arrival: int, place: int) -> Any:
        """Add a value if it is wanted."""
        entries, count = state
        if not self._last and count == self._number:
            return state
        if count >= 2 * self._number:
            entries = entries[-self._number :]
            count = self._number
        entries.append((arrival, value))
        return entries, count + 1

    def _merge_valid(self, one: Any, other: Any) -> Any:
        entries = sorted([*self._entries_of(one), *self._entries_of(other)], key=_arrival_of)
        kept = entries[-self._number :] if self._last else entries[: self._number]
        return kept, len(kept)

    def _entries_of(self, state: Any) -> list[tuple[int, Any]]:
        entries, count = state
        return list(islice(entries, max(count - self._number, 0), count))

    def result_of(self, state: Any) -> list[Any]:
        """Return a window's values."""
        return [value for _, value in self._entries_of(state)]

    def _dump_valid(self, state: Any) -> Any:
        return [[arrival, dump_value(value)] for arrival, value in self._entries_of(state)]

    def _load_valid(self, plain: Any) -> Any:
        entries = [(arrival, load_value(value)) for arrival, value in plain]
        return entries, len(entries)


def _arrival_of(entry: tuple[int, Any]) -> int:
    return entry[0]
