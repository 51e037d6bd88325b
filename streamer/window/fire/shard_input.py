"""The rows of a micro-batch, sorted out: packs by pane, the clock, what passes by."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import orjson

from streamer.core.errors import StreamerError
from streamer.window.contract import RowKind, ShuffleRow
from streamer.window.pack.pack_codec import StoredPack, read_header
from streamer.window.settings.grid import Grid
from streamer.window.state.pane_store import IncomingPack

_PACK_KINDS = (RowKind.PACK, RowKind.NOW, RowKind.EXACT, RowKind.DISORDERED, RowKind.RIGHT)


class Piece(NamedTuple):
    """Effect of a piece on the clock.

    Attributes:
        first: its smallest arrival number.
        max_event_time: the largest event time that it took, ns.
        partition: names the source's partition that it is from.
    """

    first: int
    max_event_time: int
    partition: bytes


class ShardInput:
    """The rows of one shard in one micro-batch.

    Attributes:
        clock_bodies: bodies of the clock rows.
        failed: packs of messages that pass by, with a shift of 0.
        dropped: packs of messages that stage 1 dropped, with a shift of 0.
        pieces: what became of the clock in each piece of an event-time stream, in their order.
    """

    def __init__(self, rows: Iterable[ShuffleRow]) -> None:
        """Sort rows out.

        Raises:
            StreamerError: a row is of an unknown kind.
        """
        self.clock_bodies: list[bytes] = []
        self.failed: list[StoredPack] = []
        self.dropped: list[StoredPack] = []
        self.pieces: list[Piece] = []
        self._counts: list[bytes] = []
        self._newest_panes: list[tuple[int, int]] = []
        self._packs: list[ShuffleRow] = []
        for row in rows:
            if row.kind in _PACK_KINDS:
                self._packs.append(row)
                self._newest_panes.append((row.kind, row.pane))
            elif row.kind == RowKind.CLOCK:
                self.clock_bodies.append(row.body)
            elif row.kind == RowKind.COUNT:
                self._counts.append(row.body)
            elif row.kind == RowKind.NEWEST_PANE:
                self._newest_panes.append((row.body[0], row.pane))
            elif row.kind == RowKind.PIECE:
                self.pieces.append(Piece(row.arrival, row.pane, row.body))
            elif row.kind == RowKind.FAILED:
                self.failed.append((row.body, 0))
            elif row.kind == RowKind.DROPPED:
                self.dropped.append((row.body, 0))
            else:
                raise StreamerError(f"a window shard got a row of the unknown kind {row.kind}")
        self.pieces.sort()

    def dropped_counts(self) -> list[tuple[str, int]]:
        """Return what stage 1 dropped: reason and number."""
        sums: Counter[str] = Counter()
        for body in self._counts:
            sums.update(orjson.loads(body)["dropped"])
        return sorted(sums.items())

    def filtered_count(self) -> int:
        """Return how many messages the filter of stage 1 did not keep."""
        return sum(orjson.loads(body).get("filtered", 0) for body in self._counts)

    def newest_end(self, grid: Grid, now: int, closed_until: int) -> int | None:
        """Return the newest end that a message of any shard belongs to.

        Args:
            grid: the windows.
            now: T, ns.
            closed_until: at the start of the step.
        """
        times = (_pane_time(kind, pane, now, closed_until) for kind, pane in self._newest_panes)
        return max((grid.last_end(time) for time in times), default=None)

    def assign_panes(
        self, grid: Grid, now: int, closed_until: int, next_arrival: int
    ) -> tuple[dict[int, list[IncomingPack]], int]:
        """Give every pack its pane and its place in the order of arrival.

        Args:
            grid: the windows.
            now: T, ns.
            closed_until: at the start of the step.
            next_arrival: the number that the first arrival gets.

        Returns:
            Packs by pane, and the next arrival number after them.
        """
        by_pane: dict[int, list[IncomingPack]] = defaultdict(list)
        packs, next_arrival = self.number_arrivals(next_arrival)
        for pack, row in packs:
            by_pane[grid.pane_of(_pane_time(row.kind, row.pane, now, closed_until))].append(pack)
        return by_pane, next_arrival

    def number_arrivals(
        self, next_arrival: int
    ) -> tuple[list[tuple[IncomingPack, ShuffleRow]], int]:
        """Give every pack its place in the order of arrival.

        Args:
            next_arrival: the number that the first arrival gets.

        Returns:
            Packs with the rows that brought them, and the next arrival number after them.
        """
        numbered = []
        entries = [(read_header(row.body), row) for row in self._packs]
        # The rows come out of the shuffle in any order.
        entries.sort(key=lambda entry: (entry[0].first, entry[0].last, entry[1].body))
        shift, until = 0, None
        for header, row in entries:
            if until is None or header.first > until:
                # Arrivals leap between source partitions: the numbers are moved together, so that
                # they never run out.
                shift, until = next_arrival - header.first, header.last
            until = max(until, header.last)
            next_arrival = until + shift + 1
            numbered.append((IncomingPack(row.body, shift, header), row))
        return numbered, next_arrival


def _pane_time(kind: int, pane: int, now: int, closed_until: int) -> int:
    """Return a time of the pane that a row's messages belong to."""
    if kind == RowKind.NOW or (kind == RowKind.EXACT and pane == now):
        return max(now, closed_until + 1)
    return pane
