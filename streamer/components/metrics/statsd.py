"""`statsd`: "pushes metrics using the StatsD protocol", over UDP."""

from __future__ import annotations

from typing import Final

from streamer.core.urls import address_problem
from streamer.sdk.spec import Access, Field, Kind, Spec, duration_field

ADDRESS: Final = "address"
FLUSH_PERIOD: Final = "flush_period"
TAG_FORMAT: Final = "tag_format"
TAGS: Final = "tags"

SPEC: Final = Spec(
    Kind.METRICS,
    "statsd",
    "Sends metrics to a StatsD server over UDP.\n\n"
    "Counters are sent as what they have grown by, timings as their number and value, in "
    "nanoseconds or the unit of the metric. Without tags, metrics of one name are one metric: "
    "numbers are added up. Datagrams that get lost are not sent again.",
    fields=(
        Field(
            ADDRESS,
            "string",
            "Host and port of the server.",
            access=Access.ADDRESS,
            check=address_problem,
            examples=("localhost:8125",),
        ),
        duration_field(
            FLUSH_PERIOD,
            "Time between sends; less than a second counts as a second.",
            default="100ms",
        ),
        Field(
            TAG_FORMAT,
            "string",
            "How labels are sent.",
            default="none",
            options=("none", "datadog", "influxdb"),
        ),
        Field(
            TAGS,
            "string",
            "Tags that all metrics have.",
            default={},
            shape="map",
            advanced=True,
            examples=({"zone": "eu-1"},),
        ),
    ),
)
