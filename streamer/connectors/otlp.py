"""The fields of collectors of OpenTelemetry, which take traces and metrics by OTLP."""

from __future__ import annotations

from typing import Final

from streamer.core.urls import address_problem
from streamer.sdk.spec import Access, Field, ParsedFields

COLLECTOR: Final = "open_telemetry_collector"

SERVICE: Final = "service"
HTTP: Final = "http"
GRPC: Final = "grpc"
TAGS: Final = "tags"
ADDRESS: Final = "address"
URL: Final = "url"
SECURE: Final = "secure"

SERVICE_FIELD: Final = Field(
    SERVICE, "string", "The name of the service at the collector.", default="benthos"
)
TAGS_FIELD: Final = Field(
    TAGS,
    "string",
    "Attributes of all that is sent.",
    default={},
    shape="map",
    advanced=True,
)


def _collector_field(name: str, port: int) -> Field:
    protocol = name.upper() if name == HTTP else "gRPC"
    return Field(
        name,
        "object",
        f"Collectors that are reached over {protocol}.",
        default=(),
        shape="array",
        children=(
            Field(
                ADDRESS,
                "string",
                "Host and port.",
                access=Access.ADDRESS,
                default=f"localhost:{port}",
                check=address_problem,
            ),
            Field(
                URL,
                "string",
                "An old name of `address`, which stands before it.",
                access=Access.ADDRESS,
                optional=True,
                deprecated=True,
                check=address_problem,
            ),
            Field(SECURE, "bool", "True if the connection is by TLS.", default=False),
        ),
    )


COLLECTOR_FIELDS: Final = (_collector_field(HTTP, 4318), _collector_field(GRPC, 4317))


def collector_address(collector: ParsedFields) -> str:
    """Return host and port of one of the collectors of a config."""
    if collector[URL] and not collector.is_given(ADDRESS):
        return str(collector[URL])
    return str(collector[ADDRESS])


def collector_url(collector: ParsedFields, path: str) -> str:
    """Return the URL of a path at a collector over HTTP."""
    scheme = "https" if collector[SECURE] else "http"
    return f"{scheme}://{collector_address(collector)}{path}"
