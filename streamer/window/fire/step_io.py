"""Input and report of a step: rows sorted out, messages that bypass windows, log lines."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import orjson

from streamer.core.durations import format_duration
from streamer.core.errors import StreamerError
from streamer.core.timestamps import format_rfc3339
from streamer.window.assign.pack_builder import DROP_REASON
from streamer.window.contract import (
    MAX_DROPPED_SAMPLES,
    Counters,
    DroppedEntry,
    DroppedSample,
    Emission,
    LogLine,
    OpenWindow,
    RowKind,
    ShuffleRow,
)
from streamer.window.fire.fire_window import iterate_in_order
from streamer.window.pack.message_columns import MessageBuilder
from streamer.window.pack.pack_codec import StoredPack, read_header
from streamer.window.settings.back_pressure import BackPressure
from streamer.window.settings.day_grid import DayGrid
from streamer.window.settings.grid import Grid
from streamer.window.state.pane_store import IncomingPack, PaneIndex

_PACK_KINDS = (RowKind.PACK, RowKind.NOW, RowKind.EXACT, RowKind.DISORDERED, RowKind.RIGHT)

_MAX_LINES: Final = 10
_MAX_WINDOWS: Final = 16
_MAX_BUCKETS: Final = 4
# JSON holds no smaller number.
_MIN_TIME_NS: Final = -(2**63)


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
        self._first_times: list[tuple[int, int]] = []
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
            elif row.kind == RowKind.FIRST_TIME:
                self._first_times.append((row.arrival, row.pane))
            elif row.kind == RowKind.FAILED:
                self.failed.append((row.body, 0))
            elif row.kind == RowKind.DROPPED:
                self.dropped.append((row.body, 0))
            else:
                raise StreamerError(f"a window shard got a row of the unknown kind {row.kind}")
        self.pieces.sort()

    @property
    def first_time(self) -> int | None:
        """Event time of the first message that was taken, ns; None without one."""
        return min(self._first_times)[1] if self._first_times else None

    def dropped_counts(self) -> list[tuple[str, int]]:
        """Return what stage 1 dropped: reason and number."""
        sums: Counter[str] = Counter()
        for body in self._counts:
            sums.update(orjson.loads(body)["dropped"])
        return sorted(sums.items())

    def dropped_samples(self) -> list[DroppedEntry]:
        """Return the first messages that stage 1 dropped, each with the reason."""
        listed = (one for body in self._counts for one in orjson.loads(body).get("samples", ()))
        return [
            (reason, DroppedSample(payload, detail=detail))
            # The rows come out of the shuffle in any order.
            for reason, payload, detail in sorted(listed)[: _MAX_LINES * MAX_DROPPED_SAMPLES]
        ]

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


def emit_passthrough(shard_input: ShardInput, counters: Counters) -> Iterator[Emission]:
    """Emit messages that go into no window, and count those that stage 1 has sorted out."""
    for reason, count in shard_input.dropped_counts():
        counters.count_dropped(reason, count)
    counters.filtered += shard_input.filtered_count()
    for columns in iterate_in_order(shard_input.failed):
        for message in MessageBuilder({}).build_messages(
            columns.payloads, columns.metas, columns.meta_ids
        ):
            counters.failed += 1
            yield Emission(None, [message], "failed")
    for columns in iterate_in_order(shard_input.dropped):
        messages = MessageBuilder({}).build_messages(
            columns.payloads, columns.metas, columns.meta_ids
        )
        yield Emission(None, messages, "dropped")


def emit_to_late_output(stored: list[StoredPack], reason: str, skip: int = 0) -> Iterator[Emission]:
    """Give messages to `late_output`, in order of arrival.

    Args:
        stored: their packs.
        reason: why they were dropped.
        skip: so many of the first messages were not.
    """
    # What was aggregated before the config had a late_output is counted, and cannot be handed on.
    metas = MessageBuilder({DROP_REASON: reason})
    for columns in iterate_in_order(
        [entry for entry in stored if not read_header(entry[0]).is_aggregated]
    ):
        messages = metas.build_messages(columns.payloads, columns.metas, columns.meta_ids)
        passed, skip = messages[skip:], max(0, skip - len(messages))
        if passed:
            yield Emission(None, passed, "dropped")


class StepReport:
    """The log lines of a step.

    Attributes:
        dropped: the first messages that it dropped, each with the reason.
    """

    def __init__(self) -> None:
        self.dropped: list[DroppedEntry] = []
        self._lines: list[LogLine] = []
        self._unlisted = [0, 0]
        self._having_errors = 0
        self._expired_windows = 0

    def add_late(
        self, count: int, until: int, closed_until: int, samples: Sequence[DroppedSample]
    ) -> None:
        """Report late messages, the newest of whose windows ended at `until`, and some of them."""
        self.dropped += [("late", one) for one in samples[:MAX_DROPPED_SAMPLES]]
        sample = samples[0] if samples else None
        text = (
            f"late messages were dropped: {count}; the newest of their windows ended at "
            f"{format_rfc3339(until)}, and all up to {format_rfc3339(closed_until)} have closed"
        )
        self._lines.append(LogLine("WARN", text, {"reason": "late", "messages": count}, sample))

    def add_expired(
        self, start: int, end: int, count: int, now: int, pressure: BackPressure
    ) -> None:
        """Report a window that was dropped under back pressure."""
        self._expired_windows += 1
        if self._expired_windows > _MAX_LINES:
            self._unlisted[0] += 1
            self._unlisted[1] += count
            return
        bounds = f"({format_rfc3339(start)}, {format_rfc3339(end)}]"
        text = (
            f"the window {bounds} with messages: {count} expired, it was not emitted within "
            f"{format_duration(now - end)} of its end since {pressure.reason}"
        )
        fields = {"reason": "expired", "cause": pressure.cause, "messages": count}
        fields["window_end"] = format_rfc3339(end)
        self._lines.append(LogLine("ERROR", text, fields))

    def add_having_error(self, why: str) -> None:
        """Report a window whose `having` gave no boolean."""
        self._having_errors += 1
        if self._having_errors <= _MAX_LINES:
            text = f"a window was suppressed, its having gave no boolean: {why}"
            self._lines.append(LogLine("ERROR", text, {"reason": "having"}))

    def log_lines(self) -> tuple[LogLine, ...]:
        """Return all lines, and one for those that were left out."""
        if self._having_errors > _MAX_LINES:
            more = self._having_errors - _MAX_LINES
            text = f"{more} more windows were suppressed whose having gave no boolean"
            self._lines.append(LogLine("ERROR", text, {"reason": "having", "windows": more}))
        windows, count = self._unlisted
        if windows:
            text = f"{windows} more windows with messages: {count} expired"
            fields = {"reason": "expired", "windows": windows, "messages": count}
            self._lines.append(LogLine("ERROR", text, fields))
        return tuple(self._lines)


def list_open_windows(
    index: PaneIndex, grid: Grid | DayGrid, closed_until: int, bound_offset: int = 0
) -> Iterator[OpenWindow]:
    """Give the oldest open windows that hold messages.

    Args:
        index: what is held.
        grid: the windows.
        closed_until: the newest end that has closed.
        bound_offset: what is added to bounds as the grid names them.
    """
    panes, complete = index.first_panes(_MAX_BUCKETS)
    end = closed_until
    for _ in range(_MAX_WINDOWS):
        waiting = [pane for pane in panes if grid.last_end(pane.pane) > end]
        if not waiting:
            return
        end = grid.end_at_or_after(max(waiting[0].pane, end + 1))
        if not complete and end > panes[-1].pane:
            return
        for start in grid.starts_of(end):
            inside = [pane for pane in waiting if start < pane.pane <= end]
            count, size = sum(pane.count for pane in inside), sum(pane.size for pane in inside)
            yield OpenWindow(
                max(start + bound_offset, _MIN_TIME_NS), end + bound_offset, count, size
            )
