"""The largest values, as `top_k` gives them."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamer.bloblang.errors import RecordedError, UnplacedError
from streamer.bloblang.message_expression import ElementQuery
from streamer.bloblang.methods.aggregates import MIXED_TYPES_ERROR, sort_key
from streamer.window.aggregate.accumulator import (
    InvalidByGroup,
    ValueColumn,
    concat_invalid,
    decode_invalid,
    encode_invalid,
    find_invalid,
    insert_index,
    merge_invalid,
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

_HAS_NUMBERS: Final = 1
_HAS_TEXTS: Final = 2


class TopKState(NamedTuple):
    """The largest values by group.

    Attributes:
        counts: by group, how many there are.
        ends: by group, where its entries end.
        entries: of group after group, in descending order.
        arrivals: likewise, those of their messages.
        kinds: by group, whether there were `_NUMBERS` and `_TEXTS` among all its values.
        invalid: the groups that are spoilt.
    """

    counts: Ints
    ends: Ints
    entries: RankedValues
    arrivals: Ints
    kinds: Ints
    invalid: InvalidByGroup


class TopKAggregate:
    """Keeps so many of the largest values, or of those for which a query gives the most."""

    def __init__(
        self, number: int, origin: str, question: ElementQuery | None, distinct: bool = False
    ) -> None:
        """Take how many, what error texts call the values, the query, and whether equals are one.

        Equal values are one where `unique()` stands before; then there is no query.
        """
        self._distinct = distinct
        self._number = number
        self._origin = origin
        self._question = question

    def make_column(self, values: list[Any]) -> ValueColumn:
        """See `part.Accumulator`."""
        kinds = set(map(type, values))
        if self._question is None and kinds in ({int}, {float}):
            ranks = make_rank_array(values)
            if ranks.dtype != np.object_:
                return ValueColumn(
                    RankedValuesColumn(RankedValues(ranks, None)), size=8 * len(values)
                )
        rank_values, bad = query_values(values, self._question, sort_key, self._origin, 0)
        entries = RankedValues(make_rank_array(rank_values), make_object_array(values))
        return ValueColumn(
            RankedValuesColumn(entries), bad, estimate_size(values) + estimate_size(rank_values)
        )

    def concat_columns(self, columns: list[ValueColumn]) -> ValueColumn:
        """See `part.Accumulator`."""
        parts: list[RankedValuesColumn] = [column.values for column in columns]
        bad = concat_invalid(columns, [len(each) for each in parts])
        return ValueColumn(RankedValuesColumn(concat_ranked([each.entries for each in parts])), bad)

    def make_state(
        self, column: ValueColumn, groups: Ints, count: int, arrivals: Ints
    ) -> TopKState:
        """See `part.Accumulator`."""
        entries: RankedValues = column.values.entries
        texts = entries.find_texts()
        kinds = _HAS_NUMBERS * (np.bincount(groups[~texts], minlength=count) > 0)
        kinds |= _HAS_TEXTS * (np.bincount(groups[texts], minlength=count) > 0)
        bad = find_invalid(column, groups, arrivals, last=False)
        return self._make_state(entries, groups, arrivals, kinds, bad)

    def merge_states(
        self, states: list[TopKState], where: list[Ints], before: list[Ints], count: int
    ) -> TopKState:
        """See `part.Accumulator`."""
        kinds = np.zeros(count, np.int64)
        groups = []
        for state, numbers in zip(states, where, strict=True):
            kinds[numbers] |= state.kinds
            groups.append(np.repeat(numbers, state.counts))
        entries = concat_ranked([state.entries for state in states])
        arrivals = np.concatenate([state.arrivals for state in states])
        bad = merge_invalid([state.invalid for state in states], where, before, last=False)
        return self._make_state(entries, np.concatenate(groups), arrivals, kinds, bad)

    def _make_state(
        self, entries: RankedValues, groups: Ints, arrivals: Ints, kinds: Ints, bad: InvalidByGroup
    ) -> TopKState:
        descending = entries.descending_keys()
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
        return TopKState(counts, ends, entries.take(order), arrivals[order], kinds, bad)

    def encode_state(self, state: TopKState) -> bytes:
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
                encode_invalid(state.invalid) if state.invalid else b"",
            ]
        )

    def decode_state(self, data: bytes, shift: int) -> TopKState:
        """See `part.Accumulator`."""
        counts, ranks, items, arrivals, kinds, bad = unpack_strings(data)
        rank_values: NDArray[Any]
        if ranks[:1] == b"o":
            rank_values = make_object_array(read_values(ranks[1:]))
        else:
            kind: Any = np.int64 if ranks[:1] == b"i" else np.float64
            rank_values = np.frombuffer(ranks[1:], kind)
        first = int.from_bytes(arrivals[:8], "little", signed=True) + shift
        of_group = unpack_ints(counts)
        return TopKState(
            of_group,
            np.cumsum(of_group),
            RankedValues(rank_values, make_object_array(read_values(items)) if items else None),
            unpack_ints(arrivals[8:]) + first,
            unpack_ints(kinds),
            decode_invalid(bad, shift) if bad else {},
        )

    def result_of(self, state: TopKState, group: int) -> list[Any]:
        """See `part.Accumulator`."""
        if group in state.invalid:
            place, _, text = state.invalid[group]
            raise RecordedError(insert_index(text, place), sealed=True)
        if state.kinds[group] == _HAS_NUMBERS | _HAS_TEXTS:
            origin = "method unique" if self._distinct else self._origin
            raise UnplacedError(f"{origin}: {MIXED_TYPES_ERROR}")
        end = int(state.ends[group])
        span = slice(end - int(state.counts[group]), end)
        ranks, items = state.entries
        largest: list[Any] = (ranks if items is None else items)[span].tolist()
        return largest
