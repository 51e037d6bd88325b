"""Metrics of closed windows, from the statuses of the shards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from streamer.engine.report.metric_labels import Labels
from streamer.engine.report.stream_metrics import StreamMetrics
from streamer.window.settings.window import Window

CLOSED_METRIC: Final = "window_closed"
CLOSE_DELAY_METRIC: Final = "window_close_delay_seconds"

_UNTIMED_REASONS: Final = frozenset(
    {"changes", "each", "event", "forward", "count", "expired", "retracted"}
)
"""Reasons for which a batch comes when no end of a window is due."""


def count_closed_windows(
    metrics: StreamMetrics,
    window: Window | None,
    statuses: Iterable[Mapping[str, Any]],
    clock: Callable[[], int],
    labels: Labels = MappingProxyType({}),
) -> None:
    """Count and time the windows that closed in a micro-batch, once it is delivered.

    Windows of a grid are the same in all shards, and count once. Those that each key has of its
    own are counted by their shards (`Snapshot.closed`); of very many, a shard lists the first.

    Args:
        metrics: what is added to.
        window: the windows' settings; None without.
        statuses: of the shards, after the micro-batch.
        clock: the wall clock, ns.
        labels: those of the windows' buffer, where there are several.
    """
    if window is None:
        return
    grid: set[tuple[int, str]] = set()
    ends: list[tuple[int, str]] = []
    for status in statuses:
        windows = [(one["end"], one["reason"]) for one in status.get("closed", ())]
        if status.get("open_windows") is None:
            grid.update(windows)
        else:
            ends += windows
    if grid:
        metrics.count(
            CLOSED_METRIC, labels, len({end for end, reason in grid if reason != "expired"})
        )
    for end, reason in (*grid, *ends):
        if reason not in _UNTIMED_REASONS:
            # The end of an input lets windows out before they are due.
            metrics.time(CLOSE_DELAY_METRIC, labels, max(clock() - window.due_time(end), 0))
