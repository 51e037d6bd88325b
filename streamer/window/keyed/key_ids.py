"""Integer ids for the keys of many packs: equal keys have equal ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from streamer.window.keyed.join_side import PackRows
from streamer.window.settings.int_codec import Ints


class KeyIds:
    """Ids of the keys of some packs; without keys, all messages have the id 0."""

    def __init__(self, pack_rows: Sequence[PackRows]) -> None:
        """Number the keys in order: those of the first packs get the smallest ids.

        Args:
            pack_rows: messages of the packs.
        """
        columns = [share.loaded.pack.key_column for share in pack_rows]
        keyed = [column for column in columns if len(column)]
        whole = pa.concat_arrays(keyed).dictionary_encode() if keyed else None
        self._keys = None if whole is None else whole.dictionary
        numbers = np.empty(0, np.int64)
        if whole is not None:
            numbers = whole.indices.to_numpy().astype(np.int64)
        ends = np.cumsum([len(column) for column in columns]).tolist()
        self._ids_of_pack = [
            numbers[end - len(column) : end] for end, column in zip(ends, columns, strict=True)
        ]
        self._pack_rows = pack_rows

    def iterate_ids(self, first: int, last: int) -> Iterator[Ints]:
        """Give, for each of `pack_rows[first:last]`, the key ids of its messages."""
        for (loaded, rows), numbers in zip(
            self._pack_rows[first:last], self._ids_of_pack[first:last], strict=True
        ):
            if len(numbers):
                yield np.repeat(numbers, np.diff(np.array(loaded.pack.starts)))[rows]
            else:
                yield np.zeros(len(rows), np.int64)

    def first_unused_id(self, last: int) -> int:
        """Return the least id that no key of `pack_rows[:last]` has."""
        next_ids = [int(numbers.max()) + 1 for numbers in self._ids_of_pack[:last] if len(numbers)]
        return max(next_ids, default=1)

    def key_of(self, number: int) -> bytes:
        """Return the key of an id, empty without keys."""
        if self._keys is None:
            return b""
        key: bytes = self._keys[number].as_py()
        return key
