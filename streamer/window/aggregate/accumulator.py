"""What keeps one part of a mapping up to date: the protocol, and messages that have no value.

Work is done on columns: a value for each of many messages, which lie in order of arrival, and
beside them the number of the group that each message belongs to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from streamer.bloblang.compiler.message_expression import INDEX_PLACEHOLDER
from streamer.window.contract.state_json import dump_state_json, load_state_json
from streamer.window.settings.int_codec import Ints


class InvalidValue(NamedTuple):
    """A message that spoils a part of its group.

    Attributes:
        place: its index in its column, or in its group. In a group it is exact as long as the
            group's packs do not overlap in their arrival numbers.
        arrival: its arrival number.
        text: what is wrong with it.
    """

    place: int
    arrival: int
    text: str


InvalidByGroup = dict[int, InvalidValue]
"""By group, the one of its messages that spoils a part."""


class ValueColumn(NamedTuple):
    """The values of some messages.

    Attributes:
        values: one for each, as an array; which kind of, the accumulator knows.
        invalid: the messages that have no value, as `InvalidValue` or what has a place like it.
        size: about how many bytes it holds.
    """

    values: Any
    invalid: Sequence[Any] = ()
    size: int = 0


def select_values(column: ValueColumn, indices: Ints) -> ValueColumn:
    """Return the column of some of its messages, given by their indices in ascending order."""
    # `take` is a method of numpy's and of Arrow's arrays alike.
    values = column.values.take(indices) if len(column.values) else column.values
    if not column.invalid:
        return ValueColumn(values, size=column.size)
    place = {index: number for number, index in enumerate(indices.tolist())}
    bad = [one._replace(place=place[one.place]) for one in column.invalid if one.place in place]
    return ValueColumn(values, bad, column.size)


def concat_invalid(columns: Sequence[ValueColumn], sizes: Sequence[int]) -> list[Any]:
    """Return the bad messages of columns that follow one another; `sizes` count their messages."""
    bad = []
    start = 0
    for column, size in zip(columns, sizes, strict=True):
        bad += [one._replace(place=start + one.place) for one in column.invalid]
        start += size
    return bad


class Accumulator(Protocol):
    """Keeps one part up to date; `State` is what it has come to in each of some groups."""

    def make_column(self, values: list[Any]) -> ValueColumn:
        """Return what messages bring, from what the part's field holds in each."""

    def concat_columns(self, columns: list[ValueColumn]) -> ValueColumn:
        """Return the columns of messages that follow one another as one, whose values are numbers.

        It is asked for once for what `state` is then given parts of.
        """

    def make_state(self, column: ValueColumn, groups: Ints, count: int, arrivals: Ints) -> Any:
        """Return the state of `count` groups, from the column of all their messages.

        Args:
            column: what the messages bring, in the order of their arrival.
            groups: by message.
            count: how many groups there are.
            arrivals: by message.
        """

    def merge_states(
        self, states: list[Any], where: list[Ints], before: list[Ints], count: int
    ) -> Any:
        """Return the state of `count` groups from states of parts of them, in order of arrival.

        Args:
            states: the states.
            where: for each, the new number of every group of it.
            before: for each, by new number, how many messages of the group come before.
            count: how many groups there are.
        """

    def encode_state(self, state: Any) -> bytes:
        """Return a state as bytes."""

    def decode_state(self, data: bytes, shift: int) -> Any:
        """Return the state that was written; `shift` is added to arrival numbers."""

    def result_of(self, state: Any, group: int) -> Any:
        """Return the part's value in a group.

        Raises:
            UnplacedError: the part fails in that group, in Benthos's words.
        """


def find_invalid(column: ValueColumn, groups: Ints, arrivals: Ints, last: bool) -> InvalidByGroup:
    """Return for each group the message that spoils it: the first, or the last.

    Args:
        column: of all messages.
        groups: by message.
        arrivals: by message.
        last: which one counts.
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
    invalid: list[InvalidByGroup], where: list[Ints], before: list[Ints], last: bool
) -> InvalidByGroup:
    """Return for each group the message that spoils it, from those of parts of the group."""
    merged: InvalidByGroup = {}
    for each, numbers, offsets in zip(invalid, where, before, strict=True):
        for group, one in each.items():
            number = int(numbers[group])
            known = merged.get(number)
            if known is None or (one.arrival > known.arrival) == last:
                merged[number] = one._replace(place=one.place + int(offsets[number]))
    return merged


def insert_index(text: str, place: int) -> str:
    """Return an error's text with the index that it lacked."""
    return text.replace(INDEX_PLACEHOLDER, str(place), 1)


def encode_invalid(invalid: InvalidByGroup) -> bytes:
    """Return spoilt groups as bytes."""
    return dump_state_json([[group, *one] for group, one in invalid.items()])


def decode_invalid(data: bytes, shift: int) -> InvalidByGroup:
    """Return the spoilt groups that were written; `shift` is added to arrival numbers."""
    return {
        group: InvalidValue(place, arrival + shift, text)
        for group, place, arrival, text in load_state_json(data)
    }


def rank_in_groups(groups: Ints) -> Ints:
    """Return for each message how many of its group come before it."""
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    starts = np.searchsorted(ordered, ordered, "left")
    places = np.empty(len(groups), np.int64)
    places[order] = np.arange(len(groups)) - starts
    return places
