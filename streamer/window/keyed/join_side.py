"""One side of a join: the messages that wait for a match, and what came in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from streamer.window.contract.state_store import StateStore
from streamer.window.keyed.join_matching import EventColumns
from streamer.window.keyed.matched_bits import MatchedBits
from streamer.window.keyed.message_rows import LoadedPack
from streamer.window.keyed.message_store import MessageStore
from streamer.window.settings.int_codec import Ints

_MIN_TIME_NS = -(2**63)
_MAX_TIME_NS = 2**63 - 1


class UnmatchedRow(NamedTuple):
    """A message that leaves without a match.

    Attributes:
        time: its event time, ns.
        arrival: its number.
        key: its key, empty without keys.
        loaded: what it is on.
        row: and where there.
    """

    time: int
    arrival: int
    key: bytes
    loaded: LoadedPack
    row: int


class PackRows(NamedTuple):
    """Some messages of a page.

    Attributes:
        loaded: the page.
        rows: where they are on it.
    """

    loaded: LoadedPack
    rows: Ints

    @property
    def times(self) -> Ints:
        """Their event times, ns."""
        return self.loaded.times[self.rows]


class JoinSide:
    """A side in one micro-batch.

    Attributes:
        store: its messages.
        incoming: the messages that came in.
        loaded_packs: the pages of the events that were given, by their number.
    """

    def __init__(
        self, store: StateStore, matched: MatchedBits, entries: list[list[int]], seq: int
    ) -> None:
        """Take what the head of the shard's state knows of it.

        Args:
            store: the shard's state.
            matched: the messages that have found a match.
            entries: its packs.
            seq: the number of its next pack.
        """
        self.store = MessageStore(store, False, entries, seq)
        self.incoming: list[PackRows] = []
        self.loaded_packs: list[LoadedPack] = []
        self._matched = matched

    def add_incoming(self, loaded: LoadedPack, rows: Ints) -> int:
        """Take the messages of a page that came in, by their rows; return how many they are."""
        if len(rows):
            self.incoming.append(PackRows(loaded, rows))
        return len(rows)

    def rows_near(self, lows: Ints, highs: Ints) -> Iterator[PackRows]:
        """Give what waits since earlier micro-batches and may be near other events.

        Args:
            lows: by event, the least time of what is near it.
            highs: the largest.
        """
        if not len(lows):
            return
        low, high = int(lows.min()), int(highs.max())
        for loaded in self.store.packs_between(low, high):
            if loaded.entry is not None:
                times = loaded.times
                rows = np.flatnonzero((times >= low) & (times <= high) & ~loaded.freed)
                if len(rows):
                    yield PackRows(loaded, rows)

    def to_events(
        self, pack_rows: Sequence[PackRows], keys: Iterable[Ints], below: int
    ) -> EventColumns:
        """Return messages as events.

        Args:
            pack_rows: the messages.
            keys: by share and message, the numbers of the keys.
            below: leave those out whose keys have larger numbers.
        """
        parts = []
        for (loaded, rows), of_rows in zip(pack_rows, keys, strict=True):
            some = of_rows < below
            if not some.all():
                rows, of_rows = rows[some], of_rows[some]
            if len(rows):
                number = np.full(len(rows), len(self.loaded_packs))
                self.loaded_packs.append(loaded)
                times, arrivals = loaded.times[rows], loaded.pack.arrivals[rows]
                parts.append(EventColumns(of_rows, times, arrivals, number, rows))
        return EventColumns.concat(parts)

    def free_expired(
        self, until: int | None, lists_unmatched: bool
    ) -> tuple[int, int, list[UnmatchedRow]]:
        """Give back what is older than a time, or all.

        Args:
            until: the time, ns; None for all.
            lists_unmatched: whether it is asked which of them are without a match.

        Returns:
            How many there are, how many of them are without a match, and these if asked for.
        """
        count = without = 0
        alone: list[UnmatchedRow] = []
        for loaded in list(
            self.store.packs_between(_MIN_TIME_NS, _MAX_TIME_NS if until is None else until)
        ):
            going = ~loaded.freed if until is None else ~loaded.freed & (loaded.times < until)
            rows = np.flatnonzero(going)
            if len(rows):
                count += len(rows)
                loaded.free(rows)
                unmatched = rows[~self._matched.pop(loaded.pack.arrivals[rows])]
                without += len(unmatched)
                if lists_unmatched:
                    alone += self._iterate_unmatched(loaded, unmatched)
        return count, without, alone

    def _iterate_unmatched(self, loaded: LoadedPack, rows: Ints) -> Iterable[UnmatchedRow]:
        pack = loaded.pack
        if not len(rows):
            return
        groups = np.searchsorted(np.array(pack.starts), rows, "right") - 1
        keys = [pack.keys[group] if pack.keys else b"" for group in groups.tolist()]
        times, arrivals = loaded.times[rows].tolist(), pack.arrivals[rows].tolist()
        for time, arrival, key, row in zip(times, arrivals, keys, rows.tolist(), strict=True):
            yield UnmatchedRow(time, arrival, key, loaded, row)
