"""Columns of texts: any text as one that Arrow takes, and tables of texts as bytes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from streamer.window.aggregate.accumulator import (
    Accumulator,
    InvalidByGroup,
    ValueColumn,
    concat_invalid,
    decode_invalid,
    encode_invalid,
    find_entries,
    merge_invalid,
    take_by_group,
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

TEXT_MARK: Final = "\x00"
"""What is no plain text begins with it, and so does a text that begins with it itself."""

_PLAIN_TEXT_MARK: Final = "\x00t"
_HEX_TEXT_MARK: Final = "\x00s"


def mark_text(text: str) -> str:
    """Return a text that can be encoded, and differs from marked values."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return _HEX_TEXT_MARK + text.encode("utf-8", "surrogatepass").hex()
    return _PLAIN_TEXT_MARK + text if text.startswith(TEXT_MARK) else text


def unmark_text(text: str) -> str:
    """Return the text that was marked."""
    if text.startswith(_HEX_TEXT_MARK):
        return bytes.fromhex(text.removeprefix(_HEX_TEXT_MARK)).decode("utf-8", "surrogatepass")
    return text.removeprefix(_PLAIN_TEXT_MARK)


class TextSets(NamedTuple):
    """Sets of texts by group, with a number beside each text.

    Attributes:
        table: the texts, marked.
        counts: by group, how many texts it has.
        ends: by group, where its texts end among all `ids`.
        ids: of group after group, the places of its texts in the table.
        numbers: by id, its number: how often the text occurs, or the arrival of its first message;
            empty where none is needed.
        invalid: the invalid values.
    """

    table: pa.Array
    counts: Ints
    ends: Ints
    ids: Ints
    numbers: Ints
    invalid: InvalidByGroup


class TextAccumulator(Accumulator):
    """An accumulator whose columns are marked texts, and its states of groups `TextSets`."""

    _table: pa.Array
    """The distinct texts of the columns that were last concatenated."""

    _no_invalid: bytes = b""
    """The encoded form of no invalid values."""

    def concat_columns(self, columns: list[ValueColumn]) -> ValueColumn:
        """Return a column of places in `_table`, which it fills."""
        encoded = pa.concat_arrays([column.values for column in columns]).dictionary_encode()
        self._table = encoded.dictionary
        ids = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        return ValueColumn(ids, concat_invalid(columns))

    def merge_states(
        self, states: list[TextSets], where: list[Ints], before: list[Ints], count: int
    ) -> TextSets:
        """Unite the sets of each group."""
        table, groups, ids = _merge_tables(states, where)
        numbers = np.concatenate([state.numbers for state in states])
        invalid = merge_invalid(states, where, before)
        return self._unite_texts(table, groups, ids, numbers, count, invalid)

    def take_groups(self, state: TextSets, indices: Ints) -> TextSets:
        """Return the state of some groups."""
        at = find_entries(state.counts, indices)
        table, ids = _drop_unused_texts(state.table, state.ids[at])
        counts = state.counts[indices]
        numbers = state.numbers[at] if len(state.numbers) else state.numbers
        invalid = take_by_group(state.invalid, indices)
        return TextSets(table, counts, np.cumsum(counts), ids, numbers, invalid)

    def encode_state(self, state: TextSets) -> bytes:
        """Write the table, the groups' texts and their numbers, and the invalid values."""
        numbers = self._encode_numbers(state.numbers)
        sets = (pack_ints(state.counts), pack_deltas(state.ids), numbers)
        invalid = encode_invalid(state.invalid) or self._no_invalid
        return pack_strings([*_write_table(state.table), *sets, invalid])

    def decode_state(self, data: bytes, shift: int) -> TextSets:
        """Read what `encode_state` wrote."""
        lengths, texts, counts, ids, numbers, invalid = unpack_strings(data)
        of_group = unpack_ints(counts)
        return TextSets(
            _read_table(lengths, texts),
            of_group,
            np.cumsum(of_group),
            unpack_deltas(ids),
            self._decode_numbers(numbers, shift),
            decode_invalid(invalid, shift),
        )

    def _take_texts(self, state: TextSets, group: int) -> tuple[list[str], Ints]:
        """Return the texts of a group, marked, and their numbers."""
        end = int(state.ends[group])
        span = slice(end - int(state.counts[group]), end)
        return state.table.take(pa.array(state.ids[span])).to_pylist(), state.numbers[span]

    def _unite_texts(
        self,
        table: pa.Array,
        groups: Ints,
        ids: Ints,
        numbers: Ints,
        count: int,
        invalid: InvalidByGroup,
    ) -> TextSets:
        """Return the sets of `count` groups from entries in any order, equal ones among them.

        Args:
            table: the texts, marked.
            groups: by entry.
            ids: by entry, the place of its text in the table.
            numbers: by entry.
            count: how many groups there are.
            invalid: the invalid values.
        """
        table, ids = _drop_unused_texts(table, ids)
        width = max(len(table), 1)
        pairs, numbers = self._unite_entries(groups * width + ids, groups, numbers)
        of_group, ids = np.divmod(pairs, width)
        counts = np.bincount(of_group, minlength=count)
        return TextSets(table, counts, np.cumsum(counts), ids, numbers, invalid)

    @abstractmethod
    def _unite_entries(self, pairs: Ints, groups: Ints, numbers: Ints) -> tuple[Ints, Ints]:
        """Return each pair of group and text once, group after group, and its number.

        Args:
            pairs: by entry, a number for its group and text, which may be changed in place; that
                of a later group is larger.
            groups: by entry.
            numbers: by entry.
        """

    @abstractmethod
    def _encode_numbers(self, numbers: Ints) -> bytes:
        """Return the numbers beside texts as bytes."""

    @abstractmethod
    def _decode_numbers(self, data: bytes, shift: int) -> Ints:
        """Return the numbers that were encoded; `shift` is added to arrival numbers."""


def _drop_unused_texts(table: pa.Array, ids: Ints) -> tuple[pa.Array, Ints]:
    """Return a table of but the texts that places in it name, and their new places."""
    used = np.zeros(len(table), bool)
    used[ids] = True
    if used.all():
        return table, ids
    return table.filter(pa.array(used)), (np.cumsum(used) - 1)[ids]


def _merge_tables(states: Sequence[TextSets], where: list[Ints]) -> tuple[pa.Array, Ints, Ints]:
    """Merge the tables of several states.

    Args:
        states: the states.
        where: by state, the new number of each of its groups.

    Returns:
        One table of all texts; of all entries, state after state, the group and the place.
    """
    encoded = pa.concat_arrays([state.table for state in states]).dictionary_encode()
    places = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    groups, ids = [], []
    start = 0
    for state, numbers in zip(states, where, strict=True):
        ids.append(places[start : start + len(state.table)][state.ids])
        groups.append(np.repeat(numbers, state.counts))
        start += len(state.table)
    return encoded.dictionary, np.concatenate(groups), np.concatenate(ids)


def make_text_array(texts: Sequence[str]) -> pa.Array:
    """Return a column of texts, none of them marked yet."""
    # Imported here, for it takes long and every worker imports this module.
    import pyarrow.compute as pc

    try:
        array = pa.array(texts, pa.string())
    except UnicodeEncodeError:
        return pa.array(list(map(mark_text, texts)), pa.string())
    if pc.any(pc.starts_with(array, TEXT_MARK)).as_py():
        return pa.array(list(map(mark_text, texts)), pa.string())
    return array


def _write_table(table: pa.Array) -> tuple[bytes, bytes]:
    """Return a column of texts as the bytes of their lengths, and of the texts."""
    _, offsets, data = table.buffers()
    start = table.offset
    ends = np.frombuffer(offsets, np.int32)[start : start + len(table) + 1]
    texts = b"" if data is None else data.to_pybytes()[ends[0] : ends[-1]]
    return pack_ints(np.diff(ends).astype(np.int64)), texts


def _read_table(lengths: bytes, texts: bytes) -> pa.Array:
    """Return the column that was written."""
    sizes = unpack_ints(lengths)
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes))).astype(np.int32)
    return pa.StringArray.from_buffers(len(sizes), pa.py_buffer(offsets), pa.py_buffer(texts))
