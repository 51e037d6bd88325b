"""Columns of texts: any text as one that Arrow takes, and tables of texts as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np
import pyarrow as pa

from streamer.window.aggregate.accumulator import Accumulator, ValueColumn, concat_invalid
from streamer.window.settings.int_codec import Ints, pack_ints, unpack_ints

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


class TextAccumulator(Accumulator):
    """An accumulator whose columns are marked texts."""

    _table: pa.Array
    """The distinct texts of the columns that were last concatenated."""

    def concat_columns(self, columns: list[ValueColumn]) -> ValueColumn:
        """Return a column of places in `_table`, which it fills."""
        encoded = pa.concat_arrays([column.values for column in columns]).dictionary_encode()
        self._table = encoded.dictionary
        ids = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        return ValueColumn(ids, concat_invalid(columns))


class IndexedTexts(Protocol):
    """Texts by group, as places in a table."""

    @property
    def table(self) -> pa.Array:
        """Distinct texts, marked."""

    @property
    def counts(self) -> Ints:
        """Number of texts, by group."""

    @property
    def ids(self) -> Ints:
        """Places in the table of the texts of group after group."""


def drop_unused_texts(table: pa.Array, ids: Ints) -> tuple[pa.Array, Ints]:
    """Return a table of but the texts that places in it name, and their new places."""
    used = np.zeros(len(table), bool)
    used[ids] = True
    if used.all():
        return table, ids
    return table.filter(pa.array(used)), (np.cumsum(used) - 1)[ids]


def merge_tables(states: Sequence[IndexedTexts], where: list[Ints]) -> tuple[pa.Array, Ints, Ints]:
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


def write_table(table: pa.Array) -> tuple[bytes, bytes]:
    """Return a column of texts as the bytes of their lengths, and of the texts."""
    _, offsets, data = table.buffers()
    start = table.offset
    ends = np.frombuffer(offsets, np.int32)[start : start + len(table) + 1]
    texts = b"" if data is None else data.to_pybytes()[ends[0] : ends[-1]]
    return pack_ints(np.diff(ends).astype(np.int64)), texts


def read_table(lengths: bytes, texts: bytes) -> pa.Array:
    """Return the column that was written."""
    sizes = unpack_ints(lengths)
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes))).astype(np.int32)
    return pa.StringArray.from_buffers(len(sizes), pa.py_buffer(offsets), pa.py_buffer(texts))
