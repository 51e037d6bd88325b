"""Metrics for collectors of OpenTelemetry, by OTLP over HTTP or gRPC."""

from __future__ import annotations

from typing import Final

from streamer.connectors.otlp import (
    COLLECTOR,
    COLLECTOR_FIELDS,
    GRPC,
    HTTP,
    SERVICE_FIELD,
    TAGS_FIELD,
)
from streamer.sdk.spec import Kind, Package, Spec

SPEC: Final = Spec(
    Kind.METRICS,
    COLLECTOR,
    "Sends metrics to collectors of OpenTelemetry, once a minute and at the end.\n\n"
    "Counters are sums since the start, timings are histograms in their own unit. The environment "
    "variable `OTEL_METRIC_EXPORT_INTERVAL` sets another interval, in milliseconds. A collector "
    "that is away holds nobody up: it gets newer values by the next interval.",
    status="experimental",
    fields=(SERVICE_FIELD, *COLLECTOR_FIELDS, TAGS_FIELD),
    requires=(
        Package("opentelemetry.exporter.otlp.proto.http", HTTP),
        Package("opentelemetry.exporter.otlp.proto.grpc", GRPC),
    ),
)
