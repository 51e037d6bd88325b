"""`aws_cloudwatch`: "send metrics to AWS CloudWatch using the PutMetricData endpoint"."""

from __future__ import annotations

from typing import Final

from streamer.connectors.aws.fields import PACKAGES, SESSION_FIELDS, TESTED, session_problems
from streamer.sdk.spec import Field, Kind, Spec, duration_field

NAMESPACE: Final = "namespace"
FLUSH_PERIOD: Final = "flush_period"

SPEC: Final = Spec(
    Kind.METRICS,
    "aws_cloudwatch",
    "Sends metrics to AWS CloudWatch.\n\n"
    "Counters are sent as what they have grown by, gauges when they have changed and once a "
    "minute, and times as their distribution, in microseconds or seconds. Labels are dimensions; "
    "at most ten are sent. AWS bills by metric and by request: leave metrics out with a `mapping`, "
    "and set a long `flush_period`. What cannot be sent is sent with the next.\n\n"
    f"{TESTED}",
    fields=(
        Field(
            NAMESPACE,
            "string",
            "The namespace of the metrics.",
            default="Benthos",
        ),
        duration_field(
            FLUSH_PERIOD,
            "Time between requests; less than a second counts as a second.",
            default="100ms",
            advanced=True,
            examples=("60s",),
        ),
        *SESSION_FIELDS,
    ),
    check=session_problems,
    requires=PACKAGES,
)
