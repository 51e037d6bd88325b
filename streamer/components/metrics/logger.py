"""Metrics as lines of the log, on an interval and at the end."""

from __future__ import annotations

from typing import Final

from streamer.sdk.spec import Field, Kind, Spec, duration_field

PUSH_INTERVAL: Final = "push_interval"
FLUSH_METRICS: Final = "flush_metrics"

SPEC: Final = Spec(
    Kind.METRICS,
    "logger",
    "Prints metrics to the log.",
    status="beta",
    fields=(
        duration_field(
            PUSH_INTERVAL,
            "Time between prints; without one, metrics are printed when the program ends.",
            optional=True,
            examples=("30s",),
        ),
        Field(FLUSH_METRICS, "bool", "True if counters go back to 0 after a print.", default=False),
    ),
)
