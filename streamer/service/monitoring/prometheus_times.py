"""Times for Prometheus: summaries in nanoseconds, or histograms in seconds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from prometheus_client.core import Metric

from streamer.core.durations import SECOND
from streamer.engine.report.latency import LatencySnapshot

DEFAULT_BOUNDS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""The upper bounds of buckets that Prometheus's own clients have by default, seconds."""


def add_histogram(
    family: Metric, labels: dict[str, str], times: LatencySnapshot, bounds: Sequence[float]
) -> None:
    """Add times to a family of histograms; the upper bounds of their buckets are in seconds."""
    name = family.name
    counts = times.cumulative_counts([bound * SECOND for bound in bounds])
    for bound, number in zip(bounds, counts, strict=True):
        family.add_sample(f"{name}_bucket", {**labels, "le": f"{bound:g}"}, number)
    family.add_sample(f"{name}_bucket", {**labels, "le": "+Inf"}, sum(times.buckets.values()))
    family.add_sample(f"{name}_sum", labels, times.total / SECOND)
    family.add_sample(f"{name}_count", labels, times.count)


def add_summary(
    family: Metric,
    labels: dict[str, str],
    times: LatencySnapshot,
    objectives: Iterable[Mapping[str, Any]],
) -> None:
    """Add times to a family of summaries with the quantiles of `summary_quantiles_objectives`."""
    name = family.name
    for objective in objectives:
        share = float(objective["quantile"])
        value = times.quantile(share)
        quantile = {**labels, "quantile": f"{share:g}"}
        family.add_sample(name, quantile, math.nan if value is None else value)
    family.add_sample(f"{name}_sum", labels, times.total)
    family.add_sample(f"{name}_count", labels, times.count)
