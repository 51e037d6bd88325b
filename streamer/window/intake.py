"""The rows of a micro-batch, sorted out: packs by pane, the clock, what passes by."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

import orjson

from streamer.errors import StreamerError
from streamer.window.grid import Grid
from streamer.window.keep import Arrived
from streamer.window.pack import Stored, peek
from streamer.window.row import Kind, Row

_PACKED = (Kind.PACK, Kind.NOW, Kind.EXACT)


class Intake:
    """The rows of one shard in one micro-batch.

    Attributes:
        clock: bodies of the clock rows.
        failed: packs of messages that pass by, with a shift of 0.
        dropped: packs of messages that stage 1 dropped, with a shift of 0.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        """Sort rows out.

        Raises:
            StreamerError: a row is of an unknown kind.
        """
        self.clock: list[bytes] = []
        self.failed: list[Stored] = []
        self.dropped: list[Stored] = []
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
            elif row.kind == Kind.FAILED:
                self.failed.append((row.body, 0))
            elif row.kind == Kind.DROPPED:
                self.dropped.append((row.body, 0))
            else:
                raise StreamerError(f"a window shard got a row of the unknown kind {row.kind}")

    def dropped_before(self) -> list[tuple[str, int]]:
        """Return what stage 1 dropped: reason and number."""
        sums: Counter[str] = Counter()
        for body in self._counts:
            sums.update(orjson.loads(body)["dropped"])
        return sorted(sums.items())

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
            pane = grid.pane_of(_time(row.kind, row.pane, now, horizon))
            found[pane].append(Arrived(row.body, shift, header))
        return found, next_arrival


def _time(kind: int, pane: int, now: int, horizon: int) -> int:
    """Return a time of the pane that a row's messages belong to."""
    if kind == Kind.NOW or (kind == Kind.EXACT and pane == now):
        return max(now, horizon + 1)
    return pane
