"""Traces of micro-batches on their way to collectors of OpenTelemetry.

Nothing of OpenTelemetry is loaded before a config asks for it.
"""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from streamer import __version__
from streamer.components.tracers import jaeger
from streamer.components.tracers.open_telemetry_collector import SAMPLING
from streamer.connectors.otlp import (
    COLLECTOR,
    GRPC,
    HTTP,
    SECURE,
    SERVICE,
    TAGS,
    collector_address,
    collector_url,
)
from streamer.core.durations import MILLISECOND
from streamer.core.log_format import LogLine
from streamer.engine.report.spans import BatchTrace, Span
from streamer.sdk.spec import ParsedComponent
from streamer.service.monitoring.plugin_exports import PluginTracer, is_plugin

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Link

_FLUSH_TIMEOUT_S: Final = 2.0
_EXPORT_TIMEOUT_S: Final = 10
"""For one export, all its tries included."""

_lock: Final = threading.Lock()
_providers: Final[dict[str, TracerProvider]] = {}


class BatchTracer:
    """Makes a trace of each micro-batch of one stream."""

    def __init__(self, provider: TracerProvider, stream: str) -> None:
        """Take where spans go, and the stream's name."""
        self._provider = provider
        self._stream = stream

    @cached_property
    def _tracer(self) -> Any:
        return self._provider.get_tracer("streamer", __version__)

    def trace_batch(self, trace: BatchTrace) -> None:
        """Send the spans of a micro-batch, in the background."""
        from opentelemetry.trace import set_span_in_context

        links = [link for task in trace.tasks for link in map(_parse_link, task.links) if link]
        attributes = {"stream": self._stream, "micro_batch": trace.number, **trace.attributes}
        root = self._tracer.start_span(
            "micro_batch", attributes=attributes, links=links, start_time=trace.began
        )
        within = set_span_in_context(root)
        for task in trace.tasks:
            outer = self._start_span(task.span, within)
            for span in task.inside:
                self._start_span(span, set_span_in_context(outer)).end(span.ended)
            outer.end(task.span.ended)
        for span in trace.outputs:
            self._start_span(span, within).end(span.ended)
        root.end(trace.ended)

    def _start_span(self, span: Span, within: Context) -> Any:
        attributes = {
            "label": span.label,
            "path": span.path,
            "stream": self._stream,
            **span.attributes,
        }
        return self._tracer.start_span(
            span.name, within, attributes=attributes, start_time=span.began
        )

    def flush(self) -> None:
        """Send what waits; a collector that is away is not waited for longer than two seconds."""
        # The library's own timeout is not kept: it waits for each export to end.
        flushing = threading.Thread(target=self._provider.force_flush, daemon=True, name="traces")
        flushing.start()
        flushing.join(_FLUSH_TIMEOUT_S)


def make_tracer(
    tracer: ParsedComponent, stream: str, log: LogLine = lambda level, text, fields: None
) -> BatchTracer | PluginTracer | None:
    """Return what traces a stream; None when its config wants no traces.

    Streams of the same `tracer` section share what sends their spans; those of a plugin do not.
    """
    if is_plugin(tracer):
        return PluginTracer(tracer, stream, log)
    if tracer.name not in (COLLECTOR, jaeger.NAME):
        return None
    config = json.dumps([tracer.name, tracer.config], default=dict, sort_keys=True)
    config += str(tracer.permissions)
    with _lock:
        if config not in _providers:
            _providers[config] = _make_provider(tracer)
        return BatchTracer(_providers[config], stream)


def _make_provider(tracer: ParsedComponent) -> TracerProvider:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.sampling import DEFAULT_ON, TraceIdRatioBased

    config = tracer.config
    delay: float | None = None
    if tracer.name == jaeger.NAME:
        ratio = config[jaeger.SAMPLER_PARAM]
        about = {"service.name": "benthos", "service.version": __version__, **config[jaeger.TAGS]}
        flush_interval = config[jaeger.FLUSH_INTERVAL]
        delay = flush_interval / MILLISECOND if flush_interval else None
    else:
        sampling = config[SAMPLING]
        ratio = (sampling["ratio"] or 0.0) if sampling["enabled"] else 1.0
        about = {"service.name": config[SERVICE], "service.version": __version__, **config[TAGS]}
    provider = TracerProvider(
        sampler=TraceIdRatioBased(max(ratio, 0.0)) if ratio < 1 else DEFAULT_ON,
        resource=Resource.create(about),
        # Each stream flushes at its end; at the exit a silent collector would hold the program.
        shutdown_on_exit=False,
    )
    for exporter in _make_exporters(tracer):
        provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=delay))
    return provider


def _make_exporters(tracer: ParsedComponent) -> list[SpanExporter]:
    exporters: list[SpanExporter] = []
    if tracer.name == jaeger.NAME:
        return [_make_http_exporter(jaeger.find_endpoint(tracer.config), tracer)]
    for one in tracer.config[HTTP]:
        exporters.append(_make_http_exporter(collector_url(one, "/v1/traces"), tracer))
    for one in tracer.config[GRPC]:
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as Grpc

        address, insecure = collector_address(one), not one[SECURE]
        exporters.append(Grpc(address, insecure=insecure, timeout=_EXPORT_TIMEOUT_S))
    return exporters


def _make_http_exporter(url: str, tracer: ParsedComponent) -> SpanExporter:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    from streamer.service.monitoring.otlp_http import make_deadline_session

    session = make_deadline_session(tracer.permissions)
    return OTLPSpanExporter(url, timeout=_EXPORT_TIMEOUT_S, session=session)


def _parse_link(parent: str) -> Link | None:
    """Return a link to the span that a `traceparent` names; None when it names none."""
    from opentelemetry.trace import Link, get_current_span
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    with suppress(ValueError):
        context = TraceContextTextMapPropagator().extract({"traceparent": parent})
        span_context = get_current_span(context).get_span_context()
        if span_context.is_valid:
            return Link(span_context)
    return None
