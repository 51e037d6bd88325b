"""Every metric that there is: its name, type, labels, unit and meaning, and what to do about it.

The names of components' metrics are Benthos's; a config's own (`metric` processors) come on top.
"""

from __future__ import annotations

from typing import Final

from streamer.components.metrics.component_metrics import (
    BUFFER_METRICS,
    INPUT_METRICS,
    OUTPUT_METRICS,
    PROCESSOR_METRICS,
    RESOURCE_METRICS,
)
from streamer.components.metrics.process_metrics import PROCESS_METRICS
from streamer.components.metrics.stream_metrics import STREAM_METRICS, WINDOW_METRICS

METRIC_GROUPS: Final = {
    "Inputs": INPUT_METRICS,
    "Buffers": BUFFER_METRICS,
    "Processors": PROCESSOR_METRICS,
    "Outputs": OUTPUT_METRICS,
    "Caches, rate limits and lookup tables": RESOURCE_METRICS,
    "Windows": WINDOW_METRICS,
    "Streams": STREAM_METRICS,
    "The process": PROCESS_METRICS,
}
"""Metrics by what they are of, in the order of the documentation."""

METRICS: Final = {metric.name: metric for group in METRIC_GROUPS.values() for metric in group}
"""Metrics by name."""

HISTOGRAM_BOUNDS_S: Final = {
    "window_close_delay_seconds": (0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0, 300.0),
    "batch_duration_seconds": (0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0, 300.0),
}
"""The upper bounds of the buckets of histograms, seconds."""
