"""What becomes of metrics that nobody asks for: pushed, logged, or written at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from streamer.engine.delivery import LogLine
from streamer.service.view import Views
from streamer.spec import ParsedComponent


@contextmanager
def exported(metrics: ParsedComponent, views: Views, log: LogLine) -> Iterator[None]:
    """Export metrics on their interval while the block runs, and once when it ends.

    Args:
        metrics: the `metrics` section.
        views: gives the streams by id; a single one has an empty id.
        log: takes log lines.
    """
    if metrics.name == "logger":
        from streamer.service.metrics_log import MetricsLog

        exporter = MetricsLog(views, log, flushes=metrics.config["flush_metrics"]).write
        interval = metrics.config["push_interval"]
    elif metrics.name == "prometheus" and (
        metrics.config["push_url"] or metrics.config["file_output_path"]
    ):
        # Imported here: few configs need Prometheus's client.
        from streamer.service.push import PrometheusExport

        exporter = PrometheusExport(metrics, views, log).export
        interval = metrics.config["push_interval"] if metrics.config["push_url"] else None
    else:
        yield
        return
    from streamer.service.interval import Interval

    repeated = Interval(exporter, interval)
    try:
        yield
    finally:
        repeated.stop()
