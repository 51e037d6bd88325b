"""Protocols of metrics and tracers: what an exporter of another package is given, and when.

`build(parsed, context)` of a component of kind `metrics` returns a `MetricsExporter`; that of kind
`tracer` a `TraceExporter`. Both run in the driver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol


class MetricSample(NamedTuple):
    """One figure.

    Attributes:
        name: the metric's name, after the mapping of the section `metrics`.
        kind: `counter`, `gauge`, or `untyped`. A timing is two counters, `NAME_count` and
            `NAME_sum` in ns, and a gauge `NAME` for each of the quantiles 0.5, 0.9 and 0.99.
        labels: its labels; `stream` is among them where there are many streams.
        value: its value; a counter's is the sum since the start.
    """

    name: str
    kind: str
    labels: Mapping[str, str]
    value: float


class MetricsExporter(Protocol):
    """Exports metrics on an interval.

    Attributes:
        interval: the time between two exports, ns.
    """

    interval: int

    def export(self, samples: Sequence[MetricSample], is_last: bool) -> None:
        """Send figures; an error is logged, and does not stop the stream.

        Args:
            samples: all figures.
            is_last: whether the program ends, or has another config from now on.
        """


class TraceSpan(NamedTuple):
    """Something that a micro-batch did.

    Attributes:
        name: `micro_batch`, `input`, `buffer`, `processor`, `output`.
        parent: the index of the span that it is in; -1 for the micro-batch.
        label: the component's label.
        path: the component's path.
        began: Unix ns.
        ended: Unix ns.
        attributes: more about it; `stream` and `micro_batch` of the micro-batch's.
    """

    name: str
    parent: int
    label: str
    path: str
    began: int
    ended: int
    attributes: Mapping[str, Any]


class TraceExporter(Protocol):
    """Exports the spans of micro-batches."""

    def export(self, spans: Sequence[TraceSpan]) -> None:
        """Send the spans of one micro-batch; an error is logged, and does not stop the stream."""

    def flush(self) -> None:
        """Send what waits: the stream ends."""
