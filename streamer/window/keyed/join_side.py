"""One side of a join: the messages that wait for a match, and incoming ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from streamer.window.keyed.arrival_times import IdleMessages
from streamer.window.keyed.join_matching import EventColumns
from streamer.window.keyed.matched_bits import MatchedBits
from streamer.window.keyed.message_rows import LoadedPack
from streamer.window.keyed.message_store import MessageStore
from streamer.window.keyed.state import FOREVER, MIN_TIME_NS
from streamer.window.settings.int_codec import Ints
from streamer.window.state_store import StateStore


class UnmatchedRow(NamedTuple):
    """A message that is freed without a match.

    Attributes:
        time: its event time, ns.
        arrival: its arrival number.
        key: its key, empty without keys.
        loaded: its pack.
        row: its row there.
    """

    time: int
    arrival: int
    key: bytes
    loaded: LoadedPack
    row: int


class PackRows(NamedTuple):
    """Some messages of a pack.

    Attributes:
        loaded: the pack.
        rows: their rows.
    """

    loaded: LoadedPack
    rows: Ints

    @property
    def times(self) -> Ints:
        """Event times of the messages, ns."""
        return self.loaded.times[self.rows]


class JoinSide:
    """A side of a join in one micro-batch.

    Attributes:
        store: the side's messages.
        incoming: the messages of this micro-batch that are not late.
        loaded_packs: packs by `EventColumns.pack_numbers` of `to_events`.
    """

    def __init__(
        self, store: StateStore, matched: MatchedBits, entries: list[list[int]], seq: int
    ) -> None:
        """Open the side's messages.

        Args:
            store: the shard's state.
            matched: the messages that have found a match.
            entries: the side's packs, as the head of the state lists them.
            seq: the seq of its next pack.
        """
        self.store = MessageStore(store, False, entries, seq)
        self.incoming: list[PackRows] = []
        self.loaded_packs: list[LoadedPack] = []
        self._matched = matched

    def add_incoming(self, loaded: LoadedPack, rows: Ints) -> int:
        """Add incoming messages of a pack, by row; return their number."""
        if len(rows):
            self.incoming.append(PackRows(loaded, rows))
        return len(rows)

    def rows_near(self, lows: Ints, highs: Ints) -> Iterator[PackRows]:
        """Give waiting messages of earlier micro-batches that may match other events.

        Args:
            lows: by event, the least time of a match, ns.
            highs: by event, the largest.
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
        """Convert messages to events.

        Args:
            pack_rows: the messages.
            keys: for each of `pack_rows`, the key ids of its messages.
            below: messages with this key id or a larger one are left out.
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
        self, until: int | None, idle: IdleMessages | None, lists_unmatched: bool
    ) -> tuple[int, int, list[UnmatchedRow]]:
        """Free messages older than a time and idle ones, or all.

        Args:
            until: the time, ns; None for all.
            idle: messages that have waited for `idle_timeout`; None without any.
            lists_unmatched: whether to return the messages without a match.

        Returns:
            How many were freed, how many of them had no match, and the latter if listed.
        """
        count = without = 0
        alone: list[UnmatchedRow] = []
        high = FOREVER if until is None else until if idle is None else max(until, idle.high)
        for loaded in list(self.store.packs_between(MIN_TIME_NS, high)):
            going = ~loaded.freed
            if until is not None:
                is_due = loaded.times < until
                going &= is_due if idle is None else is_due | (loaded.pack.arrivals < idle.before)
            rows = np.flatnonzero(going)
            if len(rows):
                count += len(rows)
                loaded.free(rows)
                unmatched = rows[~self._matched.pop(loaded.pack.arrivals[rows])]
                without += len(unmatched)
                if lists_unmatched:
                    alone += self._iterate_unmatched(loaded, unmatched)
        return count, without, alone

    def earliest_time(self, until: int) -> int | None:
        """Return the least event time of a message that waits, ns; None without any.

        Args:
            until: messages older than this have been freed, so that their packs' bounds say
                nothing of those that are left.
        """
        least: list[int] = []
        for low, loaded in self.store.iterate_lows(until):
            if loaded is None:
                least.append(low)
            elif not loaded.freed.all():
                least.append(int(loaded.times[~loaded.freed].min()))
        return min(least, default=None)

    def _iterate_unmatched(self, loaded: LoadedPack, rows: Ints) -> Iterable[UnmatchedRow]:
        pack = loaded.pack
        if not len(rows):
            return
        groups = np.searchsorted(np.array(pack.starts), rows, "right") - 1
        keys = [pack.keys[group] if pack.keys else b"" for group in groups.tolist()]
        times, arrivals = loaded.times[rows].tolist(), pack.arrivals[rows].tolist()
        for time, arrival, key, row in zip(times, arrivals, keys, rows.tolist(), strict=True):
            yield UnmatchedRow(time, arrival, key, loaded, row)
