"""What windows that have closed add to a stream's figures, as the driver hears it of the shards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from streamer.engine.meters import Meters
from streamer.window.system import SystemWindow
from streamer.window.words import AnyWindow

CLOSED: Final = "window_closed"
CLOSE_DELAY: Final = "window_close_delay_seconds"

_UNTIMED: Final = frozenset({"changes", "each", "event", "forward", "count", "expired"})
"""Reasons for which a batch comes when no end of a window is due."""


def closed(
    meters: Meters,
    window: AnyWindow | None,
    statuses: Iterable[Mapping[str, Any]],
    clock: Callable[[], int],
) -> None:
    """Count and time the windows that closed in a micro-batch, once it is delivered.

    Windows of a grid are the same in all shards, and count once. Those that each key has of its
    own are counted by their shards (`Snapshot.closed`); of very many, a shard lists the first.

    Args:
        meters: what is added to.
        window: the windows' settings; None without.
        statuses: of the shards, after the micro-batch.
        clock: the wall clock, ns.
    """
    if window is None:
        return
    grid: set[tuple[int, str]] = set()
    ends: list[tuple[int, str]] = []
    for status in statuses:
        found = [(one["end"], one["reason"]) for one in status.get("closed", ())]
        if status.get("open_windows") is None:
            grid.update(found)
        else:
            ends += found
    if grid:
        meters.count(CLOSED, {}, len({end for end, reason in grid if reason != "expired"}))
    due = window.due if isinstance(window, SystemWindow) else window.closes
    for end, reason in (*grid, *ends):
        if reason not in _UNTIMED:
            # The end of an input lets windows out before they are due.
            meters.time(CLOSE_DELAY, {}, max(clock() - due(end), 0))
