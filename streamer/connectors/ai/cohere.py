"""The fields and the client of Cohere's API."""

from __future__ import annotations

from typing import Final

from streamer.connectors.http_client.json_client import JsonClient
from streamer.core.urls import url_problem
from streamer.sdk.spec import Access, Field, ParsedFields

BASE_URL: Final = "base_url"
API_KEY: Final = "api_key"
MODEL: Final = "model"

PROBE_PATH: Final = "/v1/models"


def client_fields(*models: str) -> tuple[Field, ...]:
    """Return the fields of every component of Cohere's; `models` are examples."""
    return (
        Field(
            BASE_URL,
            "string",
            "The URL of the API.",
            default="https://api.cohere.com",
            access=Access.ADDRESS,
            check=url_problem,
        ),
        Field(
            API_KEY, "string", "The key of the API.", secret=True, examples=("${COHERE_API_KEY}",)
        ),
        Field(MODEL, "string", "The name of the model.", examples=models, access=Access.REMOTE),
    )


def make_client(parsed: ParsedFields, timeout_s: float) -> JsonClient:
    """Make the client; nothing is connected yet."""
    return JsonClient(
        parsed[BASE_URL],
        {"Authorization": f"Bearer {parsed[API_KEY]}"},
        timeout_s=timeout_s,
        permissions=parsed.permissions,
    )
