"""The largest values, as `top_k` gives them."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamer.bloblang.errors import UnplacedError
from streamer.bloblang.message_expression import ElementQuery
from streamer.bloblang.methods.aggregates import MIXED_TYPES_ERROR, find_largest, sort_key
from streamer.window.aggregate.accumulator import (
    Accumulator,
    InvalidByGroup,
    InvalidValue,
    ValueColumn,
    concat_invalid,
    decode_arrivals,
    decode_invalid,
    encode_arrivals,
    encode_invalid,
    find_entries,
    find_invalid,
    join_invalid,
    merge_invalid,
    take_by_group,
)
from streamer.window.aggregate.query_values import query_values
from streamer.window.aggregate.ranked_values import (
    RankedValues,
    RankedValuesColumn,
    concat_ranked,
    make_rank_array,
)
from streamer.window.aggregate.value_codec import (
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

HAS_NUMBERS: Final = 1
HAS_TEXTS: Final = 2


class TopKState(NamedTuple):
    """The largest values by group.

    Attributes:
        counts: by group, how many there are.
        ends: by group, where its entries end.
        entries: of group after group, in descending order.
        arrivals: likewise, those of their messages.
        kinds: by group, `HAS_NUMBERS` and `HAS_TEXTS`, for all its values.
        invalid: the invalid values.
    """

    counts: Ints
    ends: Ints
    entries: RankedValues
    arrivals: Ints
    kinds: Ints
    invalid: InvalidByGroup


class RankedEntry(NamedTuple):
    """A value: what it is ordered by, its message's arrival, and the value."""

    rank: Any
    arrival: int
    item: Any


class TopKEntries(NamedTuple):
    """A window's largest values in descending order; `HAS_NUMBERS`, `HAS_TEXTS` for all."""

    kinds: int
    entries: tuple[RankedEntry, ...]


class TopKAccumulator(Accumulator):
    """Keeps so many of the largest values, or of those for which a query gives the most.

    A window's state is `TopKEntries`, or `InvalidValue`.
    """

    _dumps_invalid_as_list = True
    empty_state = TopKEntries(0, ())

    def __init__(
        self, number: int, origin: str, question: ElementQuery | None, distinct: bool = False
    ) -> None:
        """Prepare.

        Args:
            number: how many.
            origin: what error texts call the values.
            question: the query.
            distinct: keep equal values once, for `unique()` before; there is no query then.
        """
        self._distinct = distinct
        self._number = number
        self._origin = origin
        self._question = question

    def make_column(self, values: list[Any]) -> ValueColumn:
        """Return a column of ranked values."""
        if self._question is None and set(map(type, values)) in ({int}, {float}):
            ranks = make_rank_array(values)
            if ranks.dtype != np.object_:
                return ValueColumn(
                    RankedValuesColumn(RankedValues(ranks, None)), size=8 * len(values)
                )
        rank_values, invalid = self._rank(values)
        entries = RankedValues(make_rank_array(rank_values), make_object_array(values))
        size = estimate_size(values) + estimate_size(rank_values)
        return ValueColumn(RankedValuesColumn(entries), invalid, size)

    def _rank(self, values: list[Any]) -> tuple[list[Any], list[InvalidValue]]:
        return query_values(values, self._question, sort_key, self._origin, 0)

    def concat_columns(self, columns: list[ValueColumn]) -> ValueColumn:
        """Return a column of ranked values."""
        entries = concat_ranked([column.values.entries for column in columns])
        return ValueColumn(RankedValuesColumn(entries), concat_invalid(columns))

    def make_state(
        self, column: ValueColumn, groups: Ints, count: int, arrivals: Ints
    ) -> TopKState:
        """Choose the largest values of each group."""
        entries: RankedValues = column.values.entries
        texts = entries.find_texts()
        kinds = HAS_NUMBERS * (np.bincount(groups[~texts], minlength=count) > 0)
        kinds |= HAS_TEXTS * (np.bincount(groups[texts], minlength=count) > 0)
        invalid = find_invalid(column, groups, arrivals)
        return self._make_state(entries, groups, arrivals, kinds, invalid)

    def merge_states(
        self, states: list[TopKState], where: list[Ints], before: list[Ints], count: int
    ) -> TopKState:
        """Choose the largest values of each group's partial states."""
        kinds = np.zeros(count, np.int64)
        groups = []
        for state, numbers in zip(states, where, strict=True):
            kinds[numbers] |= state.kinds
            groups.append(np.repeat(numbers, state.counts))
        entries = concat_ranked([state.entries for state in states])
        arrivals = np.concatenate([state.arrivals for state in states])
        invalid = merge_invalid(states, where, before)
        return self._make_state(entries, np.concatenate(groups), arrivals, kinds, invalid)

    def _make_state(
        self,
        entries: RankedValues,
        groups: Ints,
        arrivals: Ints,
        kinds: Ints,
        invalid: InvalidByGroup,
    ) -> TopKState:
        descending, arrivals_before = self._order_keys(entries, arrivals)
        order = np.lexsort((arrivals_before, descending, groups))
        if self._distinct and len(order):
            ranks, of = descending[order], groups[order]
            same = (ranks[1:] == ranks[:-1]) & (of[1:] == of[:-1])
            order = order[np.concatenate(([True], ~same))]
        ordered = groups[order]
        places = np.arange(len(order)) - np.searchsorted(ordered, ordered)
        order = order[places < self._number]
        counts = np.bincount(groups[order], minlength=len(kinds))
        ends = np.cumsum(counts)
        return TopKState(counts, ends, entries.take(order), arrivals[order], kinds, invalid)

    def _order_keys(self, entries: RankedValues, arrivals: Ints) -> tuple[NDArray[Any], Ints]:
        """Return by entry a number by which those to keep come first, and one for equal ones."""
        return entries.descending_keys(), arrivals

    def take_groups(self, state: TopKState, indices: Ints) -> TopKState:
        """Return the state of some groups."""
        at = find_entries(state.counts, indices)
        counts = state.counts[indices]
        return TopKState(
            counts,
            np.cumsum(counts),
            state.entries.take(at),
            state.arrivals[at],
            state.kinds[indices],
            take_by_group(state.invalid, indices),
        )

    def encode_state(self, state: TopKState) -> bytes:
        """Write the entries, whose values only where they are not the ranks, and what is beside."""
        ranks, items = state.entries
        kind = {np.dtype(np.int64): b"i", np.dtype(np.float64): b"f"}.get(ranks.dtype, b"o")
        written = write_values(ranks.tolist()) if kind == b"o" else ranks.tobytes()
        return pack_strings(
            [
                pack_ints(state.counts),
                kind + written,
                b"" if items is None else write_values(items.tolist()),
                encode_arrivals(state.arrivals),
                pack_ints(state.kinds),
                encode_invalid(state.invalid),
            ]
        )

    def decode_state(self, data: bytes, shift: int) -> TopKState:
        """Read what `encode_state` wrote."""
        counts, ranks, items, arrivals, kinds, invalid = unpack_strings(data)
        rank_values: NDArray[Any]
        if ranks[:1] == b"o":
            rank_values = make_object_array(read_values(ranks[1:]))
        else:
            kind: Any = np.int64 if ranks[:1] == b"i" else np.float64
            rank_values = np.frombuffer(ranks[1:], kind)
        of_group = unpack_ints(counts)
        return TopKState(
            of_group,
            np.cumsum(of_group),
            RankedValues(rank_values, make_object_array(read_values(items)) if items else None),
            decode_arrivals(arrivals, shift),
            unpack_ints(kinds),
            decode_invalid(invalid, shift),
        )

    def result_of_group(self, state: TopKState, group: int) -> list[Any]:
        """Return a group's largest values."""
        if group in state.invalid:
            raise self._make_error(state.invalid[group])
        self._check_kinds(int(state.kinds[group]))
        end = int(state.ends[group])
        span = slice(end - int(state.counts[group]), end)
        ranks, items = state.entries
        largest: list[Any] = (ranks if items is None else items)[span].tolist()
        return largest

    def prepare(self, values: list[Any]) -> Sequence[Any]:
        """Return for each value its rank and itself, or `InvalidValue`."""
        ranks, invalid = self._rank(values)
        return join_invalid(list(zip(ranks, values, strict=True)), invalid)

    def add(self, state: Any, value: Any, arrival: int, place: int) -> Any:
        """Add a value if it is one of the largest; the first invalid one stays."""
        if type(state) is InvalidValue:
            return state
        if type(value) is InvalidValue:
            return InvalidValue(place, arrival, value.text)
        ranked, item = value
        kinds, entries = state
        kind = HAS_TEXTS if type(ranked) is str else HAS_NUMBERS
        if kinds | kind == kinds and len(entries) == self._number and ranked <= entries[-1].rank:
            return state
        return self._keep_largest(kinds | kind, (*entries, RankedEntry(ranked, arrival, item)))

    def _merge_valid(self, one: TopKEntries, other: TopKEntries) -> TopKEntries:
        entries = sorted((*one.entries, *other.entries), key=lambda entry: entry.arrival)
        return self._keep_largest(one.kinds | other.kinds, tuple(entries))

    def _keep_largest(self, kinds: int, entries: tuple[RankedEntry, ...]) -> TopKEntries:
        if kinds == HAS_NUMBERS | HAS_TEXTS:
            return TopKEntries(kinds, ())
        kept_entries: list[RankedEntry] = []
        for at in find_largest([entry.rank for entry in entries], len(entries)):
            if not self._distinct or not kept_entries or kept_entries[-1].rank != entries[at].rank:
                kept_entries.append(entries[at])
        return TopKEntries(kinds, tuple(kept_entries[: self._number]))

    def result_of(self, state: Any) -> list[Any]:
        """Return a window's largest values."""
        if type(state) is InvalidValue:
            raise self._make_error(state)
        self._check_kinds(state.kinds)
        return [entry.item for entry in state.entries]

    def _check_kinds(self, kinds: int) -> None:
        if kinds == HAS_NUMBERS | HAS_TEXTS:
            origin = "method unique" if self._distinct else self._origin
            raise UnplacedError(f"{origin}: {MIXED_TYPES_ERROR}")

    def _dump_valid(self, state: TopKEntries) -> Any:
        if not state.entries:
            return state.kinds
        ranks, arrivals, items = zip(*state.entries, strict=True)
        written = base64.b64encode(write_values([*ranks, *items])).decode()
        return {"kinds": state.kinds, "arrivals": arrivals, "values": written}

    def _load_valid(self, plain: Any) -> TopKEntries:
        if type(plain) is int:
            return TopKEntries(plain, ())
        values, arrivals = read_values(base64.b64decode(plain["values"])), plain["arrivals"]
        count = len(arrivals)
        entries = map(RankedEntry, values[:count], arrivals, values[count:])
        return TopKEntries(plain["kinds"], tuple(entries))
