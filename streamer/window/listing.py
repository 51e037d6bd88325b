"""What a step tells its reader: log lines, not too many, and the windows that are open."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.durations import format_duration
from streamer.timestamps import format_rfc3339
from streamer.window.day_grid import DayGrid
from streamer.window.grid import Grid
from streamer.window.index import Index
from streamer.window.pressure import Pressure
from streamer.window.status import LogLine, OpenWindow

_LINES: Final = 10
_WINDOWS: Final = 16
_BUCKETS: Final = 4
# JSON holds no smaller number.
_LEAST: Final = -(2**63)


class Listing:
    """The log lines of a step."""

    def __init__(self) -> None:
        self._lines: list[LogLine] = []
        self._unlisted = [0, 0]
        self._having = 0
        self._expired = 0

    def late(self, count: int, until: int, horizon: int) -> None:
        """Tell of late messages, the newest of whose windows ended at `until`."""
        text = (
            f"late messages were dropped: {count}; the newest of their windows ended at "
            f"{format_rfc3339(until)}, and all up to {format_rfc3339(horizon)} have closed"
        )
        self._lines.append(LogLine("WARN", text, {"reason": "late", "messages": count}))

    def expired(self, start: int, end: int, count: int, now: int, pressure: Pressure) -> None:
        """Tell of a window that was dropped under back pressure."""
        self._expired += 1
        if self._expired > _LINES:
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

    def having(self, why: str) -> None:
        """Tell of a window whose `having` gave no boolean."""
        self._having += 1
        if self._having <= _LINES:
            text = f"a window was suppressed, its having gave no boolean: {why}"
            self._lines.append(LogLine("ERROR", text, {"reason": "having"}))

    def lines(self) -> tuple[LogLine, ...]:
        """Give all lines, and one for what was left out."""
        if self._having > _LINES:
            more = self._having - _LINES
            text = f"{more} more windows were suppressed whose having gave no boolean"
            self._lines.append(LogLine("ERROR", text, {"reason": "having", "windows": more}))
        windows, count = self._unlisted
        if windows:
            text = f"{windows} more windows with messages: {count} expired"
            fields = {"reason": "expired", "windows": windows, "messages": count}
            self._lines.append(LogLine("ERROR", text, fields))
        return tuple(self._lines)


def open_windows(
    index: Index, grid: Grid | DayGrid, horizon: int, beyond: int = 0
) -> Iterator[OpenWindow]:
    """Give the oldest open windows that hold messages.

    Args:
        index: what is held.
        grid: the windows.
        horizon: the newest end that has closed.
        beyond: what is added to bounds as the grid names them.
    """
    panes, complete = index.first_panes(_BUCKETS)
    end = horizon
    for _ in range(_WINDOWS):
        waiting = [pane for pane in panes if grid.last_end(pane.pane) > end]
        if not waiting:
            return
        end = grid.end_at_or_after(max(waiting[0].pane, end + 1))
        if not complete and end > panes[-1].pane:
            return
        for start in grid.starts_of(end):
            inside = [pane for pane in waiting if start < pane.pane <= end]
            count, size = sum(pane.count for pane in inside), sum(pane.size for pane in inside)
            yield OpenWindow(max(start + beyond, _LEAST), end + beyond, count, size)
