"""Sets of numbered entries by group: the form of states that are brought together by merging."""

from __future__ import annotations

import base64
from abc import abstractmethod
from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamer.bloblang.errors import QueryError, UnplacedError
from streamer.window.aggregate.accumulator import (
    Accumulator,
    InvalidByGroup,
    InvalidValue,
    ValueColumn,
    decode_invalid,
    encode_invalid,
    find_entries,
    find_invalid,
    merge_invalid,
    take_by_group,
)
from streamer.window.settings.int_codec import (
    Ints,
    pack_ints,
    pack_strings,
    unpack_ints,
    unpack_strings,
)


class EntriesState(NamedTuple):
    """Some entries of each group, in ascending order.

    Attributes:
        counts: by group, how many it has.
        ends: by group, where its entries end.
        entries: of group after group.
        numbers: likewise, a number beside each; empty where none is needed.
        invalid: the invalid values.
    """

    counts: Ints
    ends: Ints
    entries: NDArray[Any]
    numbers: Ints
    invalid: InvalidByGroup

    def span_of(self, group: int) -> slice:
        """Return where the entries of a group are."""
        end = int(self.ends[group])
        return slice(end - int(self.counts[group]), end)


class EntriesAccumulator(Accumulator):
    """An accumulator whose state of groups is `EntriesState`."""

    def __init__(self, origin: str) -> None:
        """Prepare; `origin` is what error texts call the values."""
        self._origin = origin

    @abstractmethod
    def _unite(
        self, entries: NDArray[Any], numbers: Ints, groups: Ints, count: int
    ) -> tuple[Ints, NDArray[Any], Ints]:
        """Return the groups, entries and numbers of a state, by group and then ascending.

        Args:
            entries: in any order.
            numbers: by entry, one each where the state has numbers; else empty.
            groups: by entry.
            count: how many groups there are.
        """

    @abstractmethod
    def _take_column(self, column: ValueColumn) -> tuple[NDArray[Any], Ints]:
        """Return the entry of each message, and its number."""

    @abstractmethod
    def _encode_entries(self, entries: NDArray[Any]) -> bytes:
        """Return the entries of a state as bytes."""

    @abstractmethod
    def _decode_entries(self, data: bytes) -> NDArray[Any]:
        """Return the entries that were encoded."""

    def make_state(
        self, column: ValueColumn, groups: Ints, count: int, arrivals: Ints
    ) -> EntriesState:
        """Bring the entries of each group together."""
        entries, numbers = self._take_column(column)
        invalid = find_invalid(column, groups, arrivals)
        return self._make_state(entries, numbers, groups, count, invalid)

    def merge_states(
        self, states: list[EntriesState], where: list[Ints], before: list[Ints], count: int
    ) -> EntriesState:
        """Bring the entries of each group's partial states together."""
        groups = [
            np.repeat(numbers, state.counts) for state, numbers in zip(states, where, strict=True)
        ]
        entries = np.concatenate([state.entries for state in states])
        numbers = np.concatenate([state.numbers for state in states])
        invalid = merge_invalid(states, where, before)
        return self._make_state(entries, numbers, np.concatenate(groups), count, invalid)

    def _make_state(
        self,
        entries: NDArray[Any],
        numbers: Ints,
        groups: Ints,
        count: int,
        invalid: InvalidByGroup,
    ) -> EntriesState:
        groups, entries, numbers = self._unite(entries, numbers, groups, count)
        counts = np.bincount(groups, minlength=count)
        return EntriesState(counts, np.cumsum(counts), entries, numbers, invalid)

    def take_groups(self, state: EntriesState, indices: Ints) -> EntriesState:
        """Return the state of some groups."""
        at = find_entries(state.counts, indices)
        counts = state.counts[indices]
        numbers = state.numbers[at] if len(state.numbers) else state.numbers
        invalid = take_by_group(state.invalid, indices)
        return EntriesState(counts, np.cumsum(counts), state.entries[at], numbers, invalid)

    def encode_state(self, state: EntriesState) -> bytes:
        """Write the counts, the entries, their numbers and the invalid values."""
        return pack_strings(
            [
                pack_ints(state.counts),
                self._encode_entries(state.entries),
                pack_ints(state.numbers),
                encode_invalid(state.invalid),
            ]
        )

    def decode_state(self, data: bytes, shift: int) -> EntriesState:
        """Read what `encode_state` wrote."""
        of_groups, entries, numbers, invalid = unpack_strings(data)
        counts = unpack_ints(of_groups)
        return EntriesState(
            counts,
            np.cumsum(counts),
            self._decode_entries(entries),
            unpack_ints(numbers),
            decode_invalid(invalid, shift),
        )

    def _make_error(self, invalid: InvalidValue) -> QueryError:
        return UnplacedError(f"{self._origin}: index {invalid.place} of array: {invalid.text}")


class EntryLog:
    """The entries of a window with their numbers, and those added in this micro-batch, in order.

    As in `CountLog`, what there was after an earlier message is found by going on from there.
    """

    def __init__(self, before: dict[int, int], combine: Callable[[int, int], int]) -> None:
        """Begin.

        Args:
            before: numbers by entry.
            combine: gives the number of an entry that comes again.
        """
        self._before = before
        self._combine = combine
        self._now = dict(before)
        self._added: list[tuple[int, int]] = []
        self._counted = 0

    def add(self, entry: tuple[int, int]) -> None:
        """Add an entry with its number."""
        self._added.append(entry)

    def entries_at(self, length: int) -> dict[int, int]:
        """Return the entries, ascending, after the first so many that were added."""
        if length < self._counted:
            self._now, self._counted = dict(self._before), 0
        now, combine = self._now, self._combine
        for entry, number in islice(self._added, self._counted, length):
            now[entry] = combine(now[entry], number) if entry in now else number
        self._counted = length
        return dict(sorted(now.items()))


class CombiningAccumulator(EntriesAccumulator):
    """An accumulator of entries with numbers, in which equal entries of a group become one.

    A window's state is an `EntryLog` and how many entries had been added, or `InvalidValue`.
    """

    @staticmethod
    @abstractmethod
    def _combine(one: int, other: int) -> int:
        """Return the number of two equal entries that have become one."""

    @property
    def empty_state(self) -> tuple[EntryLog, int]:
        """A new log: each window has its own."""
        return EntryLog({}, self._combine), 0

    def add(self, state: Any, value: Any, arrival: int, place: int) -> Any:
        """Add an entry; the first invalid value stays."""
        if type(state) is InvalidValue:
            return state
        if type(value) is InvalidValue:
            return InvalidValue(place, arrival, value.text)
        log, length = state
        log.add(value)
        return log, length + 1

    def _entries_of(self, state: Any) -> dict[int, int]:
        """Return the entries of a window; raise its error if it has one."""
        if type(state) is InvalidValue:
            raise self._make_error(state)
        log, length = state
        entries: dict[int, int] = log.entries_at(length)
        return entries

    def _merge_valid(self, one: Any, other: Any) -> Any:
        together = self._entries_of(one)
        for entry, number in self._entries_of(other).items():
            together[entry] = (
                self._combine(together[entry], number) if entry in together else number
            )
        return EntryLog(together, self._combine), 0

    def _dump_valid(self, state: Any) -> Any:
        known = self._entries_of(state)
        entries, numbers = (np.array(list(some), np.int64) for some in (known, known.values()))
        packed = pack_strings([self._encode_entries(entries), pack_ints(numbers)])
        return base64.b64encode(packed).decode()

    def _load_valid(self, plain: Any) -> Any:
        entries, numbers = unpack_strings(base64.b64decode(plain))
        known = zip(
            self._decode_entries(entries).tolist(), unpack_ints(numbers).tolist(), strict=True
        )
        return EntryLog(dict(known), self._combine), 0
