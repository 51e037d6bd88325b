"""The rows of a micro-batch, sorted out: packs by pane, the clock, what passes by."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import orjson

from streamer.errors import StreamerError
from streamer.window.grid import Grid
from streamer.window.keep import Arrived
from streamer.window.pack import Stored, peek
from streamer.window.row import Kind, Row

_PACKED = (Kind.PACK, Kind.NOW, Kind.EXACT, Kind.DISORDERED, Kind.RIGHT)


class Piece(NamedTuple):
    """What a piece did to the clock.

    Attributes:
        first: its smallest arrival number.
        newest: the largest event time that it took, ns.
        partition: names the source's partition that it is from.
    """

    first: int
    newest: int
    partition: bytes


class Intake:
    """The rows of one shard in one micro-batch.

    Attributes:
        clock: bodies of the clock rows.
        failed: packs of messages that pass by, with a shift of 0.
        dropped: packs of messages that stage 1 dropped, with a shift of 0.
        pieces: what became of the clock in each piece of an event-time stream, in their order.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        """Sort rows out.

        Raises:
            StreamerError: a row is of an unknown kind.
        """
        self.clock: list[bytes] = []
        self.failed: list[Stored] = []
        self.dropped: list[Stored] = []
        self.pieces: list[Piece] = []
        self._counts: list[bytes] = []
        self._newest: list[tuple[int, int]] = []
        self._packs: list[Row] = []
        for row in rows:
            if row.kind in _PACKED:
                self._packs.append(row)
                self._newest.append((row.kind, row.pane))
            elif row.kind == Kind.CLOCK:
                self.clock.append(row.body)
            elif row.kind == Kind.COUNT:
                self._counts.append(row.body)
            elif row.kind == Kind.NEWEST:
                self._newest.append((row.body[0], row.pane))
            elif row.kind == Kind.PIECE:
                self.pieces.append(Piece(row.arrival, row.pane, row.body))
            elif row.kind == Kind.FAILED:
                self.failed.append((row.body, 0))
            elif row.kind == Kind.DROPPED:
                self.dropped.append((row.body, 0))
            else:
                raise StreamerError(f"a window shard got a row of the unknown kind {row.kind}")
        self.pieces.sort()

    def dropped_before(self) -> list[tuple[str, int]]:
        """Return what stage 1 dropped: reason and number."""
        sums: Counter[str] = Counter()
        for body in self._counts:
            sums.update(orjson.loads(body)["dropped"])
        return sorted(sums.items())

    def filtered_before(self) -> int:
        """Return how many messages the filter of stage 1 did not keep."""
        return sum(orjson.loads(body).get("filtered", 0) for body in self._counts)

    def newest(self, grid: Grid, now: int, horizon: int) -> int | None:
        """Return the newest end that a message of any shard belongs to.

        Args:
            grid: the windows.
            now: T, ns.
            horizon: at the start of the step.
        """
        times = (_time(kind, pane, now, horizon) for kind, pane in self._newest)
        return max((grid.last_end(time) for time in times), default=None)

    def panes(
        self, grid: Grid, now: int, horizon: int, next_arrival: int
    ) -> tuple[dict[int, list[Arrived]], int]:
        """Give every pack its pane and its place in the order of arrival.

        Args:
            grid: the windows.
            now: T, ns.
            horizon: at the start of the step.
            next_arrival: the number that the first arrival gets.

        Returns:
            Packs by pane, and the next arrival number after them.
        """
        found: dict[int, list[Arrived]] = defaultdict(list)
        arrived, next_arrival = self.arrived(next_arrival)
        for pack, row in arrived:
            found[grid.pane_of(_time(row.kind, row.pane, now, horizon))].append(pack)
        return found, next_arrival

    def arrived(self, next_arrival: int) -> tuple[list[tuple[Arrived, Row]], int]:
        """Give every pack its place in the order of arrival.

        Args:
            next_arrival: the number that the first arrival gets.

        Returns:
            Packs with the rows that brought them, and the next arrival number after them.
        """
        found = []
        entries = [(peek(row.body), row) for row in self._packs]
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
            found.append((Arrived(row.body, shift, header), row))
        return found, next_arrival


def _time(kind: int, pane: int, now: int, horizon: int) -> int:
    """Return a time of the pane that a row's messages belong to."""
    if kind == Kind.NOW or (kind == Kind.EXACT and pane == now):
        return max(now, horizon + 1)
    return pane
