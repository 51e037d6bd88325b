"""Builds the store of results of a stream: whether there is one, where, by which rules."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from streamer.engine.results.results_directory import RESULTS_DIRECTORY
from streamer.plan import Plan


class ResultsWriter(Protocol):
    """Keeps the results of a stream."""

    def write(self, batch: int, portions: Sequence[bytes], now: int) -> None:
        """Keep those of a micro-batch; when it returns, they are safe.

        Args:
            batch: its number.
            portions: what the workers have packed; none when there are no results.
            now: its time, ns.

        Raises:
            OSError: they could not be kept; a second call keeps them all again.
        """


def open_store(plan: Plan, checkpoint: Path, *, afresh: bool, log: Any) -> Any:
    """Return the store of a stream's results; None when it keeps none.

    Args:
        plan: the stream's plan.
        checkpoint: its directory.
        afresh: micro-batches are numbered from the beginning.
        log: takes log lines.

    Raises:
        RetentionError: what is there cannot be read, or nothing can be written.
    """
    if plan.retention is None:
        return None
    # Imported here: it takes pyarrow's reader and writer of Parquet.
    from streamer.engine.results.layout import RetentionRules
    from streamer.engine.results.result_store import ResultStore

    rules = RetentionRules(plan.retention)
    if (window := plan.window) is not None:
        rules = RetentionRules(plan.retention, window.has_sessions, window.uses_event_time)
    return ResultStore(checkpoint / RESULTS_DIRECTORY, rules, afresh=afresh, log=log)


def store_gauges(store: Any) -> dict[str, float]:
    """Return what a store keeps on the disk, by the names of metrics; nothing without a store."""
    if store is None:
        return {}
    size = store.measure()
    return {
        "retention_rows": size.rows,
        "retention_bytes": size.size,
        "retention_files": size.files,
        "retention_removed": store.removed,
    }
