"""Exports metrics without a request: pushed, logged, or written at the end."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from streamer.core.log_format import LogLine
from streamer.sdk.spec import ParsedComponent
from streamer.service.monitoring.plugin_exports import PluginMetrics, is_plugin
from streamer.service.monitoring.stream_view import Views

_PUSHED: Final = ("aws_cloudwatch", "statsd", "influxdb", "open_telemetry_collector")
"""Metrics that are sent on an interval."""

Exporter = Callable[[bool], None]
"""Exports what there is; takes whether it is the last time."""


@contextmanager
def export_metrics(metrics: ParsedComponent, views: Views, log: LogLine) -> Iterator[None]:
    """Export metrics on their interval while the block runs, and once when it ends.

    Args:
        metrics: the `metrics` section.
        views: gives the streams by id; a single one has an empty id.
        log: takes log lines.
    """
    exporter: Exporter
    interval: int | None
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
    elif metrics.name in _PUSHED:
        exporter, interval = _make_push_exporter(metrics, views, log)
    elif is_plugin(metrics):
        plugin = PluginMetrics(metrics, views, log)
        exporter, interval = plugin.export, plugin.interval
    else:
        yield
        return
    from streamer.service.monitoring.periodic import PeriodicTask

    repeated = PeriodicTask(exporter, interval)
    try:
        yield
    finally:
        repeated.stop()


def _make_push_exporter(
    metrics: ParsedComponent, views: Views, log: LogLine
) -> tuple[Exporter, int]:
    """Return what sends metrics, and the interval, ns; imported here, for few configs need it."""
    if metrics.name == "statsd":
        from streamer.service.monitoring.statsd_push import MIN_PERIOD, StatsdExporter

        period = max(metrics.config["flush_period"] or 0, MIN_PERIOD)
        return StatsdExporter(metrics, views, log).export, period
    if metrics.name == "influxdb":
        from streamer.service.monitoring.influxdb_push import MIN_INTERVAL, InfluxExporter

        period = max(metrics.config["interval"] or 0, MIN_INTERVAL)
        return InfluxExporter(metrics, views, log).export, period
    if metrics.name == "aws_cloudwatch":
        from streamer.service.monitoring.cloudwatch_push import MIN_PERIOD as MIN_FLUSH_PERIOD
        from streamer.service.monitoring.cloudwatch_push import CloudWatchExporter

        period = max(metrics.config["flush_period"] or 0, MIN_FLUSH_PERIOD)
        return CloudWatchExporter(metrics, views, log).export, period
    from streamer.service.monitoring.otlp_push import OtlpExporter, find_interval

    return OtlpExporter(metrics, views, log).export, find_interval(os.environ)
