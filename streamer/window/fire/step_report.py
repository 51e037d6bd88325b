"""Log lines of a step, not too many, and the windows that are open."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.core.durations import format_duration
from streamer.core.timestamps import format_rfc3339
from streamer.window.contract import LogLine, OpenWindow
from streamer.window.settings.back_pressure import BackPressure
from streamer.window.settings.day_grid import DayGrid
from streamer.window.settings.grid import Grid
from streamer.window.state.pane_store import PaneIndex

_MAX_LINES: Final = 10
_MAX_WINDOWS: Final = 16
_MAX_BUCKETS: Final = 4
# JSON holds no smaller number.
_MIN_TIME_NS: Final = -(2**63)


class StepReport:
    """The log lines of a step."""

    def __init__(self) -> None:
        self._lines: list[LogLine] = []
        self._unlisted = [0, 0]
        self._having_errors = 0
        self._expired_windows = 0

    def add_late(self, count: int, until: int, closed_until: int) -> None:
        """Report late messages, the newest of whose windows ended at `until`."""
        text = (
            f"late messages were dropped: {count}; the newest of their windows ended at "
            f"{format_rfc3339(until)}, and all up to {format_rfc3339(closed_until)} have closed"
        )
        self._lines.append(LogLine("WARN", text, {"reason": "late", "messages": count}))

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
