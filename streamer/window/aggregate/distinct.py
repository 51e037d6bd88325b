"""The distinct values of a field, as Bloblang's `unique` tells them apart: texts and numbers.

The column form has columns of texts, in which a number is a marked text, and sets of them as runs
of places in a dictionary: that is several times as fast as Python's sets, since nothing is looked
up for each message by itself. The per-message form has a dict of values.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, Final
from uuid import uuid4

import numpy as np
import pyarrow as pa

from streamer.bloblang.errors import QueryError, TypeMismatch, UnplacedError
from streamer.bloblang.golib.operations import NUMBER_TYPES
from streamer.core.timestamps import Timestamp
from streamer.window.aggregate.accumulator import (
    InvalidValue,
    RowSpan,
    ValueColumn,
    decode_arrivals,
    encode_arrivals,
    find_invalid,
    split_invalid,
)
from streamer.window.aggregate.string_columns import (
    TEXT_MARK,
    TextAccumulator,
    TextSets,
    make_text_array,
    mark_text,
    unmark_text,
)
from streamer.window.aggregate.value_codec import dump_value, load_value
from streamer.window.settings.int_codec import (
    Ints,
    pack_deltas,
    unpack_deltas,
)

_NUMBER_MARK: Final = TEXT_MARK + "n"
"""A number's text comes after it."""

_BYTES_MARK: Final = TEXT_MARK + "b"
"""Bytes come after it, as hex."""

_TIME_MARK: Final = TEXT_MARK + "i"
"""A time's nanoseconds and the seconds of its offset come after it."""

_MAX_EXACT_INT: Final = 1 << 53
_PLAIN_TYPES: Final = frozenset((str, int, float))
_EMPTY_INTS: Final = np.empty(0, np.int64)


KnownValues = tuple[dict[Any, int], int]
"""Values by the arrival of their first message, and how many of them there are: all states that a
window has had share the dict, and the first so many entries are a state's own."""


class DistinctAccumulator(TextAccumulator):
    """The distinct values of a field: how many, or which, in the order of their first message.

    The numbers of `TextSets` are the arrivals of first messages, where the order matters. A
    window's state is `KnownValues`, or `InvalidValue`.
    """

    _no_invalid = b"[]"

    def __init__(self, ordered: bool, origin: str) -> None:
        """Prepare.

        Args:
            ordered: give the values, in their order, rather than their number.
            origin: what error texts call the field's values.
        """
        self._ordered = ordered
        self._origin = origin

    def make_column(self, values: list[Any]) -> ValueColumn:
        """Return a column of marked texts."""
        if set(map(type, values)) == {str}:
            texts = make_text_array(values)
            return ValueColumn(texts, size=texts.nbytes)
        marked, invalid = split_invalid([self._mark_value(value) for value in values], "")
        texts = pa.array(marked, pa.string())
        return ValueColumn(texts, invalid, texts.nbytes)

    def make_text_column(self, texts: pa.StringArray) -> ValueColumn:
        """Return a column of the texts as they are: none begins with a mark."""
        return ValueColumn(texts, size=texts.nbytes)

    def _mark_value(self, value: Any) -> str | InvalidValue:
        if type(value) in NUMBER_TYPES:
            return _mark_number(value)
        item = self._normalise(value)
        kind = type(item)
        if kind is InvalidValue:
            return item  # type: ignore[no-any-return]
        if kind is bytes:
            return f"{_BYTES_MARK}{item.hex()}"
        return f"{_TIME_MARK}{value.ns}:{value.offset}" if kind is _TimeText else mark_text(item)

    def make_state(self, column: ValueColumn, groups: Ints, count: int, arrivals: Ints) -> TextSets:
        """Collect the values of each group; the table has those that the groups use."""
        ids = column.values
        invalid = find_invalid(column, groups, arrivals)
        if invalid:
            valid = np.ones(len(ids), bool)
            valid[[one.place for one in column.invalid]] = False
            groups, ids, arrivals = groups[valid], ids[valid], arrivals[valid]
        return self._unite_texts(self._table, groups, ids, arrivals, count, invalid)

    def _unite_entries(self, pairs: Ints, groups: Ints, numbers: Ints) -> tuple[Ints, Ints]:
        if not self._ordered:
            # numpy's own `unique` hashes, which is ten times as slow as its sort.
            pairs.sort()
            return pairs[np.diff(pairs, prepend=-1) != 0], _EMPTY_INTS
        # The first message of each value in each group, then these by group and arrival.
        order = np.lexsort((numbers, pairs))
        firsts = order[np.diff(pairs[order], prepend=-1) != 0]
        firsts = firsts[np.lexsort((numbers[firsts], groups[firsts]))]
        return pairs[firsts], numbers[firsts]

    def _encode_numbers(self, numbers: Ints) -> bytes:
        return encode_arrivals(numbers, pack_deltas)

    def _decode_numbers(self, data: bytes, shift: int) -> Ints:
        return decode_arrivals(data, shift, unpack_deltas)

    def result_of_group(self, state: TextSets, group: int) -> Any:
        """Return how many values a group has, or these."""
        if group in state.invalid:
            raise self._make_error(state.invalid[group])
        if not self._ordered:
            return int(state.counts[group])
        return [_unmark_value(text) for text in self._take_texts(state, group)[0]]

    def results_of_groups(self, state: TextSets, groups: Ints) -> list[Any]:
        """Return how many values each of some groups has, or these."""
        if self._ordered or state.invalid:
            return super().results_of_groups(state, groups)
        counts: list[Any] = state.counts[groups].tolist()
        return counts

    @property
    def empty_state(self) -> KnownValues:
        """A new dict: each window has its own."""
        return {}, 0

    def prepare(self, values: list[Any]) -> Sequence[Any]:
        """Return keys that are equal where values are, or `InvalidValue`."""
        if set(map(type, values)) <= _PLAIN_TYPES:
            return values
        return [self._normalise(value) for value in values]

    def _normalise(self, value: Any) -> Any:
        kind = type(value)
        if kind is str:
            return value
        if kind in NUMBER_TYPES:
            return int(value) if isinstance(value, int) else float(value)
        if kind is bytes:
            # They are equal to a text of the same bytes, which hardly comes beside them.
            return value if self._ordered else value.decode("utf-8", "surrogateescape")
        if kind is Timestamp:
            return _TimeText(value) if self._ordered else str(value)
        return InvalidValue(0, 0, str(TypeMismatch(value, "string", "number")))

    def add(self, state: Any, value: Any, arrival: int, place: int) -> Any:
        """Add a value; the first invalid one stays."""
        if type(state) is InvalidValue:
            return state
        if type(value) is InvalidValue:
            return InvalidValue(place, arrival, value.text)
        known = state[0]
        if value in known:
            return state
        known[value] = arrival
        return known, len(known)

    def add_all(self, state: Any, values: Sequence[Any], span: RowSpan, place: int) -> Any:
        """Add some values, without a call for each."""
        first, last, arrivals = span
        for at, value in enumerate(values[first:last]):
            if type(state) is InvalidValue:
                return state
            if type(value) is InvalidValue:
                return InvalidValue(place + at, arrivals[first + at], value.text)
            known = state[0]
            if value not in known:
                known[value] = arrivals[first + at]
                state = known, len(known)
        return state

    def _merge_valid(self, one: KnownValues, other: KnownValues) -> KnownValues:
        first: dict[Any, tuple[int, Any]] = {}
        for known, count in (one, other):
            for value, arrival in islice(known.items(), count):
                if value not in first or arrival < first[value][0]:
                    first[value] = (arrival, value)
        together = {value: arrival for arrival, value in sorted(first.values(), key=_arrival_of)}
        return together, len(together)

    def result_of(self, state: Any) -> Any:
        """Return how many values a window has, or these."""
        if type(state) is InvalidValue:
            raise self._make_error(state)
        known, count = state
        return list(map(_value_of, islice(known, count))) if self._ordered else count

    def _dump_valid(self, state: KnownValues) -> Any:
        known, count = state
        entries = list(islice(known.items(), count))
        arrivals = [arrival for _, arrival in entries]
        steps = [b - a for a, b in zip([0, *arrivals], arrivals, strict=False)]
        return [[dump_value(_value_of(value)) for value, _ in entries], steps]

    def _load_valid(self, plain: Any) -> KnownValues:
        known: dict[Any, int] = {}
        arrival = 0
        for value, step in zip(*plain, strict=True):
            arrival += step
            item = load_value(value)
            known[_TimeText(item) if type(item) is Timestamp else item] = arrival
        return known, len(known)

    def _make_error(self, invalid: InvalidValue) -> QueryError:
        return UnplacedError(f"{self._origin}: index {invalid.place}: {invalid.text}")


def _mark_number(value: int | float) -> str:
    # Numbers that are equal are one value, however they are spelt; NaN is equal to nothing.
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


class _TimeText(str):
    """A time's text, and the time: it is equal to the text, and to other times of that text."""

    __slots__ = ("time",)
    time: Timestamp

    def __new__(cls, time: Timestamp) -> _TimeText:
        self = super().__new__(cls, str(time))
        self.time = time
        return self


def _value_of(key: Any) -> Any:
    return key.time if type(key) is _TimeText else key


def _arrival_of(entry: tuple[int, Any]) -> int:
    return entry[0]
