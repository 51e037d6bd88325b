"""The figures of a stream on the driver: what its workers counted and timed, and what it did."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

import orjson

from streamer.core.component_stats import bucket_of
from streamer.engine.report.latency import LatencyHistogram, LatencySnapshot
from streamer.engine.report.result_frame import GAUGE_MARK, PEAK_MARK

SeriesKey = tuple[str, tuple[tuple[str, str], ...]]
"""A metric's name, and its labels with their values, sorted."""


EVENT_TIME: Final = "event_time"
"""The event time, Unix ns, of the newest of the last messages of a micro-batch's pieces."""


def series_key(name: str, labels: Mapping[str, str]) -> SeriesKey:
    """Return what a figure is kept under."""
    return name, tuple(sorted(labels.items()))


class StreamMetrics:
    """Counts and times since the start of the program. Others may ask while they are added to.

    Attributes:
        counts: counters and gauges, by name and labels.
        peaks: the largest values of the micro-batch in hand, by name and labels.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Begin at nothing; `now` is a clock that never runs backwards, seconds."""
        self.counts: Counter[SeriesKey] = Counter()
        self.peaks: dict[SeriesKey, int] = {}
        self._latencies: dict[SeriesKey, LatencyHistogram] = {}
        self._now = now

    def count(self, name: str, labels: Mapping[str, str], by: int = 1) -> None:
        """Add to a counter."""
        self.counts[series_key(name, labels)] += by

    def set(self, name: str, labels: Mapping[str, str], value: float | None) -> None:
        """Set a gauge; None removes it."""
        if value is None:
            self.counts.pop(series_key(name, labels), None)
        else:
            self.counts[series_key(name, labels)] = value  # type: ignore[assignment]

    def time(self, name: str, labels: Mapping[str, str], ns: int) -> None:
        """Add one time, ns."""
        self._latency_of(name, labels).add(ns, [(bucket_of(ns), 1)], self._now())

    def add_counts(self, body: bytes) -> dict[str, int]:
        """Add a frame of counts; return what has been added, by name alone."""
        added: Counter[str] = Counter()
        for name, by, labels, *how in orjson.loads(body):
            if how == [GAUGE_MARK]:
                self.counts[series_key(name, labels)] = by
                continue
            if how == [PEAK_MARK]:
                key = series_key(name, labels)
                self.peaks[key] = max(self.peaks.get(key, by), by)
                continue
            self.count(name, labels, by)
            added[name] += by
        return added

    def add_timings(self, body: bytes) -> None:
        """Add a frame of times."""
        for name, total, buckets, labels in orjson.loads(body):
            pairs = [(int(bucket), number) for bucket, number in buckets.items()]
            self._latency_of(name, labels).add(total, pairs, self._now())

    def times(self) -> dict[SeriesKey, LatencySnapshot]:
        """Return all times."""
        now = self._now()
        return {key: timing.times(now) for key, timing in dict(self._latencies).items()}

    def _latency_of(self, name: str, labels: Mapping[str, str]) -> LatencyHistogram:
        return self._latencies.setdefault(series_key(name, labels), LatencyHistogram())
