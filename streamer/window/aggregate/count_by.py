"""How often each key occurs, as `count_by` says it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from streamer.bloblang.errors import RecordedError
from streamer.bloblang.message_expression import ElementQuery
from streamer.bloblang.methods.aggregates import format_key
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
from streamer.window.aggregate.string_columns import (
    drop_unused_texts,
    make_text_array,
    merge_tables,
    read_table,
    unmark_text,
    write_table,
)
from streamer.window.settings.int_codec import (
    Ints,
    pack_deltas,
    pack_ints,
    pack_strings,
    unpack_deltas,
    unpack_ints,
    unpack_strings,
)


class CountByState(NamedTuple):
    """Numbers by group and key.

    Attributes:
        table: the keys, as marked texts.
        counts: by group, how many keys it has.
        ends: by group, where its keys end.
        ids: of group after group, the places of its keys in the table.
        times: likewise, how often they occur.
        invalid: the groups that are spoilt.
    """

    table: pa.Array
    counts: Ints
    ends: Ints
    ids: Ints
    times: Ints
    invalid: InvalidByGroup


class CountByAggregate:
    """Counts values by their text, or by that of what a query gives for them."""

    def __init__(self, origin: str, question: ElementQuery | None) -> None:
        """Take what error texts call the values, and the query."""
        self._origin = origin
        self._question = question
        self._table: pa.Array = pa.array([], pa.string())

    def make_column(self, values: list[Any]) -> ValueColumn:
        """See `part.Accumulator`; the column is one of marked texts."""
        if self._question is None and set(map(type, values)) == {str}:
            texts = make_text_array(values)
            return ValueColumn(texts, size=texts.nbytes)
        keys, bad = query_values(values, self._question, format_key, self._origin, "")
        texts = make_text_array(keys)
        return ValueColumn(texts, bad, texts.nbytes)

    def concat_columns(self, columns: list[ValueColumn]) -> ValueColumn:
        """See `part.Accumulator`; the keys become places in a dictionary of them all."""
        encoded = pa.concat_arrays([column.values for column in columns]).dictionary_encode()
        self._table = encoded.dictionary
        ids = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        return ValueColumn(ids, concat_invalid(columns, [len(column.values) for column in columns]))

    def make_state(
        self, column: ValueColumn, groups: Ints, count: int, arrivals: Ints
    ) -> CountByState:
        """See `part.Accumulator`."""
        bad = find_invalid(column, groups, arrivals, last=False)
        ones = np.ones(len(groups), np.int64)
        return _make_state(self._table, groups, column.values, ones, count, bad)

    def merge_states(
        self, states: list[CountByState], where: list[Ints], before: list[Ints], count: int
    ) -> CountByState:
        """See `part.Accumulator`."""
        table, groups, ids = merge_tables(states, where)
        times = np.concatenate([state.times for state in states])
        bad = merge_invalid([state.invalid for state in states], where, before, last=False)
        return _make_state(table, groups, ids, times, count, bad)

    def encode_state(self, state: CountByState) -> bytes:
        """See `part.Accumulator`."""
        sets = (pack_ints(state.counts), pack_deltas(state.ids), pack_ints(state.times))
        bad = encode_invalid(state.invalid) if state.invalid else b""
        return pack_strings([*write_table(state.table), *sets, bad])

    def decode_state(self, data: bytes, shift: int) -> CountByState:
        """See `part.Accumulator`."""
        lengths, texts, counts, ids, times, bad = unpack_strings(data)
        of_group = unpack_ints(counts)
        return CountByState(
            read_table(lengths, texts),
            of_group,
            np.cumsum(of_group),
            unpack_deltas(ids),
            unpack_ints(times),
            decode_invalid(bad, shift) if bad else {},
        )

    def result_of(self, state: CountByState, group: int) -> dict[str, int]:
        """See `part.Accumulator`."""
        if group in state.invalid:
            place, _, text = state.invalid[group]
            raise RecordedError(insert_index(text, place), sealed=True)
        end = int(state.ends[group])
        span = slice(end - int(state.counts[group]), end)
        keys = state.table.take(pa.array(state.ids[span])).to_pylist()
        times = state.times[span].tolist()
        return dict(sorted(zip(map(unmark_text, keys), times, strict=True)))


def _make_state(
    table: pa.Array, groups: Ints, ids: Ints, times: Ints, count: int, bad: InvalidByGroup
) -> CountByState:
    table, ids = drop_unused_texts(table, ids)
    width = max(len(table), 1)
    pairs = groups * width + ids
    order = np.argsort(pairs, kind="stable")
    pairs = pairs[order]
    starts = np.flatnonzero(np.diff(pairs, prepend=-1) != 0)
    times = np.add.reduceat(times[order], starts) if len(starts) else times
    of_group, ids = np.divmod(pairs[starts], width)
    counts = np.bincount(of_group, minlength=count)
    return CountByState(table, counts, np.cumsum(counts), ids, times, bad)
