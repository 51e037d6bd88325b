"""How often each key occurs, as `count_by` says it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from streamer.bloblang.element import Question
from streamer.bloblang.errors import ToldError
from streamer.bloblang.methods.aggregates import key_text
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
from streamer.window.folds.texts import (
    array_of,
    joined,
    needed,
    read_table,
    unmarked_text,
    write_table,
)
from streamer.window.ints import (
    Ints,
    pack_ints,
    pack_steps,
    pack_strings,
    unpack_ints,
    unpack_steps,
    unpack_strings,
)


class CountedState(NamedTuple):
    """Numbers by group and key.

    Attributes:
        table: the keys, as marked texts.
        counts: by group, how many keys it has.
        ends: by group, where its keys end.
        ids: of group after group, the places of its keys in the table.
        times: likewise, how often they occur.
        bad: the groups that are spoilt.
    """

    table: pa.Array
    counts: Ints
    ends: Ints
    ids: Ints
    times: Ints
    bad: Bad


class Counted:
    """Counts values by their text, or by that of what a query gives for them."""

    def __init__(self, origin: str, question: Question | None) -> None:
        """Take what error texts call the values, and the query."""
        self._origin = origin
        self._question = question
        self._table: pa.Array = pa.array([], pa.string())

    def column(self, values: list[Any]) -> Column:
        """See `part.Accumulator`; the column is one of marked texts."""
        if self._question is None and set(map(type, values)) == {str}:
            texts = array_of(values)
            return Column(texts, size=texts.nbytes)
        keys, bad = asked(values, self._question, key_text, self._origin, "")
        texts = array_of(keys)
        return Column(texts, bad, texts.nbytes)

    def gathered(self, columns: list[Column]) -> Column:
        """See `part.Accumulator`; the keys become places in a dictionary of them all."""
        encoded = pa.concat_arrays([column.values for column in columns]).dictionary_encode()
        self._table = encoded.dictionary
        ids = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        return Column(ids, joined_bad(columns, [len(column.values) for column in columns]))

    def state(self, column: Column, groups: Ints, count: int, arrivals: Ints) -> CountedState:
        """See `part.Accumulator`."""
        bad = bad_of(column, groups, arrivals, last=False)
        once = np.ones(len(groups), np.int64)
        return _state(self._table, groups, column.values, once, count, bad)

    def merged(
        self, states: list[CountedState], where: list[Ints], before: list[Ints], count: int
    ) -> CountedState:
        """See `part.Accumulator`."""
        table, groups, ids = joined(states, where)
        times = np.concatenate([state.times for state in states])
        bad = merged_bad([state.bad for state in states], where, before, last=False)
        return _state(table, groups, ids, times, count, bad)

    def write(self, state: CountedState) -> bytes:
        """See `part.Accumulator`."""
        sets = (pack_ints(state.counts), pack_steps(state.ids), pack_ints(state.times))
        bad = write_bad(state.bad) if state.bad else b""
        return pack_strings([*write_table(state.table), *sets, bad])

    def read(self, data: bytes, shift: int) -> CountedState:
        """See `part.Accumulator`."""
        lengths, texts, counts, ids, times, bad = unpack_strings(data)
        of_group = unpack_ints(counts)
        return CountedState(
            read_table(lengths, texts),
            of_group,
            np.cumsum(of_group),
            unpack_steps(ids),
            unpack_ints(times),
            read_bad(bad, shift) if bad else {},
        )

    def value(self, state: CountedState, group: int) -> dict[str, int]:
        """See `part.Accumulator`."""
        if group in state.bad:
            place, _, text = state.bad[group]
            raise ToldError(placed(text, place), sealed=True)
        end = int(state.ends[group])
        span = slice(end - int(state.counts[group]), end)
        keys = state.table.take(pa.array(state.ids[span])).to_pylist()
        times = state.times[span].tolist()
        return dict(sorted(zip(map(unmarked_text, keys), times, strict=True)))


def _state(
    table: pa.Array, groups: Ints, ids: Ints, times: Ints, count: int, bad: Bad
) -> CountedState:
    table, ids = needed(table, ids)
    width = max(len(table), 1)
    pairs = groups * width + ids
    order = np.argsort(pairs, kind="stable")
    pairs = pairs[order]
    starts = np.flatnonzero(np.diff(pairs, prepend=-1) != 0)
    times = np.add.reduceat(times[order], starts) if len(starts) else times
    of_group, ids = np.divmod(pairs[starts], width)
    counts = np.bincount(of_group, minlength=count)
    return CountedState(table, counts, np.cumsum(counts), ids, times, bad)
