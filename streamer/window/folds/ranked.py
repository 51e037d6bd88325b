"""The largest values, as `top_k` gives them."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamer.bloblang.element import Question
from streamer.bloblang.errors import ToldError, UnplacedError
from streamer.bloblang.methods.aggregates import MIXED, largest, rank
from streamer.window.folds.asked import asked
from streamer.window.folds.part import (
    Bad,
    Column,
    bad_of,
    joined_bad,
    merged_bad,
    placed,
    read_bad,
    write_bad,
)
from streamer.window.folds.texts import array_of, unmarked_text
from streamer.window.folds.values import Objects, objects, read_values, size_of, write_values
from streamer.window.ints import Ints, pack_ints, pack_strings, unpack_ints, unpack_strings

_NUMBERS: Final = 1
_TEXTS: Final = 2


class Entries(NamedTuple):
    """Some values.

    Attributes:
        ranks: what they are ordered by: int64, float64, or objects.
        items: the values; None when they are the ranks.
    """

    ranks: NDArray[Any]
    items: Objects | None

    def take(self, chosen: Ints) -> Entries:
        """Return some of them, given by their indices."""
        return Entries(self.ranks[chosen], None if self.items is None else self.items[chosen])

    def order(self) -> Ints:
        """Return what is the less, the larger a rank is."""
        if self.ranks.dtype == np.int64:
            return ~self.ranks
        if self.ranks.dtype == np.float64:
            # What is not a number comes last.
            return -self.ranks
        places = np.empty(len(self.ranks), np.int64)
        texts = self.texts()
        places[texts] = _of_texts(self.ranks[texts])
        places[~texts] = _of_numbers(self.ranks[~texts].tolist())
        return places

    def texts(self) -> NDArray[np.bool_]:
        """Return which of them are texts."""
        if self.ranks.dtype != np.object_:
            return np.zeros(len(self.ranks), bool)
        return np.fromiter((type(each) is str for each in self.ranks), bool, len(self.ranks))


def _of_texts(texts: Objects) -> Ints:
    encoded = array_of(texts.tolist()).dictionary_encode()
    table = list(map(unmarked_text, encoded.dictionary.to_pylist()))
    number = np.empty(len(table), np.int64)
    number[largest(table, len(table))] = np.arange(len(table))
    places: Ints = number[encoded.indices.to_numpy(zero_copy_only=False)]
    return places


def _of_numbers(numbers: list[Any]) -> list[int]:
    places = [0] * len(numbers)
    number = 0
    before: Any = None
    for at in largest(numbers, len(numbers)):
        number += numbers[at] != before
        before = numbers[at]
        places[at] = number
    return places


def _joined(entries: list[Entries]) -> Entries:
    kinds = {each.ranks.dtype for each in entries}
    ranks = [each.ranks if len(kinds) == 1 else each.ranks.astype(object) for each in entries]
    if all(each.items is None for each in entries):
        return Entries(np.concatenate(ranks), None)
    items = [objects(e.ranks.tolist()) if e.items is None else e.items for e in entries]
    return Entries(np.concatenate(ranks), np.concatenate(items))


class EntriesColumn:
    """A column of entries, of which some can be taken."""

    def __init__(self, entries: Entries) -> None:
        self.entries = entries

    def __len__(self) -> int:
        return len(self.entries.ranks)

    def take(self, chosen: Ints) -> EntriesColumn:
        """Return some of them, given by their indices."""
        return EntriesColumn(self.entries.take(chosen))


class RankedState(NamedTuple):
    """The largest values by group.

    Attributes:
        counts: by group, how many there are.
        ends: by group, where its entries end.
        entries: of group after group, in descending order.
        arrivals: likewise, those of their messages.
        kinds: by group, whether there were `_NUMBERS` and `_TEXTS` among all its values.
        bad: the groups that are spoilt.
    """

    counts: Ints
    ends: Ints
    entries: Entries
    arrivals: Ints
    kinds: Ints
    bad: Bad


class Ranked:
    """Keeps so many of the largest values, or of those for which a query gives the most."""

    def __init__(
        self, number: int, origin: str, question: Question | None, distinct: bool = False
    ) -> None:
        """Take how many, what error texts call the values, the query, and whether equals are one.

        Equal values are one where `unique()` stands before; then there is no query.
        """
        self._distinct = distinct
        self._number = number
        self._origin = origin
        self._question = question

    def column(self, values: list[Any]) -> Column:
        """See `part.Accumulator`."""
        kinds = set(map(type, values))
        if self._question is None and kinds in ({int}, {float}):
            ranks = _numbers(values)
            return Column(EntriesColumn(Entries(ranks, None)), size=8 * len(values))
        found, bad = asked(values, self._question, rank, self._origin, 0)
        kinds = set(map(type, found))
        ranks = _numbers(found) if kinds in ({int}, {float}) else objects(found)
        entries = Entries(ranks, objects(values))
        return Column(EntriesColumn(entries), bad, size_of(values) + size_of(found))

    def gathered(self, columns: list[Column]) -> Column:
        """See `part.Accumulator`."""
        found: list[EntriesColumn] = [column.values for column in columns]
        bad = joined_bad(columns, [len(each) for each in found])
        return Column(EntriesColumn(_joined([each.entries for each in found])), bad)

    def state(self, column: Column, groups: Ints, count: int, arrivals: Ints) -> RankedState:
        """See `part.Accumulator`."""
        entries: Entries = column.values.entries
        texts = entries.texts()
        kinds = _NUMBERS * (np.bincount(groups[~texts], minlength=count) > 0)
        kinds |= _TEXTS * (np.bincount(groups[texts], minlength=count) > 0)
        bad = bad_of(column, groups, arrivals, last=False)
        return self._state(entries, groups, arrivals, kinds, bad)

    def merged(
        self, states: list[RankedState], where: list[Ints], before: list[Ints], count: int
    ) -> RankedState:
        """See `part.Accumulator`."""
        kinds = np.zeros(count, np.int64)
        groups = []
        for state, numbers in zip(states, where, strict=True):
            kinds[numbers] |= state.kinds
            groups.append(np.repeat(numbers, state.counts))
        entries = _joined([state.entries for state in states])
        arrivals = np.concatenate([state.arrivals for state in states])
        bad = merged_bad([state.bad for state in states], where, before, last=False)
        return self._state(entries, np.concatenate(groups), arrivals, kinds, bad)

    def _state(
        self, entries: Entries, groups: Ints, arrivals: Ints, kinds: Ints, bad: Bad
    ) -> RankedState:
        descending = entries.order()
        order = np.lexsort((arrivals, descending, groups))
        if self._distinct and len(order):
            same = (np.diff(descending[order]) == 0) & (np.diff(groups[order]) == 0)
            order = order[np.concatenate(([True], ~same))]
        ordered = groups[order]
        places = np.arange(len(order)) - np.searchsorted(ordered, ordered)
        order = order[places < self._number]
        counts = np.bincount(groups[order], minlength=len(kinds))
        ends = np.cumsum(counts)
        return RankedState(counts, ends, entries.take(order), arrivals[order], kinds, bad)

    def write(self, state: RankedState) -> bytes:
        """See `part.Accumulator`."""
        ranks, items = state.entries
        kind = {np.dtype(np.int64): b"i", np.dtype(np.float64): b"f"}.get(ranks.dtype, b"o")
        written = write_values(ranks.tolist()) if kind == b"o" else ranks.tobytes()
        first = int(state.arrivals.min()) if len(state.arrivals) else 0
        start = first.to_bytes(8, "little", signed=True)
        return pack_strings(
            [
                pack_ints(state.counts),
                kind + written,
                b"" if items is None else write_values(items.tolist()),
                start + pack_ints(state.arrivals - first),
                pack_ints(state.kinds),
                write_bad(state.bad) if state.bad else b"",
            ]
        )

    def read(self, data: bytes, shift: int) -> RankedState:
        """See `part.Accumulator`."""
        counts, ranks, items, arrivals, kinds, bad = unpack_strings(data)
        found: NDArray[Any]
        if ranks[:1] == b"o":
            found = objects(read_values(ranks[1:]))
        else:
            kind: Any = np.int64 if ranks[:1] == b"i" else np.float64
            found = np.frombuffer(ranks[1:], kind)
        first = int.from_bytes(arrivals[:8], "little", signed=True) + shift
        of_group = unpack_ints(counts)
        return RankedState(
            of_group,
            np.cumsum(of_group),
            Entries(found, objects(read_values(items)) if items else None),
            unpack_ints(arrivals[8:]) + first,
            unpack_ints(kinds),
            read_bad(bad, shift) if bad else {},
        )

    def value(self, state: RankedState, group: int) -> list[Any]:
        """See `part.Accumulator`."""
        if group in state.bad:
            place, _, text = state.bad[group]
            raise ToldError(placed(text, place), sealed=True)
        if state.kinds[group] == _NUMBERS | _TEXTS:
            origin = "method unique" if self._distinct else self._origin
            raise UnplacedError(f"{origin}: {MIXED}")
        end = int(state.ends[group])
        span = slice(end - int(state.counts[group]), end)
        ranks, items = state.entries
        found: list[Any] = (ranks if items is None else items)[span].tolist()
        return found


def _numbers(values: list[Any]) -> NDArray[Any]:
    if type(values[0]) is float:
        return np.array(values, np.float64)
    try:
        return np.array(values, np.int64)
    except OverflowError:
        return objects(values)
