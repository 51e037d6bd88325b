"""Description of a metric."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class MetricKind(StrEnum):
    """Types of metrics; the first three are Prometheus's words."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    TIMING = "timing"
    """A summary in ns, or a histogram in seconds, as `metrics.prometheus` wants it."""


class Metric(NamedTuple):
    """A metric.

    Attributes:
        name: its name.
        kind: its type.
        labels: the names of its labels; `stream` comes to each where there are many streams.
        unit: what it counts or measures in.
        about: what it means, in a sentence.
        advice: what to do when it is high, or low where that is bad; empty for nothing.
    """

    name: str
    kind: MetricKind
    labels: tuple[str, ...]
    unit: str
    about: str
    advice: str = ""
