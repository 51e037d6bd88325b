"""Metrics for Prometheus: at `/metrics` of the HTTP server, pushed to a gateway, or in a file."""

from __future__ import annotations

from typing import Final

from streamer.core.urls import url_problem
from streamer.sdk.spec import Access, Field, Kind, Spec, duration_field

USE_HISTOGRAM_TIMING: Final = "use_histogram_timing"
HISTOGRAM_BUCKETS: Final = "histogram_buckets"
SUMMARY_QUANTILES_OBJECTIVES: Final = "summary_quantiles_objectives"
ADD_PROCESS_METRICS: Final = "add_process_metrics"
ADD_GO_METRICS: Final = "add_go_metrics"
PUSH_URL: Final = "push_url"
PUSH_INTERVAL: Final = "push_interval"
PUSH_JOB_NAME: Final = "push_job_name"
PUSH_BASIC_AUTH: Final = "push_basic_auth"
FILE_OUTPUT_PATH: Final = "file_output_path"

_AUTH: Final = (
    Field("username", "string", "The user's name.", default=""),
    Field("password", "string", "The user's password.", default="", secret=True),
)
_OBJECTIVE: Final = (
    Field("quantile", "float", "The quantile, from 0 to 1.", default=0.0),
    Field("error", "float", "Maximum error, from 0 to 1.", default=0.0),
)

SPEC: Final = Spec(
    Kind.METRICS,
    "prometheus",
    "Serves metrics for Prometheus at `/metrics` of the HTTP server.",
    fields=(
        Field(
            USE_HISTOGRAM_TIMING,
            "bool",
            "True if times are histograms instead of summaries, in seconds.",
            default=False,
            advanced=True,
        ),
        Field(
            HISTOGRAM_BUCKETS,
            "float",
            "The upper bounds of the histograms' buckets, in seconds; a default set when empty.",
            default=(),
            shape="array",
            advanced=True,
        ),
        Field(
            SUMMARY_QUANTILES_OBJECTIVES,
            "object",
            "The quantiles of summaries.",
            default=(
                {"quantile": 0.5, "error": 0.05},
                {"quantile": 0.9, "error": 0.01},
                {"quantile": 0.99, "error": 0.001},
            ),
            shape="array",
            advanced=True,
            children=_OBJECTIVE,
        ),
        Field(
            ADD_PROCESS_METRICS,
            "bool",
            "True if metrics of the process (CPU, memory) are served too.",
            default=False,
            advanced=True,
        ),
        Field(
            ADD_GO_METRICS,
            "bool",
            "Taken for compatibility; adds metrics of the Python runtime.",
            default=False,
            advanced=True,
        ),
        Field(
            PUSH_URL,
            "string",
            "A push gateway.",
            access=Access.ADDRESS,
            optional=True,
            advanced=True,
            check=url_problem,
        ),
        duration_field(
            PUSH_INTERVAL,
            "Time between pushes; without one, metrics are pushed when the program ends.",
            optional=True,
            advanced=True,
        ),
        Field(
            PUSH_JOB_NAME,
            "string",
            "The job's name at the push gateway.",
            default="benthos_push",
            advanced=True,
        ),
        Field(
            PUSH_BASIC_AUTH,
            "object",
            "Basic authentication at the push gateway.",
            advanced=True,
            children=_AUTH,
        ),
        Field(
            FILE_OUTPUT_PATH,
            "string",
            "A file that metrics are written to when the program ends; none when empty.",
            access=Access.FILE,
            default="",
            advanced=True,
        ),
    ),
)
