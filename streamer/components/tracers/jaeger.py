"""Traces for Jaeger, by OTLP: Jaeger takes it, and its own protocol is past its time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from streamer.core.urls import address_problem, split_url, url_problem
from streamer.sdk.spec import Access, Field, Kind, Package, Spec, duration_field

NAME: Final = "jaeger"

AGENT_ADDRESS: Final = "agent_address"
COLLECTOR_URL: Final = "collector_url"
SAMPLER_TYPE: Final = "sampler_type"
SAMPLER_PARAM: Final = "sampler_param"
TAGS: Final = "tags"
FLUSH_INTERVAL: Final = "flush_interval"

OTLP_PATH: Final = "/v1/traces"
OTLP_PORT: Final = 4318


def _check(parsed: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    if not parsed[AGENT_ADDRESS] and not parsed[COLLECTOR_URL]:
        yield COLLECTOR_URL, f"is empty; expected a URL such as http://jaeger:{OTLP_PORT}/v1/traces"


SPEC: Final = Spec(
    Kind.TRACER,
    NAME,
    "Sends a trace of each micro-batch to Jaeger, by OTLP.\n\n"
    "Jaeger takes OTLP since version 1.35, and nothing else since version 2. A `collector_url` "
    f"with the path `{OTLP_PATH}` is used as it is. Of another one, as `http://jaeger:14268/api/"
    f"traces`, and of an `agent_address`, spans go to port {OTLP_PORT} of the host. What traces "
    "have is as in `open_telemetry_collector`.",
    fields=(
        Field(
            AGENT_ADDRESS,
            "string",
            "Host and port of an agent, of which the host is used.",
            access=Access.ADDRESS,
            default="",
            check=lambda text: address_problem(text) if text else None,
            examples=("jaeger:6831",),
        ),
        Field(
            COLLECTOR_URL,
            "string",
            "The URL of a collector; it stands before `agent_address`.",
            access=Access.ADDRESS,
            default="",
            check=lambda text: url_problem(text) if text else None,
            examples=(f"http://jaeger:{OTLP_PORT}/v1/traces",),
        ),
        Field(
            SAMPLER_TYPE,
            "string",
            "How traces are chosen.",
            default="const",
            options=("const",),
        ),
        Field(
            SAMPLER_PARAM,
            "float",
            "The share of traces that are sent, from 0 to 1.",
            default=1.0,
            advanced=True,
        ),
        Field(
            TAGS,
            "string",
            "Attributes that all traces have; `service.name` is `benthos` without it.",
            default={},
            shape="map",
            advanced=True,
        ),
        duration_field(
            FLUSH_INTERVAL, "Time between sends; five seconds without it.", optional=True
        ),
    ),
    check=_check,
    begin={"collector_url": f"http://localhost:{OTLP_PORT}{OTLP_PATH}"},
    requires=(Package("opentelemetry.exporter.otlp.proto.http"),),
)


def find_endpoint(config: Mapping[str, Any]) -> str:
    """Return the URL that spans go to.

    >>> find_endpoint({"collector_url": "https://j:14268/api/traces", "agent_address": ""})
    'https://j:4318/v1/traces'
    """
    url = config[COLLECTOR_URL]
    parts = split_url(url or f"http://{config[AGENT_ADDRESS]}")
    if url and parts.path.rstrip("/").endswith(OTLP_PATH):
        return str(url)
    host = parts.hostname or "localhost"
    named = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{named}:{OTLP_PORT}{OTLP_PATH}"
