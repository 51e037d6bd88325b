"""Facts of the service for its page: versions, what each stream costs, checkpoints, executors."""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from streamer import __version__
from streamer.core.component_stats import bucket_middle
from streamer.core.durations import SECOND
from streamer.core.timestamps import format_unix_seconds
from streamer.engine.driver.checkpoint_metrics import CheckpointMetrics
from streamer.engine.driver.delivery import DURATION_METRIC
from streamer.engine.report.latency import LatencySnapshot
from streamer.service.fleet.managed_stream import ManagedStream
from streamer.service.monitoring.process_metrics import is_spark_loaded, package_version

_RECENT_S: Final = 600.0
"""How far the recent times of a latency go back."""

_COMMITS: Final = "spark*/commits"


@dataclass(frozen=True)
class StartOptions:
    """Time and options of the start of the service.

    Attributes:
        started_at: when, Unix ns.
        checkpoints: where the checkpoints are, for people.
        options: of the command line, by name.
    """

    started_at: int = field(default_factory=time.time_ns)
    checkpoints: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)


def describe_versions() -> dict[str, Any]:
    """Return the versions that run; that of Java is None until Spark has started."""
    facts: dict[str, Any] = {
        "version": __version__,
        "python": platform.python_version(),
        "spark": package_version("pyspark"),
        "java": None,
        "master": None,
        "heap_used": None,
        "heap_max": None,
        "executors": None,
    }
    if is_spark_loaded():
        from streamer.spark.session.runtime_metrics import read_runtime_facts

        facts |= read_runtime_facts()
    return facts


def describe_cost(managed: ManagedStream) -> dict[str, Any]:
    """Return what a stream costs: the seconds of its micro-batches since its run has begun.

    `batch_share` is the part of the last ten minutes, or of the run if that is shorter; it is None
    before the first micro-batch.
    """
    times = managed.view.current_state().times.get((DURATION_METRIC, ()), LatencySnapshot())
    uptime = managed.uptime_ns() / SECOND
    recent = sum(bucket_middle(one) * number for one, number in times.recent.items()) / SECOND
    span = min(_RECENT_S, uptime)
    known = times.count > 0 and span > 0
    return {
        "id": managed.stream_id,
        "condition": managed.condition()["name"],
        "batches": times.count,
        "batch_seconds": round(times.total / SECOND, 3) if times.count else None,
        "batch_share": round(min(recent / span, 1.0), 4) if known else None,
    }


class CheckpointSizes:
    """Sizes and ages of the streams' checkpoints; sizes are measured once a minute at most."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """Begin with none; `clock` gives Unix s."""
        self._clock = clock
        self._lock = threading.Lock()
        self._metrics: dict[str, CheckpointMetrics] = {}

    def describe(self, streams: Mapping[str, ManagedStream], place: str) -> list[dict[str, Any]]:
        """Return the checkpoints for JSON, in the order of the streams.

        Args:
            streams: by id.
            place: where the checkpoints are: a directory, or a URL.
        """
        with self._lock:
            for stream_id in self._metrics.keys() - streams.keys():
                del self._metrics[stream_id]
            return [*self._describe_each(streams, is_local="://" not in place)]

    def _describe_each(
        self, streams: Mapping[str, ManagedStream], is_local: bool
    ) -> Iterator[dict[str, Any]]:
        for stream_id, managed in streams.items():
            directory = Path(managed.directory)
            metrics = self._metrics.setdefault(
                stream_id, CheckpointMetrics(directory, whole=is_local)
            )
            committed = managed.view.current_state().last_delivery
            if committed is None and is_local:
                committed = _newest_commit(directory)
            size = metrics.read_gauges().get("checkpoint_bytes") if directory.is_dir() else None
            yield {
                "id": stream_id,
                "directory": managed.directory,
                "bytes": size,
                "last_commit": None if committed is None else format_unix_seconds(committed),
                "age": None if committed is None else round(self._clock() - committed, 1),
            }


def _newest_commit(directory: Path) -> float | None:
    """Return when a checkpoint has committed last, Unix s: its directory of commits has changed."""
    times = []
    for commits in directory.glob(_COMMITS):
        try:
            times.append(os.stat(commits).st_mtime)
        except OSError:
            continue
    return max(times, default=None)
