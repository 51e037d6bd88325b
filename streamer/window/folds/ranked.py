"""The largest values, as `top_k` gives them."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamer.bloblang.element import Question
from streamer.bloblang.errors import ToldError, UnplacedError
from streamer.bloblang.methods.aggregates import MIXED, rank
from streamer.window.folds.asked import asked
from streamer.window.folds.entries import (
    Entries,
    EntriesColumn,
    array_of_ranks,
    joined_entries,
)
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
from streamer.window.folds.values import objects, read_values, size_of, write_values
from streamer.window.ints import Ints, pack_ints, pack_strings, unpack_ints, unpack_strings

_NUMBERS: Final = 1
_TEXTS: Final = 2


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
            ranks = array_of_ranks(values)
            if ranks.dtype != np.object_:
                return Column(EntriesColumn(Entries(ranks, None)), size=8 * len(values))
        found, bad = asked(values, self._question, rank, self._origin, 0)
        entries = Entries(array_of_ranks(found), objects(values))
        return Column(EntriesColumn(entries), bad, size_of(values) + size_of(found))

    def gathered(self, columns: list[Column]) -> Column:
        """See `part.Accumulator`."""
        found: list[EntriesColumn] = [column.values for column in columns]
        bad = joined_bad(columns, [len(each) for each in found])
        return Column(EntriesColumn(joined_entries([each.entries for each in found])), bad)

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
        entries = joined_entries([state.entries for state in states])
        arrivals = np.concatenate([state.arrivals for state in states])
        bad = merged_bad([state.bad for state in states], where, before, last=False)
        return self._state(entries, np.concatenate(groups), arrivals, kinds, bad)

    def _state(
        self, entries: Entries, groups: Ints, arrivals: Ints, kinds: Ints, bad: Bad
    ) -> RankedState:
        descending = entries.order()
        order = np.lexsort((arrivals, descending, groups))
        if self._distinct and len(order):
            ranks, of = descending[order], groups[order]
            same = (ranks[1:] == ranks[:-1]) & (of[1:] == of[:-1])
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
