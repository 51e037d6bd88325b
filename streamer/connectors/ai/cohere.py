"""The fields and the client of Cohere's API."""

from __future__ import annotations

from typing import Final

from streamer.connectors.ai.key_client import address_field, key_client_fields, make_key_client
from streamer.connectors.http_client.json_client import JsonClient
from streamer.sdk.spec import Field, ParsedFields

BASE_URL: Final = "base_url"

PROBE_PATH: Final = "/v1/models"


def client_fields(*models: str) -> tuple[Field, ...]:
    """Return the fields of every component of Cohere's; `models` are examples."""
    address = address_field(BASE_URL, "The URL of the API.", "https://api.cohere.com")
    return key_client_fields(address, "COHERE_API_KEY", models)


def make_client(parsed: ParsedFields, timeout_s: float) -> JsonClient:
    """Make the client; nothing is connected yet."""
    return make_key_client(parsed, BASE_URL, timeout_s)
