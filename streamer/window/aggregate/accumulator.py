"""Accumulators: each keeps one aggregate of a mapping up to date, in two forms.

The column form has the states of many groups at once, for windows that close together. It takes
columns: one value for each of many messages in order of arrival, and beside them the number of the
group that each message belongs to.

The per-message form has the state of one window, for windows that close key by key: every message
may change it, and it may be read after every message. Such a state is a plain value which is never
changed in place as far as a reader can notice, so that keeping a reference keeps an earlier result.
It is not made of the column form's `merge_states`: with arrays of one value that takes several
hundred times as long for each message as `add`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streamer.bloblang.compiler.message_expression import INDEX_PLACEHOLDER
from streamer.bloblang.errors import QueryError, RecordedError
from streamer.window.settings.int_codec import Ints, pack_ints, unpack_ints
from streamer.window.state_store import dump_state_json, load_state_json

_ARRIVAL_SIZE: Final = 8


class InvalidValue(NamedTuple):
    """A value that an aggregate cannot take: its whole group then gives an error.

    It stands for the value in a column, and for the state of a group or window that has one.

    Attributes:
        place: the index of its message: in the column, or among the messages of its group that
            have a value. In a group it is exact as long as the group's packs do not overlap in
            their arrival numbers; in two sessions that have merged, it counts in its own one.
        arrival: the arrival number of its message; 0 until that is known.
        text: the error.
    """

    place: int
    arrival: int
    text: str


InvalidByGroup = dict[int, InvalidValue]
"""By group, the one of its invalid values that the group's error is about."""


class ValueColumn(NamedTuple):
    """The values of some messages.

    Attributes:
        values: one for each message, as an array of a kind that the accumulator chooses.
        invalid: the messages that have no value, as `InvalidValue` or another tuple with `place`.
        size: about how many bytes it holds.
    """

    values: Any
    invalid: Sequence[Any] = ()
    size: int = 0


class RowSpan(NamedTuple):
    """Some messages that follow one another in a column.

    Attributes:
        first: the first of them.
        last: the one after the last.
        arrivals: the arrival numbers of all messages of the column.
    """

    first: int
    last: int
    arrivals: Sequence[int]


class Accumulator(ABC):
    """Keeps one aggregate up to date."""

    _reports_last: bool = False
    """Whether the error is about the last invalid value of a group, and not about the first."""

    _dumps_invalid_as_list: bool = False
    """Whether `dump` gives a list for an invalid state, which then no valid one may give."""

    # Column form.

    @abstractmethod
    def make_column(self, values: list[Any]) -> ValueColumn:
        """Return a column of values, given as the field or expression has them."""

    def make_text_column(self, texts: pa.StringArray) -> ValueColumn:
        """Return what `make_column` returns for the texts; none has a control character."""
        return self.make_column(texts.to_pylist())

    def make_number_column(self, numbers: NDArray[Any]) -> ValueColumn | None:
        """Return what `make_column` returns for numbers.

        Args:
            numbers: int64; or float64, where some or all were floats.

        Returns:
            None when it makes a difference which of them were integers.
        """
        return self.make_column(numbers.tolist()) if numbers.dtype == np.int64 else None

    def concat_columns(self, columns: list[ValueColumn]) -> ValueColumn:
        """Return the columns of messages that follow one another as one.

        It is called once for all the messages that `make_state` then gets, group after group.
        """
        values = np.concatenate([column.values for column in columns])
        return ValueColumn(values, concat_invalid(columns))

    @abstractmethod
    def make_state(self, column: ValueColumn, groups: Ints, count: int, arrivals: Ints) -> Any:
        """Return the state of `count` groups, from the column of all their messages.

        Args:
            column: the messages' values, in order of arrival.
            groups: by message.
            count: how many groups there are.
            arrivals: by message.
        """

    @abstractmethod
    def merge_states(
        self, states: list[Any], where: list[Ints], before: list[Ints], count: int
    ) -> Any:
        """Return the state of `count` groups from partial states of them, in order of arrival.

        Args:
            states: the partial states.
            where: by partial state, the new number of each of its groups.
            before: by partial state and new number, how many messages of the group come before.
            count: how many groups there are.
        """

    @abstractmethod
    def take_groups(self, state: Any, indices: Ints) -> Any:
        """Return the state of some groups, given by their indices in ascending order."""

    @abstractmethod
    def encode_state(self, state: Any) -> bytes:
        """Return the state of groups as bytes."""

    @abstractmethod
    def decode_state(self, data: bytes, shift: int) -> Any:
        """Return the state that was encoded; `shift` is added to arrival numbers."""

    @abstractmethod
    def result_of_group(self, state: Any, group: int) -> Any:
        """Return the aggregate's value in a group.

        Raises:
            UnplacedError: the aggregate fails in that group, in Benthos's words.
        """

    def results_of_groups(self, state: Any, groups: Ints) -> list[Any]:
        """Return the aggregate's value in each of some groups; raises as `result_of_group`."""
        return [self.result_of_group(state, group) for group in groups.tolist()]

    # Per-message form.

    @property
    def empty_state(self) -> Any:
        """The state of a window without messages."""
        return None

    def prepare(self, values: list[Any]) -> Sequence[Any]:
        """Return what `add` takes of each message, given as the field or expression has it."""
        return values

    @abstractmethod
    def add(self, state: Any, value: Any, arrival: int, place: int) -> Any:
        """Return the state with one more message; only the newest state may be added to.

        Args:
            state: the state so far.
            value: what `prepare` gave for the message.
            arrival: its arrival number, larger than those before.
            place: how many messages there were before.
        """

    def add_all(self, state: Any, values: Sequence[Any], span: RowSpan, place: int) -> Any:
        """Return the state with some more messages; see `add`.

        Args:
            state: the state so far.
            values: what `prepare` gave, for other messages too.
            span: which messages to add.
            place: how many messages there were before.
        """
        add = self.add
        first, last, arrivals = span
        for at in range(first, last):
            state = add(state, values[at], arrivals[at], place + at - first)
        return state

    def merge(self, one: Any, other: Any) -> Any:
        """Return the state of the messages of two windows, which may have arrived in turns."""
        if one is None or other is None:
            return other if one is None else one
        if type(one) is InvalidValue or type(other) is InvalidValue:
            return self._merge_invalid(one, other)
        return self._merge_valid(one, other)

    def _merge_invalid(self, one: Any, other: Any) -> Any:
        """Return the state of two windows, one of which has an invalid value at least."""
        invalid = [state for state in (one, other) if type(state) is InvalidValue]
        choose = max if self._reports_last else min
        return choose(invalid, key=lambda state: state.arrival)

    @abstractmethod
    def _merge_valid(self, one: Any, other: Any) -> Any:
        """Return the state of two windows that have messages, and no invalid value."""

    @abstractmethod
    def result_of(self, state: Any) -> Any:
        """Return the aggregate's value in a window.

        Raises:
            UnplacedError: the aggregate fails, in Benthos's words.
        """

    def dump(self, state: Any) -> Any:
        """Return the state of a window as a value of JSON."""
        if type(state) is InvalidValue:
            return list(state) if self._dumps_invalid_as_list else {"bad": state}
        return self._dump_valid(state)

    def _dump_valid(self, state: Any) -> Any:
        return state

    def load(self, plain: Any) -> Any:
        """Return the state that was dumped."""
        if self._dumps_invalid_as_list:
            return InvalidValue(*plain) if type(plain) is list else self._load_valid(plain)
        return InvalidValue(*plain["bad"]) if type(plain) is dict else self._load_valid(plain)

    def _load_valid(self, plain: Any) -> Any:
        return plain

    # Both forms.

    def _make_error(self, invalid: InvalidValue) -> QueryError:
        """Return the error of a group or window that has an invalid value."""
        return RecordedError(insert_index(invalid.text, invalid.place), sealed=True)


def select_values(column: ValueColumn, indices: Ints) -> ValueColumn:
    """Return the column of some of its messages, given by their indices in ascending order."""
    # `take` is a method of numpy's and of Arrow's arrays alike.
    values = column.values.take(indices) if len(column.values) else column.values
    if not column.invalid:
        return ValueColumn(values, size=column.size)
    place = {index: number for number, index in enumerate(indices.tolist())}
    invalid = [one._replace(place=place[one.place]) for one in column.invalid if one.place in place]
    return ValueColumn(values, invalid, column.size)


def split_invalid(values: Sequence[Any], neutral: Any) -> tuple[list[Any], list[InvalidValue]]:
    """Return values with a neutral one for each that is invalid; and these, with their places."""
    invalid = [
        value._replace(place=place)
        for place, value in enumerate(values)
        if type(value) is InvalidValue
    ]
    return [neutral if type(value) is InvalidValue else value for value in values], invalid


def join_invalid(values: list[Any], invalid: list[InvalidValue]) -> list[Any]:
    """Put invalid values that were split off back into the list of the others, and return it."""
    for one in invalid:
        values[one.place] = one
    return values


def concat_invalid(columns: Sequence[ValueColumn]) -> list[Any]:
    """Return the invalid values of columns of messages that follow one another."""
    invalid = []
    start = 0
    for column in columns:
        invalid += [one._replace(place=start + one.place) for one in column.invalid]
        start += len(column.values)
    return invalid


def find_invalid(
    column: ValueColumn, groups: Ints, arrivals: Ints, last: bool = False
) -> InvalidByGroup:
    """Return by group its first invalid value, or its last.

    Args:
        column: of all messages.
        groups: by message.
        arrivals: by message.
        last: return the last one.
    """
    if not column.invalid:
        return {}
    by_group: InvalidByGroup = {}
    for one in column.invalid:
        group = int(groups[one.place])
        if last or group not in by_group:
            by_group[group] = one
    places = rank_in_groups(groups)
    return {
        group: InvalidValue(int(places[one.place]), int(arrivals[one.place]), one.text)
        for group, one in by_group.items()
    }


def merge_invalid(
    states: Sequence[Any], where: list[Ints], before: list[Ints], last: bool = False
) -> InvalidByGroup:
    """Return by group its first invalid value, or its last, from partial states with `invalid`.

    The other arguments are those of `Accumulator.merge_states` and of `find_invalid`.
    """
    merged: InvalidByGroup = {}
    for state, numbers, offsets in zip(states, where, before, strict=True):
        for group, one in state.invalid.items():
            number = int(numbers[group])
            known = merged.get(number)
            if known is None or (one.arrival > known.arrival) == last:
                merged[number] = one._replace(place=one.place + int(offsets[number]))
    return merged


def take_by_group(by_group: dict[int, Any], indices: Ints) -> dict[int, Any]:
    """Return what some groups have, by their new numbers: their places among `indices`."""
    if not by_group:
        return {}
    number = {group: place for place, group in enumerate(indices.tolist())}
    return {number[group]: one for group, one in by_group.items() if group in number}


def find_entries(counts: Ints, indices: Ints) -> Ints:
    """Return the places of the entries of some groups, where each group has `counts` of them."""
    kept = np.zeros(len(counts), np.bool_)
    kept[indices] = True
    return np.flatnonzero(np.repeat(kept, counts))


def insert_index(text: str, place: int) -> str:
    """Return an error's text with the index of the value instead of its placeholder."""
    return text.replace(INDEX_PLACEHOLDER, str(place), 1)


def encode_invalid(invalid: InvalidByGroup) -> bytes:
    """Return invalid values by group as bytes; none for no value."""
    return dump_state_json([[group, *one] for group, one in invalid.items()]) if invalid else b""


def decode_invalid(data: bytes, shift: int) -> InvalidByGroup:
    """Return the invalid values that were encoded; `shift` is added to arrival numbers."""
    return {
        group: InvalidValue(place, arrival + shift, text)
        for group, place, arrival, text in load_state_json(data or b"[]")
    }


def encode_arrivals(arrivals: Ints, pack: Callable[[Ints], bytes] = pack_ints) -> bytes:
    """Return arrival numbers as bytes: the smallest, and the distances to it as `pack` has them."""
    first = int(arrivals.min()) if len(arrivals) else 0
    return first.to_bytes(_ARRIVAL_SIZE, "little", signed=True) + pack(arrivals - first)


def decode_arrivals(data: bytes, shift: int, unpack: Callable[[bytes], Ints] = unpack_ints) -> Ints:
    """Return the arrival numbers that were encoded, with `shift` added."""
    first = int.from_bytes(data[:_ARRIVAL_SIZE], "little", signed=True)
    return unpack(data[_ARRIVAL_SIZE:]) + (first + shift)


def rank_in_groups(groups: Ints) -> Ints:
    """Return for each message how many of its group come before it."""
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    starts = np.searchsorted(ordered, ordered, "left")
    places = np.empty(len(groups), np.int64)
    places[order] = np.arange(len(groups)) - starts
    return places
