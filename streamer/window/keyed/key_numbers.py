"""Numbers for the keys of many pages, found together: equal keys have equal ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from streamer.window.ints import Ints
from streamer.window.keyed.waiting import Share


class KeyNumbers:
    """The keys of some pages; without keys, all have the number 0."""

    def __init__(self, shares: Sequence[Share]) -> None:
        """Number the keys as they come: those of the first pages get the smallest numbers.

        Args:
            shares: of the pages.
        """
        columns = [share.page.pack.key_column for share in shares]
        keyed = [column for column in columns if len(column)]
        whole = pa.concat_arrays(keyed).dictionary_encode() if keyed else None
        self._keys = None if whole is None else whole.dictionary
        numbers = np.empty(0, np.int64)
        if whole is not None:
            numbers = whole.indices.to_numpy().astype(np.int64)
        ends = np.cumsum([len(column) for column in columns]).tolist()
        self._of_share = [
            numbers[end - len(column) : end] for end, column in zip(ends, columns, strict=True)
        ]
        self._shares = shares

    def of(self, first: int, last: int) -> Iterator[Ints]:
        """Give the number of the key of each message, for some of the shares."""
        for (page, rows), numbers in zip(
            self._shares[first:last], self._of_share[first:last], strict=True
        ):
            if len(numbers):
                yield np.repeat(numbers, np.diff(np.array(page.pack.starts)))[rows]
            else:
                yield np.zeros(len(rows), np.int64)

    def below(self, last: int) -> int:
        """Return the least number that none of the first so many shares has."""
        found = [int(numbers.max()) + 1 for numbers in self._of_share[:last] if len(numbers)]
        return max(found, default=1)

    def key(self, number: int) -> bytes:
        """Return the key of a number, empty without keys."""
        if self._keys is None:
            return b""
        found: bytes = self._keys[number].as_py()
        return found
