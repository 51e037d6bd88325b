"""`influxdb`: "send metrics to InfluxDB 1.x using the `/write` endpoint"."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from streamer.connectors.tls import TLS_FIELD, tls_problems
from streamer.core.urls import address_problem, url_problem
from streamer.sdk.spec import Access, Field, Kind, ParsedFields, Spec, duration_field

URL: Final = "url"
DB: Final = "db"
USERNAME: Final = "username"
PASSWORD: Final = "password"
INCLUDE: Final = "include"
INTERVAL: Final = "interval"
PRECISION: Final = "precision"
TIMEOUT: Final = "timeout"
TAGS: Final = "tags"
RETENTION_POLICY: Final = "retention_policy"
WRITE_CONSISTENCY: Final = "write_consistency"

UDP: Final = "udp://"


def _url_problem(url: str) -> str | None:
    if url.startswith(UDP):
        return address_problem(url.removeprefix(UDP))
    if not url.startswith(("http://", "https://")):
        return "has no http://, https:// or udp:// at its beginning"
    return url_problem(url)


def _check(parsed: ParsedFields) -> Iterable[tuple[str, str]]:
    yield from tls_problems(parsed)
    for name in ("runtime", "debug_gc"):
        if parsed[INCLUDE][name]:
            yield (
                f"{INCLUDE}.{name}",
                "is not available: there is no Go runtime here; leave it out",
            )


SPEC: Final = Spec(
    Kind.METRICS,
    "influxdb",
    "Sends metrics to InfluxDB 1.x, or to a server with its endpoint `/write`.\n\n"
    "A metric is a measurement with its labels as tags. Counters have the field `count`, gauges "
    "`value`, timings `count`, `mean` and the percentiles `p50` to `p999` of the last ten minutes. "
    "What cannot be sent is logged; the next interval has newer values.",
    fields=(
        Field(
            URL,
            "string",
            "The URL of the server: `http://`, `https://` or `udp://` and host and port.",
            access=Access.ADDRESS,
            check=_url_problem,
            examples=("http://localhost:8086",),
        ),
        Field(DB, "string", "The name of the database.", access=Access.REMOTE),
        TLS_FIELD,
        Field(USERNAME, "string", "The user.", default="", advanced=True),
        Field(PASSWORD, "string", "The password.", default="", advanced=True, secret=True),
        Field(
            INCLUDE,
            "object",
            "Metrics of the Go runtime, which are not available.",
            advanced=True,
            children=(
                Field("runtime", "string", "Is not available.", default=""),
                Field("debug_gc", "string", "Is not available.", default=""),
            ),
        ),
        duration_field(INTERVAL, "Time between sends.", default="1m", advanced=True),
        duration_field(
            "ping_interval",
            "Has no effect: each send makes its own connection when it needs one.",
            default="20s",
            advanced=True,
        ),
        Field(
            PRECISION,
            "string",
            "The precision of times.",
            default="s",
            advanced=True,
            options=("ns", "us", "ms", "s"),
        ),
        duration_field(TIMEOUT, "Maximum duration of a send.", default="5s", advanced=True),
        Field(
            TAGS,
            "string",
            "Tags that all metrics have.",
            default={},
            shape="map",
            advanced=True,
            examples=({"zone": "eu-1"},),
        ),
        Field(
            RETENTION_POLICY,
            "string",
            "The retention policy of what is written.",
            optional=True,
            advanced=True,
            access=Access.REMOTE,
        ),
        Field(
            WRITE_CONSISTENCY,
            "string",
            "How many servers of a cluster must have what is written.",
            optional=True,
            advanced=True,
            options=("any", "one", "quorum", "all"),
        ),
    ),
    check=_check,
)
