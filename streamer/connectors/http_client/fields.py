"""The fields of everything that makes HTTP requests, as Benthos's HTTP client has them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from streamer.connectors.http_client.auth_fields import (
    BASIC_AUTH_FIELD,
    JWT_FIELD,
    OAUTH2_FIELD,
    OAUTH_FIELD,
)
from streamer.connectors.tls import TLS_FIELD, tls_problems
from streamer.core.urls import url_problem
from streamer.sdk.metadata_filter import metadata_filter_field
from streamer.sdk.spec import Access, Field, Kind, ParsedFields, duration_field

URL: Final = "url"
VERB: Final = "verb"
HEADERS: Final = "headers"
METADATA: Final = "metadata"
EXTRACT_HEADERS: Final = "extract_headers"
RATE_LIMIT: Final = "rate_limit"
TIMEOUT: Final = "timeout"
RETRY_PERIOD: Final = "retry_period"
MAX_RETRY_BACKOFF: Final = "max_retry_backoff"
RETRIES: Final = "retries"
FOLLOW_REDIRECTS: Final = "follow_redirects"
BACKOFF_ON: Final = "backoff_on"
DROP_ON: Final = "drop_on"
SUCCESSFUL_ON: Final = "successful_on"
DUMP_LEVEL: Final = "dump_request_log_level"
PROXY_URL: Final = "proxy_url"
PROXY_FIELD: Final = Field(
    PROXY_URL,
    "string",
    "The URL of a proxy.",
    access=Access.ADDRESS,
    optional=True,
    advanced=True,
    check=url_problem,
)
DISABLE_HTTP2: Final = "disable_http2"


def _duration_field(name: str, description: str, default: str, advanced: bool = True) -> Field:
    return duration_field(name, description, default=default, advanced=advanced)


def _codes_field(name: str, description: str, default: tuple[int, ...] = ()) -> Field:
    return Field(name, "int", description, default=default, shape="array", advanced=True)


_RETRY_FIELDS: Final = (
    Field(
        RATE_LIMIT,
        "string",
        "The label of a rate limit that requests keep to.",
        optional=True,
        refers=Kind.RATE_LIMIT,
    ),
    _duration_field(TIMEOUT, "Maximum duration of a request.", "5s", advanced=False),
    _duration_field(RETRY_PERIOD, "The pause before a failed request is repeated.", "1s"),
    _duration_field(MAX_RETRY_BACKOFF, "The longest such pause.", "300s"),
    Field(
        RETRIES,
        "int",
        "Maximum number of repetitions of a failed request.",
        default=3,
        advanced=True,
    ),
    Field(
        FOLLOW_REDIRECTS,
        "bool",
        "True if answers of 300 to 399 that say where to go are followed; otherwise they are "
        "taken as they are.",
        default=True,
        advanced=True,
    ),
    _codes_field(BACKOFF_ON, "Codes after which pauses grow.", (429,)),
    _codes_field(DROP_ON, "Codes after which a request is not repeated: it has failed."),
    _codes_field(SUCCESSFUL_ON, "Codes beyond 2XX that are a success."),
    PROXY_FIELD,
    Field(DISABLE_HTTP2, "bool", "True to use only HTTP/1.1.", default=False, advanced=True),
)


def client_fields(verb: str, extracted: str = "messages") -> tuple[Field, ...]:
    """Return the fields of an HTTP client.

    Args:
        verb: the default of `verb`.
        extracted: what `extract_headers` puts headers of the response into, in words.
    """
    return (
        Field(
            URL,
            "string",
            "The URL to send requests to. The result of an expression in it must not contain "
            "segments `.` or `..`: such a message fails. An expression that is the whole URL "
            "is taken as it is.",
            access=Access.ADDRESS,
            interpolated=True,
            check=lambda url: (
                url_problem(url) if url else "is empty; expected a URL such as http://host/path"
            ),
            examples=("http://localhost:4195/post",),
        ),
        Field(VERB, "string", "The method.", default=verb, examples=("POST", "GET", "DELETE")),
        Field(
            HEADERS,
            "string",
            "Headers of the requests.",
            default={},
            shape="map",
            interpolated=True,
            credentials=True,
            examples=({"Content-Type": "application/octet-stream"},),
        ),
        metadata_filter_field(
            METADATA, "Which metadata of the first message is added to a request as headers."
        ),
        Field(
            DUMP_LEVEL,
            "string",
            "The level at which each request and its answer are logged; empty for not at all.",
            default="",
            advanced=True,
            options=("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", ""),
        ),
        OAUTH_FIELD,
        OAUTH2_FIELD,
        BASIC_AUTH_FIELD,
        JWT_FIELD,
        TLS_FIELD,
        metadata_filter_field(
            EXTRACT_HEADERS,
            f"Which headers of an answer, in lower case, are added to {extracted} as metadata.",
        ),
        *_RETRY_FIELDS,
    )


def client_problems(parsed: ParsedFields) -> Iterable[tuple[str, Any]]:
    """Return what is wrong with these fields together, for a spec's `check`."""
    yield from tls_problems(parsed)
    for name in (BACKOFF_ON, DROP_ON, SUCCESSFUL_ON):
        for code in parsed[name]:
            if not 100 <= code <= 599:
                yield name, f"has {code}, which is not a code of HTTP; expected 100 to 599"
