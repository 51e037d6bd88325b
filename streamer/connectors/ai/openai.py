"""The fields and the client of OpenAI's API, which many other servers have too."""

from __future__ import annotations

from typing import Final

from streamer.connectors.http_client.json_client import JsonClient
from streamer.core.urls import url_problem
from streamer.sdk.spec import Access, Field, ParsedFields

SERVER_ADDRESS: Final = "server_address"
API_KEY: Final = "api_key"
MODEL: Final = "model"

PROBE_PATH: Final = "/models"


def client_fields(*models: str) -> tuple[Field, ...]:
    """Return the fields of every component of OpenAI's; `models` are examples."""
    return (
        Field(
            SERVER_ADDRESS,
            "string",
            "The URL of the API. Servers with the same API have another one, such as "
            "`http://localhost:8000/v1` for vLLM.",
            default="https://api.openai.com/v1",
            access=Access.ADDRESS,
            check=url_problem,
        ),
        Field(
            API_KEY, "string", "The key of the API.", secret=True, examples=("${OPENAI_API_KEY}",)
        ),
        Field(MODEL, "string", "The name of the model.", examples=models, access=Access.REMOTE),
    )


def make_client(parsed: ParsedFields, timeout_s: float) -> JsonClient:
    """Make the client; nothing is connected yet."""
    return JsonClient(
        parsed[SERVER_ADDRESS],
        {"Authorization": f"Bearer {parsed[API_KEY]}"},
        timeout_s=timeout_s,
        permissions=parsed.permissions,
    )
