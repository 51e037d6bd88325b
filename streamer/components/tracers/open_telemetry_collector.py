"""Traces for collectors of OpenTelemetry, by OTLP over HTTP or gRPC."""

from __future__ import annotations

from typing import Final

from streamer.core.urls import address_problem
from streamer.sdk.spec import Access, Field, Kind, Package, Spec

NAME: Final = "open_telemetry_collector"

SERVICE: Final = "service"
HTTP: Final = "http"
GRPC: Final = "grpc"
TAGS: Final = "tags"
SAMPLING: Final = "sampling"


def _collector_field(name: str, port: int) -> Field:
    kind = name.upper() if name == HTTP else "gRPC"
    return Field(
        name,
        "object",
        f"Collectors that take spans over {kind}.",
        default=(),
        shape="array",
        children=(
            Field(
                "address",
                "string",
                "Host and port.",
                access=Access.ADDRESS,
                default=f"localhost:{port}",
                check=address_problem,
            ),
            Field("secure", "bool", "True if the connection is by TLS.", default=False),
        ),
    )


SPEC: Final = Spec(
    Kind.TRACER,
    NAME,
    "Sends a trace of each micro-batch to collectors of OpenTelemetry.\n\n"
    "A micro-batch is a trace. Its span has a child for each task that reads and processes "
    "messages, or lets windows out, with the processors that ran in it; and one for each output "
    "that is written. What a processor did in a task is one span, as long as all its calls "
    "together. Messages whose metadata have a `traceparent` are linked to the span of their "
    "micro-batch. Spans are sent in the background; a collector that is away loses them, and "
    "holds nobody up.",
    status="experimental",
    fields=(
        Field(SERVICE, "string", "The name of the service in traces.", default="benthos"),
        _collector_field(HTTP, 4318),
        _collector_field(GRPC, 4317),
        Field(
            TAGS,
            "string",
            "Attributes that all traces have.",
            default={},
            shape="map",
            advanced=True,
        ),
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
