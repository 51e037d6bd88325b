"""What keeps one part of a mapping up to date: the protocol, and messages that have no value.

Work is done on columns: a value for each of many messages, which lie in order of arrival, and
beside them the number of the group that each message belongs to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from streamer.bloblang.compiler.element import AT
from streamer.window.ints import Ints
from streamer.window.plain import dump_plain, load_plain


class Spoiler(NamedTuple):
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


Bad = dict[int, Spoiler]
"""By group, the one of its messages that spoils a part."""


class Column(NamedTuple):
    """The values of some messages.

    Attributes:
        values: one for each, as an array; which kind of, the accumulator knows.
        bad: the messages that have no value, as `Spoiler` or what has a place like it.
        size: about how many bytes it holds.
    """

    values: Any
    bad: Sequence[Any] = ()
    size: int = 0


def selected(column: Column, chosen: Ints) -> Column:
    """Return the column of some of its messages, given by their indices in ascending order."""
    # `take` is a method of numpy's and of Arrow's arrays alike.
    values = column.values.take(chosen) if len(column.values) else column.values
    if not column.bad:
        return Column(values, size=column.size)
    place = {index: number for number, index in enumerate(chosen.tolist())}
    bad = [one._replace(place=place[one.place]) for one in column.bad if one.place in place]
    return Column(values, bad, column.size)


def joined_bad(columns: Sequence[Column], sizes: Sequence[int]) -> list[Any]:
    """Return the bad messages of columns that follow one another; `sizes` count their messages."""
    bad = []
    start = 0
    for column, size in zip(columns, sizes, strict=True):
        bad += [one._replace(place=start + one.place) for one in column.bad]
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

    def state(self, column: Column, groups: Ints, count: int, arrivals: Ints) -> Any:
        """Return the state of `count` groups, from the column of all their messages.

        Args:
            column: what the messages bring, in the order of their arrival.
            groups: by message.
            count: how many groups there are.
            arrivals: by message.
        """

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

    def read(self, data: bytes, shift: int) -> Any:
        """Return the state that was written; `shift` is added to arrival numbers."""

    def value(self, state: Any, group: int) -> Any:
        """Return the part's value in a group.

        Raises:
            UnplacedError: the part fails in that group, in Benthos's words.
        """


def bad_of(column: Column, groups: Ints, arrivals: Ints, last: bool) -> Bad:
    """Return for each group the message that spoils it: the first, or the last.

    Args:
        column: of all messages.
        groups: by message.
        arrivals: by message.
        last: which one counts.
    """
    if not column.bad:
        return {}
    found: Bad = {}
    for one in column.bad:
        group = int(groups[one.place])
        if last or group not in found:
            found[group] = one
    places = places_in_groups(groups)
    return {
        group: Spoiler(int(places[one.place]), int(arrivals[one.place]), one.text)
        for group, one in found.items()
    }


def merged_bad(bad: list[Bad], where: list[Ints], before: list[Ints], last: bool) -> Bad:
    """Return for each group the message that spoils it, from those of parts of the group."""
    found: Bad = {}
    for each, numbers, offsets in zip(bad, where, before, strict=True):
        for group, one in each.items():
            number = int(numbers[group])
            known = found.get(number)
            if known is None or (one.arrival > known.arrival) == last:
                found[number] = one._replace(place=one.place + int(offsets[number]))
    return found


def placed(text: str, place: int) -> str:
    """Return an error's text with the index that it lacked."""
    return text.replace(AT, str(place), 1)


def write_bad(bad: Bad) -> bytes:
    """Return spoilt groups as bytes."""
    return dump_plain([[group, *one] for group, one in bad.items()])


def read_bad(data: bytes, shift: int) -> Bad:
    """Return the spoilt groups that were written; `shift` is added to arrival numbers."""
    return {
        group: Spoiler(place, arrival + shift, text)
        for group, place, arrival, text in load_plain(data)
    }


def places_in_groups(groups: Ints) -> Ints:
    """Return for each message how many of its group come before it."""
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    starts = np.searchsorted(ordered, ordered, "left")
    places = np.empty(len(groups), np.int64)
    places[order] = np.arange(len(groups)) - starts
    return places
