"""Figures that a config asks for itself, gathered in one task: counters, gauges and times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from streamer.core.component_stats import ComponentStats

MetricKey = tuple[str, tuple[tuple[str, str], ...]]
"""A metric's name, and its labels with their values, sorted."""


class CustomMetrics:
    """The counters, gauges and timings of a config's `metric` processors.

    Attributes:
        counts: what counters have grown by.
        gauges: what gauges were set to last.
        times: how long things took.
        peaks: the largest values that were seen.
    """

    __slots__ = ("counts", "gauges", "times", "peaks")

    def __init__(self) -> None:
        """Begin with nothing."""
        self.counts: Counter[MetricKey] = Counter()
        self.gauges: dict[MetricKey, float] = {}
        self.times: dict[MetricKey, ComponentStats] = {}
        self.peaks: dict[MetricKey, int] = {}

    def add_count(self, name: str, labels: Mapping[str, str], by: float) -> None:
        """Let a counter grow."""
        self.counts[_key(name, labels)] += by  # type: ignore[assignment]

    def set_gauge(self, name: str, labels: Mapping[str, str], value: float) -> None:
        """Set a gauge."""
        self.gauges[_key(name, labels)] = value

    def keep_max(self, name: str, labels: Mapping[str, str], value: int) -> None:
        """Keep a value, if it is the largest."""
        key = _key(name, labels)
        self.peaks[key] = max(self.peaks.get(key, value), value)

    def add_time(self, name: str, labels: Mapping[str, str], ns: int) -> None:
        """Add a time, ns."""
        self.times.setdefault(_key(name, labels), ComponentStats()).add_latency(ns, 1)

    def merge(self, other: CustomMetrics) -> None:
        """Add what others have gathered after this."""
        self.counts.update(other.counts)
        self.gauges.update(other.gauges)
        for key, value in other.peaks.items():
            self.peaks[key] = max(self.peaks.get(key, value), value)
        for key, tally in other.times.items():
            self.times.setdefault(key, ComponentStats()).add(tally)


def _key(name: str, labels: Mapping[str, str]) -> MetricKey:
    return name, tuple(sorted(labels.items()))
