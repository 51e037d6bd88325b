"""Numbers for the keys of many pages, found together: equal keys have equal ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from streamer.window.keyed.join_side import PackRows
from streamer.window.settings.int_codec import Ints


class KeyIds:
    """The keys of some pages; without keys, all have the number 0."""

    def __init__(self, pack_rows: Sequence[PackRows]) -> None:
        """Number the keys as they come: those of the first pages get the smallest numbers.

        Args:
            pack_rows: of the pages.
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
        """Give the number of the key of each message, for some of the shares."""
        for (loaded, rows), numbers in zip(
            self._pack_rows[first:last], self._ids_of_pack[first:last], strict=True
        ):
            if len(numbers):
                yield np.repeat(numbers, np.diff(np.array(loaded.pack.starts)))[rows]
            else:
                yield np.zeros(len(rows), np.int64)

    def first_unused_id(self, last: int) -> int:
        """Return the least number that none of the first so many shares has."""
        next_ids = [int(numbers.max()) + 1 for numbers in self._ids_of_pack[:last] if len(numbers)]
        return max(next_ids, default=1)

    def key_of(self, number: int) -> bytes:
        """Return the key of a number, empty without keys."""
        if self._keys is None:
            return b""
        key: bytes = self._keys[number].as_py()
        return key
