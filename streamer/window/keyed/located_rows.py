"""Messages of some keys, found on the pages that they are on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from streamer.window.keyed.loaded_pack import LoadedPack
from streamer.window.settings.int_codec import Ints


@dataclass(slots=True)
class LocatedRows:
    """Messages of keys, sorted by key and then by arrival.

    Attributes:
        starts: by key, where its messages begin in the columns.
        times: ns, or arrival numbers.
        arrivals: numbers.
        pack_numbers: which page each is on.
        rows: and where there.
        loaded_packs: the pages.
    """

    starts: dict[bytes, tuple[int, int]]
    times: Ints
    arrivals: Ints
    pack_numbers: Ints
    rows: Ints
    loaded_packs: list[LoadedPack]

    def free(self, indices: Ints) -> None:
        """Mark messages as gone, by their places."""
        pack_numbers, rows = self.pack_numbers[indices], self.rows[indices]
        for number in np.unique(pack_numbers).tolist():
            self.loaded_packs[number].free(rows[pack_numbers == number])


def find_key_rows(loaded: LoadedPack, numbers: Mapping[bytes, int]) -> tuple[Ints, Ints]:
    """Return the rows of keys that are asked for, and the number of each one's key."""
    pack = loaded.pack
    if not pack.keys:
        count = pack.header.messages
        number = numbers.get(b"", -1)
        if number < 0:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        return np.arange(count), np.full(count, number)
    key_numbers = np.array([numbers.get(key, -1) for key in pack.keys], np.int64)
    keys = np.repeat(key_numbers, np.diff(np.array(pack.starts)))
    rows = np.flatnonzero(keys >= 0)
    return rows, keys[rows]


def locate_rows(
    numbers: Mapping[bytes, int], loaded_packs: list[LoadedPack], parts: Sequence[tuple[Ints, Ints]]
) -> LocatedRows:
    """Bring what was found on some pages together.

    Args:
        numbers: of the keys that were asked for.
        loaded_packs: the pages.
        parts: by page, the rows, and the numbers of their keys.
    """
    empty = np.empty(0, np.int64)
    if not parts:
        starts = dict.fromkeys(numbers, (0, 0))
        return LocatedRows(starts, empty, empty, empty, empty, [])
    rows = np.concatenate([rows for rows, _ in parts])
    keys = np.concatenate([keys for _, keys in parts])
    sizes = [len(rows) for rows, _ in parts]
    pack_numbers = np.repeat(np.arange(len(parts)), sizes)
    times = np.concatenate([p.times[r] for p, (r, _) in zip(loaded_packs, parts, strict=True)])
    arrivals = np.concatenate(
        [p.pack.arrivals[r] for p, (r, _) in zip(loaded_packs, parts, strict=True)]
    )
    order = np.lexsort((arrivals, keys))
    keys = keys[order]
    bounds = np.searchsorted(keys, np.arange(len(numbers) + 1)).tolist()
    starts = {key: (bounds[n], bounds[n + 1]) for key, n in numbers.items()}
    return LocatedRows(
        starts, times[order], arrivals[order], pack_numbers[order], rows[order], loaded_packs
    )
