"""Which of the messages that wait for a match have found one already: their arrival numbers."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamer.window.ints import Ints, pack_steps, unpack_steps
from streamer.window.store import Store
from streamer.window.versions import check_format

SEQ: Final = -5
"""Seq of the numbers in the store; their pane is 0 for the left side, 1 for the right."""

VERSION: Final = 1
_FRONT: Final = 9


class Matched:
    """The numbers of one side; they rise from one micro-batch to the next."""

    def __init__(self, store: Store, pane: int) -> None:
        """Read what `write` wrote.

        Raises:
            StreamerError: it was written by a later version.
        """
        self._store = store
        self._pane = pane
        self._changed = False
        self._found: list[Ints] = []
        data = store.get(pane, SEQ)
        self._stored = data is not None
        self._known: Ints = np.empty(0, np.int64)
        if data is not None:
            check_format("the list of what a join has matched", data[0], (VERSION,))
            first = int.from_bytes(data[1:_FRONT], "little")
            self._known = unpack_steps(data[_FRONT:]) + first

    def add(self, arrivals: Ints) -> None:
        """Take messages that have found a match, in any order."""
        self._found.append(_distinct(arrivals))

    def remove(self, arrivals: Ints) -> NDArray[np.bool_]:
        """Forget messages; tell of each whether it had found a match."""
        known = self._all()
        places = np.searchsorted(known, arrivals)
        there = places < len(known)
        there[there] = known[places[there]] == arrivals[there]
        if there.any():
            self._known = np.delete(known, places[there])
            self._changed = True
        return there

    def write(self) -> None:
        """Write them down, unless nothing has changed."""
        known = self._all()
        if not self._changed:
            return
        if len(known):
            first = int(known[0])
            front = bytes([VERSION]) + first.to_bytes(_FRONT - 1, "little")
            self._store.put(self._pane, SEQ, front + pack_steps(known - first))
        elif self._stored:
            self._store.delete(self._pane, SEQ)

    def _all(self) -> Ints:
        if self._found:
            self._known = _distinct(np.concatenate((self._known, *self._found)))
            self._found, self._changed = [], True
        return self._known


def _distinct(values: Ints) -> Ints:
    """Return the distinct values, in order; what is in order already costs next to nothing."""
    ordered = np.sort(values, kind="stable")
    found: Ints = ordered[np.diff(ordered, prepend=ordered[:1] - 1) != 0]
    return found
