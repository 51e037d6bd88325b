"""Codes of groups that have come already: most messages bring none that is new."""

from __future__ import annotations

from typing import Final

import numpy as np

from streamer.window.pack.message_columns import GROUP_MASK, SLOT_BITS
from streamer.window.settings.int_codec import Ints

_MIN_WIDTH: Final = 1024
_MAX_ENTRIES: Final = 1 << 22


class KnownCodes:
    """Remembers codes, in a table by slot and group as long as that is of a reasonable size."""

    def __init__(self) -> None:
        """Begin with none."""
        self._table = np.zeros((1, _MIN_WIDTH), np.bool_)
        self._others: set[int] = set()
        self._is_table = True

    def find_new(self, codes: Ints) -> list[int]:
        """Return where codes come for the first time, each once, ascending; remember them."""
        slots, groups = codes >> SLOT_BITS, codes & GROUP_MASK
        if self._is_table and self._make_space(int(slots.max()) + 1, int(groups.max()) + 1):
            new = np.flatnonzero(~self._table[slots, groups])
            if not len(new):
                return []
            self._table[slots[new], groups[new]] = True
            _, firsts = np.unique(codes[new], return_index=True)
            places: list[int] = np.sort(new[firsts]).tolist()
            return places
        listed = codes.tolist()
        new_codes = set(listed).difference(self._others)  # by `-` it would go through all of these
        self._others |= new_codes
        # The last that is put in for a code is its first place.
        first_of = dict(zip(reversed(listed), reversed(range(len(listed))), strict=True))
        return sorted([first_of[code] for code in new_codes])

    def _make_space(self, slots: int, groups: int) -> bool:
        """Make the table large enough; if it would be too large, return False, and have none."""
        height, width = self._table.shape
        if slots <= height and groups <= width:
            return True
        while height < slots:
            height *= 2
        while width < groups:
            width *= 2
        old = self._table
        if height * width <= _MAX_ENTRIES:
            self._table = np.zeros((height, width), np.bool_)
            self._table[: old.shape[0], : old.shape[1]] = old
            return True
        in_slots, in_groups = np.nonzero(old)
        self._others = set(((in_slots << SLOT_BITS) + in_groups).tolist())
        self._is_table = False
        return False
