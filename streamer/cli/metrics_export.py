"""Exports metrics without a request: pushed, logged, or written at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from streamer.core.log_format import LogLine
from streamer.sdk.spec import ParsedComponent
from streamer.service.monitoring.stream_view import Views


@contextmanager
def export_metrics(metrics: ParsedComponent, views: Views, log: LogLine) -> Iterator[None]:
    """Export metrics on their interval while the block runs, and once when it ends.

    Args:
        metrics: the `metrics` section.
        views: gives the streams by id; a single one has an empty id.
        log: takes log lines.
    """
    if metrics.name == "logger":
        from streamer.service.monitoring.metrics_log import MetricsLog

        exporter = MetricsLog(views, log, resets_counters=metrics.config["flush_metrics"]).write
        interval = metrics.config["push_interval"]
    elif metrics.name == "prometheus" and (
        metrics.config["push_url"] or metrics.config["file_output_path"]
    ):
        # Imported here: few configs need Prometheus's client.
        from streamer.service.monitoring.prometheus_push import PrometheusExporter

        exporter = PrometheusExporter(metrics, views, log).export
        interval = metrics.config["push_interval"] if metrics.config["push_url"] else None
    else:
        yield
        return
    from streamer.service.monitoring.periodic import PeriodicTask

    repeated = PeriodicTask(exporter, interval)
    try:
        yield
    finally:
        repeated.stop()
