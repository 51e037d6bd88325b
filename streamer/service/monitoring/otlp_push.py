"""`metrics.open_telemetry_collector`: metrics by OTLP, with the exporters of OpenTelemetry."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from streamer import __version__
from streamer.components.metrics.metric import MetricKind
from streamer.components.metrics.metric_names import HISTOGRAM_BOUNDS_S
from streamer.connectors.otlp import (
    GRPC,
    HTTP,
    SECURE,
    SERVICE,
    TAGS,
    collector_address,
    collector_url,
)
from streamer.core.durations import MILLISECOND, MINUTE, SECOND
from streamer.core.log_format import LogLine
from streamer.engine.report.latency import LatencySnapshot
from streamer.sdk.spec import ParsedComponent
from streamer.service.monitoring.metric_samples import Sample
from streamer.service.monitoring.metrics_mapping import label_samples
from streamer.service.monitoring.prometheus_times import DEFAULT_BOUNDS_S
from streamer.service.monitoring.stream_view import Views

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import Metric, MetricExporter

_EXPORT_TIMEOUT_S: Final = 5
_LAST_EXPORT_TIMEOUT_S: Final = 2.0
_MIN_INTERVAL: Final = SECOND
_INTERVAL_VARIABLE: Final = "OTEL_METRIC_EXPORT_INTERVAL"


def find_interval(environ: Mapping[str, str]) -> int:
    """Return the time between exports, ns, as OpenTelemetry's environment variable wants it.

    >>> find_interval({"OTEL_METRIC_EXPORT_INTERVAL": "5000"}) // SECOND
    5
    """
    text = environ.get(_INTERVAL_VARIABLE, "")
    return max(int(text) * MILLISECOND, _MIN_INTERVAL) if text.isdecimal() else MINUTE


class OtlpExporter:
    """Sends the metrics of streams; a collector that takes none is logged once, until it does."""

    def __init__(self, metrics: ParsedComponent, views: Views, log: LogLine) -> None:
        """Take a `metrics` section, which is a collector's, the streams, and where lines go."""
        self._config = metrics.config
        self._views = views
        self._log = log
        self._started = time.time_ns()
        self._exporters = _make_exporters(metrics)
        self._failed: set[str] = set()

    def export(self, is_last: bool) -> None:
        """Send all metrics; the last time, a collector that is away is not waited for."""
        if not is_last:
            self._export()
            return
        # The library's own timeout is for each try.
        exporting = threading.Thread(target=self._export, daemon=True, name="metrics")
        exporting.start()
        exporting.join(_LAST_EXPORT_TIMEOUT_S)

    def _export(self) -> None:
        from opentelemetry.sdk.metrics.export import (
            MetricExportResult,
            MetricsData,
            ResourceMetrics,
            ScopeMetrics,
        )
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        samples = list(label_samples(self._views()))
        metrics = make_metrics(samples, self._started, time.time_ns())
        about = {"service.name": self._config[SERVICE], "service.version": __version__}
        resource = Resource.create({**about, **self._config[TAGS]})
        scope = ScopeMetrics(InstrumentationScope("streamer", __version__), metrics, "")
        data = MetricsData([ResourceMetrics(resource, [scope], "")])
        for address, exporter in self._exporters:
            try:
                sent = exporter.export(data) == MetricExportResult.SUCCESS
            except Exception as error:  # noqa: BLE001 - whatever its transport raises
                sent = False
                self._log("DEBUG", f"Exporting to {address}: {error}", {})
            if sent:
                self._failed.discard(address)
            elif address not in self._failed:
                self._failed.add(address)
                self._log("ERROR", f"Failed to send metrics to the collector {address}", {})


def make_metrics(samples: Iterable[Sample], started: int, now: int) -> list[Metric]:
    """Return figures as metrics of OpenTelemetry, one for each name and type.

    Args:
        samples: the figures.
        started: since when counters count, ns since the Unix epoch.
        now: the time, likewise.
    """
    from opentelemetry.sdk.metrics.export import (
        AggregationTemporality,
        Gauge,
        Histogram,
        HistogramDataPoint,
        Metric,
        NumberDataPoint,
        Sum,
    )

    points: dict[tuple[str, str], list[Any]] = {}
    about: dict[str, tuple[str, str]] = {}
    # The least and the greatest time, which OTLP need not have.
    unknown: tuple[Any, Any] = (None, None)
    for sample in samples:
        if sample.metric is not None:
            about[sample.name] = sample.metric.about, sample.metric.unit
        kind, value = sample.type_name, sample.value
        point: Any
        if isinstance(value, LatencySnapshot):
            counts, bounds, total = _histogram(sample, value)
            point = HistogramDataPoint(
                dict(sample.labels), started, now, value.count, total, counts, bounds, *unknown
            )
        else:
            point = NumberDataPoint(dict(sample.labels), started, now, value)
        points.setdefault((sample.name, kind), []).append(point)
    metrics = []
    for (name, kind), series in points.items():
        data: Any = Gauge(series)
        if kind == MetricKind.COUNTER:
            data = Sum(series, AggregationTemporality.CUMULATIVE, is_monotonic=True)
        elif kind in (MetricKind.TIMING, MetricKind.HISTOGRAM):
            data = Histogram(series, AggregationTemporality.CUMULATIVE)
        description, unit = about.get(name, ("", ""))
        metrics.append(Metric(name, description, unit, data))
    return metrics


def _histogram(sample: Sample, value: LatencySnapshot) -> tuple[list[int], list[float], float]:
    """Return the counts between bounds, the bounds and the sum, in the unit of the metric."""
    own = HISTOGRAM_BOUNDS_S.get(sample.metric.name) if sample.metric is not None else None
    bounds_s: Sequence[float] = own or DEFAULT_BOUNDS_S
    cumulative = value.cumulative_counts([bound * SECOND for bound in bounds_s])
    counts = [after - before for before, after in zip([0, *cumulative], cumulative, strict=False)]
    counts.append(value.count - (cumulative[-1] if cumulative else 0))
    unit = SECOND if sample.type_name == MetricKind.HISTOGRAM else 1
    return counts, [bound * SECOND / unit for bound in bounds_s], value.total / unit


def _make_exporters(metrics: ParsedComponent) -> list[tuple[str, MetricExporter]]:
    exporters: list[tuple[str, MetricExporter]] = []
    for one in metrics.config[HTTP]:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import (
            OTLPMetricExporter as Http,
        )

        from streamer.service.monitoring.otlp_http import make_deadline_session

        url = collector_url(one, "/v1/metrics")
        session = make_deadline_session(metrics.permissions)
        exporters.append((url, Http(url, timeout=_EXPORT_TIMEOUT_S, session=session)))
    for one in metrics.config[GRPC]:
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import (
            OTLPMetricExporter as Grpc,
        )

        address, insecure = collector_address(one), not one[SECURE]
        exporters.append((address, Grpc(address, insecure=insecure, timeout=_EXPORT_TIMEOUT_S)))
    return exporters
