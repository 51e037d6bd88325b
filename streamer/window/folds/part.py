"""What keeps one part of a mapping up to date: the protocol, and messages that have no value.

Work is done on columns: a value for each of many messages, which lie in order of arrival, and
beside them the number of the group that each message belongs to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from streamer.window.ints import Ints

Bad = dict[int, tuple[int, str]]
"""By group, one message that spoils a part: its index in the group, and what is wrong with it."""


class Column(NamedTuple):
    """The values of some messages.

    Attributes:
        values: one for each, as an array; which kind of, the accumulator knows.
        bad: the messages that have no value: index, and what is wrong.
        size: about how many bytes it holds.
    """

    values: Any
    bad: Sequence[tuple[int, str]] = ()
    size: int = 0


def selected(column: Column, chosen: Ints) -> Column:
    """Return the column of some of its messages, given by their indices in ascending order."""
    values = column.values[chosen] if len(column.values) else column.values
    if not column.bad:
        return Column(values)
    place = {index: number for number, index in enumerate(chosen.tolist())}
    return Column(values, [(place[index], text) for index, text in column.bad if index in place])


def joined_bad(columns: Sequence[Column], sizes: Sequence[int]) -> list[tuple[int, str]]:
    """Return the bad messages of columns that follow one another; `sizes` count their messages."""
    bad = []
    start = 0
    for column, size in zip(columns, sizes, strict=True):
        bad += [(start + index, text) for index, text in column.bad]
        start += size
    return bad


class Accumulator(Protocol):
    """Keeps one part up to date; `State` is what it has come to in each of some groups."""

    def column(self, values: list[Any]) -> Column:
        """Return what messages bring, from what the part's field holds in each."""

    def gathered(self, columns: list[Column]) -> Column:
        """Return the columns of messages that follow one another as one, whose values are numbers.

        It is asked for once for what `state` is then given parts of.
        """

    def state(self, column: Column, groups: Ints, count: int) -> Any:
        """Return the state of `count` groups, from the column of all their messages."""

    def merged(self, states: list[Any], where: list[Ints], before: list[Ints], count: int) -> Any:
        """Return the state of `count` groups from states of parts of them, in order of arrival.

        Args:
            states: the states.
            where: for each, the new number of every group of it.
            before: for each, by new number, how many messages of the group come before.
            count: how many groups there are.
        """

    def write(self, state: Any) -> bytes:
        """Return a state as bytes."""

    def read(self, data: bytes) -> Any:
        """Return the state that was written."""

    def value(self, state: Any, group: int) -> Any:
        """Return the part's value in a group.

        Raises:
            UnplacedError: the part fails in that group, in Benthos's words.
        """


def bad_of(column: Column, groups: Ints, last: bool) -> Bad:
    """Return for each group the message that spoils it: the first, or the last.

    Args:
        column: of all messages.
        groups: by message.
        last: which one counts.
    """
    if not column.bad:
        return {}
    found: dict[int, tuple[int, str]] = {}
    for index, text in column.bad:
        group = int(groups[index])
        if last or group not in found:
            found[group] = (index, text)
    places = _places_in_groups(groups)
    return {group: (int(places[at]), text) for group, (at, text) in found.items()}


def merged_bad(bad: list[Bad], where: list[Ints], before: list[Ints], last: bool) -> Bad:
    """Return for each group the message that spoils it, from those of parts of the group."""
    found: Bad = {}
    for each, numbers, offsets in zip(bad, where, before, strict=True):
        for group, (place, text) in each.items():
            number = int(numbers[group])
            if last or number not in found:
                found[number] = (place + int(offsets[number]), text)
    return found


def _places_in_groups(groups: Ints) -> Ints:
    """Return for each message how many of its group come before it."""
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    starts = np.searchsorted(ordered, ordered, "left")
    places = np.empty(len(groups), np.int64)
    places[order] = np.arange(len(groups)) - starts
    return places
