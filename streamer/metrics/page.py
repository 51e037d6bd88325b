"""The tables of metrics on the page about them, written by the catalogue."""

from __future__ import annotations

from streamer.metrics.catalogue import GROUPS
from streamer.metrics.metric import Metric, MetricKind

_TYPES = {MetricKind.TIMING: "summary, or histogram in seconds"}


def tables() -> str:
    """Return the tables as Markdown, one for each group."""
    parts = []
    for title, metrics in GROUPS.items():
        rows = ["| metric | type, unit | meaning | what to do |", "|---|---|---|---|"]
        parts.append("\n".join([f"### {title}\n", *rows, *map(_row, metrics)]))
    return "\n\n".join(parts)


def _row(metric: Metric) -> str:
    labels = f"{{{', '.join(metric.labels)}}}" if metric.labels else ""
    kind = _TYPES.get(metric.kind, str(metric.kind))
    return f"| `{metric.name}{labels}` | {kind}; {metric.unit} | {metric.about} | {metric.todo} |"
