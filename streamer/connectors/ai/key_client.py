"""The fields and the client of an API that is called with a key."""

from __future__ import annotations

from typing import Final

from streamer.connectors.http_client.json_client import JsonClient
from streamer.core.urls import url_problem
from streamer.sdk.spec import Access, Field, ParsedFields

API_KEY: Final = "api_key"
MODEL: Final = "model"


def key_client_fields(address: Field, variable: str, models: tuple[str, ...]) -> tuple[Field, ...]:
    """Return the fields of a component that calls the API.

    Args:
        address: the field of the API's URL.
        variable: the environment variable of the example of a key.
        models: examples.
    """
    key = "The key of the API."
    return (
        address,
        Field(API_KEY, "string", key, secret=True, examples=(f"${{{variable}}}",)),
        Field(MODEL, "string", "The name of the model.", examples=models, access=Access.REMOTE),
    )


def address_field(name: str, description: str, default: str) -> Field:
    """Return the field of the API's URL."""
    return Field(
        name, "string", description, default=default, access=Access.ADDRESS, check=url_problem
    )


def make_key_client(parsed: ParsedFields, address: str, timeout_s: float) -> JsonClient:
    """Make the client; nothing is connected yet.

    Args:
        parsed: the fields.
        address: the name of the field of the API's URL.
        timeout_s: for each request.
    """
    return JsonClient(
        parsed[address],
        {"Authorization": f"Bearer {parsed[API_KEY]}"},
        timeout_s=timeout_s,
        permissions=parsed.permissions,
    )
