"""Times for Prometheus: summaries in nanoseconds or, when asked for, histograms in seconds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from prometheus_client.core import Metric

from streamer.durations import SECOND
from streamer.engine.timing import Times

_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""The upper bounds of buckets that Prometheus's own clients have by default, seconds."""


def add_times(
    family: Metric, labels: dict[str, str], times: Times, config: Mapping[str, Any]
) -> None:
    """Add the samples of one component's times to a family of them.

    Args:
        family: what they are added to.
        labels: the component's.
        times: its times.
        config: the fields of `metrics.prometheus`.
    """
    name = family.name
    if config["use_histogram_timing"]:
        for bound in (*(sorted(config["histogram_buckets"]) or _BOUNDS), math.inf):
            le = "+Inf" if bound == math.inf else f"{bound:g}"
            family.add_sample(f"{name}_bucket", {**labels, "le": le}, times.up_to(bound * SECOND))
        family.add_sample(f"{name}_sum", labels, times.total / SECOND)
        family.add_sample(f"{name}_count", labels, times.count)
        return
    for objective in config["summary_quantiles_objectives"]:
        share = float(objective["quantile"])
        found = times.quantile(share)
        quantile = {**labels, "quantile": f"{share:g}"}
        family.add_sample(name, quantile, math.nan if found is None else found)
    family.add_sample(f"{name}_sum", labels, times.total)
    family.add_sample(f"{name}_count", labels, times.count)
