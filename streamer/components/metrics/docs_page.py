"""The tables of metrics on the page about them, written by the catalogue."""

from __future__ import annotations

from streamer.components.metrics.metric import Metric, MetricKind
from streamer.components.metrics.metric_names import METRIC_GROUPS

_TYPE_TEXTS = {MetricKind.TIMING: "summary, or histogram in seconds"}


def format_tables() -> str:
    """Return the tables as Markdown, one for each group."""
    parts = []
    for title, metrics in METRIC_GROUPS.items():
        rows = ["| metric | type, unit | meaning | remedy |", "|---|---|---|---|"]
        parts.append("\n".join([f"## {title}\n", *rows, *map(_format_row, metrics)]))
    return "\n\n".join(parts)


def _format_row(metric: Metric) -> str:
    labels = f"{{{', '.join(metric.labels)}}}" if metric.labels else ""
    kind = _TYPE_TEXTS.get(metric.kind, str(metric.kind))
    return f"| `{metric.name}{labels}` | {kind}; {metric.unit} | {metric.about} | {metric.advice} |"
