"""Messages of some keys, found on the pages that they are on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from streamer.window.ints import Ints
from streamer.window.keyed.pages import Page


@dataclass(slots=True)
class Found:
    """Messages of keys, sorted by key and then by arrival.

    Attributes:
        starts: by key, where its messages begin in the columns.
        times: ns, or arrival numbers.
        arrivals: numbers.
        pages: which page each is on.
        rows: and where there.
        sheets: the pages.
    """

    starts: dict[bytes, tuple[int, int]]
    times: Ints
    arrivals: Ints
    pages: Ints
    rows: Ints
    sheets: list[Page]

    def give_back(self, chosen: Ints) -> None:
        """Mark messages as gone, by their places."""
        pages, rows = self.pages[chosen], self.rows[chosen]
        for number in np.unique(pages).tolist():
            self.sheets[number].give_back(rows[pages == number])


def rows_of(page: Page, numbers: Mapping[bytes, int]) -> tuple[Ints, Ints]:
    """Return the rows of keys that are asked for, and the number of each one's key."""
    pack = page.pack
    if not pack.keys:
        count = pack.header.messages
        number = numbers.get(b"", -1)
        if number < 0:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        return np.arange(count), np.full(count, number)
    wanted = np.array([numbers.get(key, -1) for key in pack.keys], np.int64)
    keys = np.repeat(wanted, np.diff(np.array(pack.starts)))
    rows = np.flatnonzero(keys >= 0)
    return rows, keys[rows]


def found_on(
    numbers: Mapping[bytes, int], sheets: list[Page], parts: Sequence[tuple[Ints, Ints]]
) -> Found:
    """Bring what was found on some pages together.

    Args:
        numbers: of the keys that were asked for.
        sheets: the pages.
        parts: by page, the rows, and the numbers of their keys.
    """
    empty = np.empty(0, np.int64)
    if not parts:
        starts = dict.fromkeys(numbers, (0, 0))
        return Found(starts, empty, empty, empty, empty, [])
    rows = np.concatenate([rows for rows, _ in parts])
    keys = np.concatenate([keys for _, keys in parts])
    sizes = [len(rows) for rows, _ in parts]
    pages = np.repeat(np.arange(len(parts)), sizes)
    times = np.concatenate([p.times[r] for p, (r, _) in zip(sheets, parts, strict=True)])
    arrivals = np.concatenate([p.pack.arrivals[r] for p, (r, _) in zip(sheets, parts, strict=True)])
    order = np.lexsort((arrivals, keys))
    keys = keys[order]
    bounds = np.searchsorted(keys, np.arange(len(numbers) + 1)).tolist()
    starts = {key: (bounds[n], bounds[n + 1]) for key, n in numbers.items()}
    return Found(starts, times[order], arrivals[order], pages[order], rows[order], sheets)
