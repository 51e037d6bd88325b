"""The fields of components that ask a schema registry."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from streamer.connectors.http_client.auth_fields import (
    BASIC_AUTH_FIELD,
    JWT_FIELD,
    OAUTH2_FIELD,
    OAUTH_FIELD,
)
from streamer.connectors.tls import SERVER_TLS_FIELD, tls_problems
from streamer.core.urls import url_problem
from streamer.sdk.spec import Access, Field, ParsedFields

URL: Final = "url"

URL_FIELD: Final = Field(
    URL,
    "string",
    "The base URL of the schema registry.",
    access=Access.ADDRESS,
    check=url_problem,
    examples=("http://localhost:8081",),
)

CONNECTION_FIELDS: Final = (
    OAUTH_FIELD,
    replace(OAUTH2_FIELD, description=f"{OAUTH2_FIELD.description} Not in Redpanda Connect."),
    BASIC_AUTH_FIELD,
    JWT_FIELD,
    SERVER_TLS_FIELD,
)


def connection_problems(parsed: ParsedFields) -> Iterable[tuple[str, str]]:
    """Return what is wrong with these fields together, for a spec's `check`."""
    yield from tls_problems(parsed)
