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
from streamer.core.timestamps import Timestamp
from streamer.window.aggregate.accumulator import (
    InvalidByGroup,
    InvalidValue,
    ValueColumn,
    concat_invalid,
    decode_invalid,
    encode_invalid,
    find_invalid,
    merge_invalid,
)
from streamer.window.aggregate.string_columns import (
    TEXT_MARK,
    drop_unused_texts,
    make_text_array,
    mark_text,
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

_NUMBER_MARK: Final = TEXT_MARK + "n"
"""A number's text comes after it."""

_BYTES_MARK: Final = TEXT_MARK + "b"
"""Bytes come after it, as hex."""

_TIME_MARK: Final = TEXT_MARK + "i"
"""A time's nanoseconds and the seconds of its offset come after it."""

_MAX_EXACT_INT: Final = 1 << 53


class DistinctState(NamedTuple):
    """Sets of values by group.

    Attributes:
        table: the values, as marked texts.
        counts: by group, how many values it has.
        ends: by group, where its values end among all `ids`.
        ids: of group after group, the places of its values in the table.
        arrivals: by id, the arrival of the first message with that value in the group; only where
            the order of values matters, else empty.
        invalid: the groups that are spoilt.
    """

    table: pa.Array
    counts: Ints
    ends: Ints
    ids: Ints
    arrivals: Ints
    invalid: InvalidByGroup


_ALLOWED_TYPES: Final = (str, int, float, bytes, Timestamp)
_EMPTY_INTS: Final = np.empty(0, np.int64)


class DistinctAggregate:
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

    def make_column(self, values: list[Any]) -> ValueColumn:
        """See `part.Accumulator`; the column is one of marked texts."""
        if set(map(type, values)) == {str}:
            texts = make_text_array(values)
            return ValueColumn(texts, size=texts.nbytes)
        bad = []
        marked = []
        for index, value in enumerate(values):
            if isinstance(value, _ALLOWED_TYPES) and type(value) is not bool:
                marked.append(_mark_value(value, self._ordered))
            else:
                marked.append("")
                bad.append(InvalidValue(index, 0, str(TypeMismatch(value, "string", "number"))))
        texts = pa.array(marked, pa.string())
        return ValueColumn(texts, bad, texts.nbytes)

    def concat_columns(self, columns: list[ValueColumn]) -> ValueColumn:
        """See `part.Accumulator`; the values become places in a dictionary of them all."""
        texts = pa.concat_arrays([column.values for column in columns])
        encoded = texts.dictionary_encode()
        self._table = encoded.dictionary
        ids = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        return ValueColumn(ids, concat_invalid(columns, [len(column.values) for column in columns]))

    def make_state(
        self, column: ValueColumn, groups: Ints, count: int, arrivals: Ints
    ) -> DistinctState:
        """See `part.Accumulator`; the values that the groups use are taken from the dictionary."""
        ids = column.values
        bad = find_invalid(column, groups, arrivals, last=False)
        if bad:
            good = np.ones(len(ids), bool)
            good[[one.place for one in column.invalid]] = False
            groups, ids, arrivals = groups[good], ids[good], arrivals[good]
        return self._make_state(self._table, groups, ids, arrivals, count, bad)

    def merge_states(
        self, states: list[DistinctState], where: list[Ints], before: list[Ints], count: int
    ) -> DistinctState:
        """See `part.Accumulator`."""
        table, groups, ids = merge_tables(states, where)
        arrivals = np.concatenate([state.arrivals for state in states])
        bad = merge_invalid([state.invalid for state in states], where, before, last=False)
        return self._make_state(table, groups, ids, arrivals, count, bad)

    def _make_state(
        self,
        table: pa.Array,
        groups: Ints,
        ids: Ints,
        arrivals: Ints,
        count: int,
        bad: InvalidByGroup,
    ) -> DistinctState:
        table, ids = drop_unused_texts(table, ids)
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
            pairs, arrivals = pairs[np.diff(pairs, prepend=-1) != 0], _EMPTY_INTS
        of_group, ids = np.divmod(pairs, width)
        counts = np.bincount(of_group, minlength=count)
        return DistinctState(table, counts, np.cumsum(counts), ids, arrivals, bad)

    def encode_state(self, state: DistinctState) -> bytes:
        """See `part.Accumulator`."""
        lengths, texts = write_table(state.table)
        first = int(state.arrivals.min()) if len(state.arrivals) else 0
        arrivals = first.to_bytes(8, "little", signed=True) + pack_deltas(state.arrivals - first)
        sets = (pack_ints(state.counts), pack_deltas(state.ids), arrivals)
        return pack_strings([lengths, texts, *sets, encode_invalid(state.invalid)])

    def decode_state(self, data: bytes, shift: int) -> DistinctState:
        """See `part.Accumulator`."""
        lengths, texts, counts, ids, arrivals, bad = unpack_strings(data)
        table = read_table(lengths, texts)
        of_group = unpack_ints(counts)
        first = int.from_bytes(arrivals[:8], "little", signed=True) + shift
        firsts = unpack_deltas(arrivals[8:]) + first
        ends = np.cumsum(of_group)
        places = unpack_deltas(ids)
        return DistinctState(table, of_group, ends, places, firsts, decode_invalid(bad, shift))

    def result_of(self, state: DistinctState, group: int) -> Any:
        """See `part.Accumulator`."""
        if group in state.invalid:
            place, _, text = state.invalid[group]
            raise UnplacedError(f"{self._origin}: index {place}: {text}")
        if not self._ordered:
            return int(state.counts[group])
        end = int(state.ends[group])
        ids = state.ids[end - int(state.counts[group]) : end]
        return [_unmark_value(text) for text in state.table.take(pa.array(ids)).to_pylist()]


def _mark_value(value: str | bytes | int | float | Timestamp, reversible: bool) -> str:
    if isinstance(value, bytes):
        # They are equal to a text of the same bytes, which an expression hardly gives as well.
        if reversible:
            return _BYTES_MARK + value.hex()
        value = value.decode("utf-8", "surrogateescape")
    elif isinstance(value, Timestamp):
        # It is equal to its text, too.
        if reversible:
            return f"{_TIME_MARK}{value.ns}:{value.offset}"
        value = str(value)
    if isinstance(value, str):
        return mark_text(value)
    # Numbers that are equal are one value, however they are spelt; what is not a number is like
    # nothing else.
    number = float(value)
    if number != number:
        return f"{_NUMBER_MARK}nan:{uuid4().hex}"
    exact = number.is_integer() and abs(number) < _MAX_EXACT_INT
    if type(value) is int and abs(value) < _MAX_EXACT_INT:
        return f"{_NUMBER_MARK}{value}"
    return f"{_NUMBER_MARK}{int(number)}" if exact else f"{_NUMBER_MARK}{_format_number(value)}"


def _format_number(value: int | float) -> str:
    inside = type(value) is int and -(1 << 63) <= value < 1 << 63
    return str(value) if inside else repr(float(value))


def _unmark_value(text: str) -> Any:
    if text.startswith(_NUMBER_MARK):
        number = text.removeprefix(_NUMBER_MARK)
        return int(number) if number.lstrip("-").isdigit() else float(number.partition(":")[0])
    if text.startswith(_BYTES_MARK):
        return bytes.fromhex(text.removeprefix(_BYTES_MARK))
    if text.startswith(_TIME_MARK):
        ns, offset = map(int, text.removeprefix(_TIME_MARK).split(":"))
        return Timestamp(ns, offset, "", "") if offset else Timestamp(ns)
    return unmark_text(text)
