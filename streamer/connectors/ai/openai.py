"""The fields and the client of OpenAI's API, which many other servers have too."""

from __future__ import annotations

from typing import Final

from streamer.connectors.ai.key_client import address_field, key_client_fields, make_key_client
from streamer.connectors.http_client.json_client import JsonClient
from streamer.sdk.spec import Field, ParsedFields

SERVER_ADDRESS: Final = "server_address"

PROBE_PATH: Final = "/models"


def client_fields(*models: str) -> tuple[Field, ...]:
    """Return the fields of every component of OpenAI's; `models` are examples."""
    address = address_field(
        SERVER_ADDRESS,
        "The URL of the API. Servers with the same API have another one, such as "
        "`http://localhost:8000/v1` for vLLM.",
        "https://api.openai.com/v1",
    )
    return key_client_fields(address, "OPENAI_API_KEY", models)


def make_client(parsed: ParsedFields, timeout_s: float) -> JsonClient:
    """Make the client; nothing is connected yet."""
    return make_key_client(parsed, SERVER_ADDRESS, timeout_s)
