"""Traces for collectors of OpenTelemetry, by OTLP over HTTP or gRPC."""

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
from streamer.sdk.spec import Field, Kind, Package, Spec

SAMPLING: Final = "sampling"

SPEC: Final = Spec(
    Kind.TRACER,
    COLLECTOR,
    "Sends a trace of each micro-batch to collectors of OpenTelemetry.\n\n"
    "A micro-batch is a trace. Its span has a child for each task that reads and processes "
    "messages, or lets windows out, with the processors that ran in it; and one for each output "
    "that is written. What a processor did in a task is one span, as long as all its calls "
    "together. Messages whose metadata have a `traceparent` are linked to the span of their "
    "micro-batch. Spans are sent in the background; a collector that is away loses them, and "
    "holds nobody up.",
    status="experimental",
    fields=(
        SERVICE_FIELD,
        *COLLECTOR_FIELDS,
        TAGS_FIELD,
        Field(
            SAMPLING,
            "object",
            "Which traces are sent.",
            children=(
                Field("enabled", "bool", "True to enable sampling.", default=False),
                Field(
                    "ratio",
                    "float",
                    "The share of traces that are sent, from 0 to 1.",
                    optional=True,
                    examples=(0.85, 0.5),
                ),
            ),
        ),
    ),
    requires=(
        Package("opentelemetry.exporter.otlp.proto.http", HTTP),
        Package("opentelemetry.exporter.otlp.proto.grpc", GRPC),
    ),
)
