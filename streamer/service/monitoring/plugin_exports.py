"""Metrics and traces through the exporters of plugins: what goes wrong in one is logged once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from streamer.components.catalog import build_context, find_spec
from streamer.core.log_format import LogLine
from streamer.engine.report.latency import LatencySnapshot
from streamer.engine.report.spans import BatchTrace, Span
from streamer.sdk.monitoring import MetricSample, MetricsExporter, TraceExporter, TraceSpan
from streamer.sdk.spec import ParsedComponent
from streamer.service.monitoring.metric_samples import Sample
from streamer.service.monitoring.metrics_mapping import label_samples
from streamer.service.monitoring.stream_view import Views

_QUANTILES = (0.5, 0.9, 0.99)


def is_plugin(component: ParsedComponent) -> bool:
    """Return whether a component comes from another package."""
    spec = find_spec(component.kind, component.name)
    return spec is not None and bool(spec.distribution)


class PluginMetrics:
    """Exports the metrics of streams through a plugin.

    Attributes:
        interval: the time between two exports, ns.
    """

    def __init__(self, metrics: ParsedComponent, views: Views, log: LogLine) -> None:
        """Build the plugin of a `metrics` section.

        Raises:
            StreamerError: it cannot be built.
        """
        self._exporter: MetricsExporter = build_context().build(metrics)
        self.interval = int(self._exporter.interval)
        self._name = metrics.name
        self._views = views
        self._log = log
        self._failure = ""

    def export(self, is_last: bool) -> None:
        """Send all figures."""
        samples = [made for one in label_samples(self._views()) for made in _to_samples(one)]
        failure = _call_safely(lambda: self._exporter.export(samples, is_last))
        if failure and failure != self._failure:
            self._log("ERROR", f"Failed to export metrics by {self._name}: {failure}", {})
        self._failure = failure


def _to_samples(sample: Sample) -> Iterator[MetricSample]:
    value, labels = sample.value, dict(sample.labels)
    if not isinstance(value, LatencySnapshot):
        kind = sample.type_name if sample.type_name in ("counter", "gauge") else "untyped"
        yield MetricSample(sample.name, kind, labels, value)
        return
    yield MetricSample(f"{sample.name}_count", "counter", labels, value.count)
    yield MetricSample(f"{sample.name}_sum", "counter", labels, value.total)
    for share in _QUANTILES:
        if (time := value.quantile(share)) is not None:
            yield MetricSample(sample.name, "gauge", {**labels, "quantile": str(share)}, time)


class PluginTracer:
    """Sends the spans of the micro-batches of one stream through a plugin."""

    def __init__(self, tracer: ParsedComponent, stream: str, log: LogLine) -> None:
        """Build the plugin of a `tracer` section.

        Raises:
            StreamerError: it cannot be built.
        """
        self._exporter: TraceExporter = build_context().build(tracer)
        self._name = tracer.name
        self._stream = stream
        self._log = log
        self._failure = ""

    def trace_batch(self, trace: BatchTrace) -> None:
        """Send the spans of a micro-batch."""
        attributes = {"stream": self._stream, "micro_batch": trace.number, **trace.attributes}
        root = TraceSpan("micro_batch", -1, "", "", trace.began, trace.ended, attributes)
        spans = [root]
        for task in trace.tasks:
            spans.append(_to_span(task.span, 0))
            parent = len(spans) - 1
            spans += [_to_span(span, parent) for span in task.inside]
        spans += [_to_span(span, 0) for span in trace.outputs]
        self._report(_call_safely(lambda: self._exporter.export(spans)))

    def flush(self) -> None:
        """Send what waits."""
        self._report(_call_safely(self._exporter.flush))

    def _report(self, failure: str) -> None:
        if failure and failure != self._failure:
            self._log("ERROR", f"Failed to export traces by {self._name}: {failure}", {})
        self._failure = failure


def _to_span(span: Span, parent: int) -> TraceSpan:
    return TraceSpan(
        span.name, parent, span.label, span.path, span.began, span.ended, span.attributes
    )


def _call_safely(call: Callable[[], None]) -> str:
    """Call code of a plugin; return what went wrong, "" for nothing."""
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""
