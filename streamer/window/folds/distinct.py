"""The distinct values of a field, as Bloblang's `unique` tells them apart: texts and numbers.

Values are columns of texts, in which a number is a marked text, and sets of them are runs of places
in a dictionary: that is several times as fast as Python's sets, since nothing is looked up for each
message by itself.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple
from uuid import uuid4

import numpy as np
import pyarrow as pa

from streamer.bloblang.errors import TypeMismatch, UnplacedError
from streamer.timestamps import Timestamp
from streamer.window.folds.part import (
    Bad,
    Column,
    Spoiler,
    bad_of,
    joined_bad,
    merged_bad,
    read_bad,
    write_bad,
)
from streamer.window.folds.texts import (
    MARK,
    array_of,
    joined,
    marked_text,
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

_NUMBER: Final = MARK + "n"
"""A number's text comes after it."""

_BYTES: Final = MARK + "b"
"""Bytes come after it, as hex."""

_TIME: Final = MARK + "i"
"""A time's nanoseconds and the seconds of its offset come after it."""

_EXACT: Final = 1 << 53


class DistinctState(NamedTuple):
    """Sets of values by group.

    Attributes:
        table: the values, as marked texts.
        counts: by group, how many values it has.
        ends: by group, where its values end among all `ids`.
        ids: of group after group, the places of its values in the table.
        arrivals: by id, the arrival of the first message with that value in the group; only where
            the order of values matters, else empty.
        bad: the groups that are spoilt.
    """

    table: pa.Array
    counts: Ints
    ends: Ints
    ids: Ints
    arrivals: Ints
    bad: Bad


_TAKEN: Final = (str, int, float, bytes, Timestamp)
_NONE: Final = np.empty(0, np.int64)


class Distinct:
    """The distinct values of a field: how many, or which, in the order of their first message."""

    def __init__(self, ordered: bool, origin: str) -> None:
        """Prepare.

        Args:
            ordered: give the values, in their order, rather than their number.
            origin: what error texts call the field's values.
        """
        self._ordered = ordered
        self._origin = origin
        self._table: pa.Array = pa.array([], pa.string())

    def column(self, values: list[Any]) -> Column:
        """See `part.Accumulator`; the column is one of marked texts."""
        if set(map(type, values)) == {str}:
            texts = array_of(values)
            return Column(texts, size=texts.nbytes)
        bad = []
        marked = []
        for index, value in enumerate(values):
            if isinstance(value, _TAKEN) and type(value) is not bool:
                marked.append(_marked(value, self._ordered))
            else:
                marked.append("")
                bad.append(Spoiler(index, 0, str(TypeMismatch(value, "string", "number"))))
        texts = pa.array(marked, pa.string())
        return Column(texts, bad, texts.nbytes)

    def gathered(self, columns: list[Column]) -> Column:
        """See `part.Accumulator`; the values become places in a dictionary of them all."""
        texts = pa.concat_arrays([column.values for column in columns])
        encoded = texts.dictionary_encode()
        self._table = encoded.dictionary
        ids = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        return Column(ids, joined_bad(columns, [len(column.values) for column in columns]))

    def state(self, column: Column, groups: Ints, count: int, arrivals: Ints) -> DistinctState:
        """See `part.Accumulator`; the values that the groups use are taken from the dictionary."""
        ids = column.values
        bad = bad_of(column, groups, arrivals, last=False)
        if bad:
            good = np.ones(len(ids), bool)
            good[[one.place for one in column.bad]] = False
            groups, ids, arrivals = groups[good], ids[good], arrivals[good]
        return self._state(self._table, groups, ids, arrivals, count, bad)

    def merged(
        self, states: list[DistinctState], where: list[Ints], before: list[Ints], count: int
    ) -> DistinctState:
        """See `part.Accumulator`."""
        table, groups, ids = joined(states, where)
        arrivals = np.concatenate([state.arrivals for state in states])
        bad = merged_bad([state.bad for state in states], where, before, last=False)
        return self._state(table, groups, ids, arrivals, count, bad)

    def _state(
        self, table: pa.Array, groups: Ints, ids: Ints, arrivals: Ints, count: int, bad: Bad
    ) -> DistinctState:
        table, ids = needed(table, ids)
        width = max(len(table), 1)
        pairs = groups * width + ids
        if self._ordered:
            # The first message of each value in each group, then these by group and arrival.
            order = np.lexsort((arrivals, pairs))
            firsts = order[np.diff(pairs[order], prepend=-1) != 0]
            firsts = firsts[np.lexsort((arrivals[firsts], groups[firsts]))]
            pairs, arrivals = pairs[firsts], arrivals[firsts]
        else:
            # numpy's own `unique` hashes, which is ten times as slow as its sort.
            pairs.sort()
            pairs, arrivals = pairs[np.diff(pairs, prepend=-1) != 0], _NONE
        of_group, ids = np.divmod(pairs, width)
        counts = np.bincount(of_group, minlength=count)
        return DistinctState(table, counts, np.cumsum(counts), ids, arrivals, bad)

    def write(self, state: DistinctState) -> bytes:
        """See `part.Accumulator`."""
        lengths, texts = write_table(state.table)
        first = int(state.arrivals.min()) if len(state.arrivals) else 0
        arrivals = first.to_bytes(8, "little", signed=True) + pack_steps(state.arrivals - first)
        sets = (pack_ints(state.counts), pack_steps(state.ids), arrivals)
        return pack_strings([lengths, texts, *sets, write_bad(state.bad)])

    def read(self, data: bytes, shift: int) -> DistinctState:
        """See `part.Accumulator`."""
        lengths, texts, counts, ids, arrivals, bad = unpack_strings(data)
        table = read_table(lengths, texts)
        of_group = unpack_ints(counts)
        first = int.from_bytes(arrivals[:8], "little", signed=True) + shift
        firsts = unpack_steps(arrivals[8:]) + first
        ends = np.cumsum(of_group)
        places = unpack_steps(ids)
        return DistinctState(table, of_group, ends, places, firsts, read_bad(bad, shift))

    def value(self, state: DistinctState, group: int) -> Any:
        """See `part.Accumulator`."""
        if group in state.bad:
            place, _, text = state.bad[group]
            raise UnplacedError(f"{self._origin}: index {place}: {text}")
        if not self._ordered:
            return int(state.counts[group])
        end = int(state.ends[group])
        ids = state.ids[end - int(state.counts[group]) : end]
        return [_unmarked(text) for text in state.table.take(pa.array(ids)).to_pylist()]


def _marked(value: str | bytes | int | float | Timestamp, given_back: bool) -> str:
    if isinstance(value, bytes):
        # They are equal to a text of the same bytes, which an expression hardly gives as well.
        if given_back:
            return _BYTES + value.hex()
        value = value.decode("utf-8", "surrogateescape")
    elif isinstance(value, Timestamp):
        # It is equal to its text, too.
        if given_back:
            return f"{_TIME}{value.ns}:{value.offset}"
        value = str(value)
    if isinstance(value, str):
        return marked_text(value)
    # Numbers that are equal are one value, however they are spelt; what is not a number is like
    # nothing else.
    number = float(value)
    if number != number:
        return f"{_NUMBER}nan:{uuid4().hex}"
    exact = number.is_integer() and abs(number) < _EXACT
    if type(value) is int and abs(value) < _EXACT:
        return f"{_NUMBER}{value}"
    return f"{_NUMBER}{int(number)}" if exact else f"{_NUMBER}{_spelt(value)}"


def _spelt(value: int | float) -> str:
    inside = type(value) is int and -(1 << 63) <= value < 1 << 63
    return str(value) if inside else repr(float(value))


def _unmarked(text: str) -> Any:
    if text.startswith(_NUMBER):
        number = text.removeprefix(_NUMBER)
        return int(number) if number.lstrip("-").isdigit() else float(number.partition(":")[0])
    if text.startswith(_BYTES):
        return bytes.fromhex(text.removeprefix(_BYTES))
    if text.startswith(_TIME):
        ns, offset = map(int, text.removeprefix(_TIME).split(":"))
        return Timestamp(ns, offset, "", "") if offset else Timestamp(ns)
    return unmarked_text(text)
