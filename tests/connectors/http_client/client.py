"""An HTTP client as a component has it, for tests."""

from __future__ import annotations

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.connectors.http_client.client import HttpClient


def client(fields: str, more: str = "") -> HttpClient:
    """Return the client of an output with these fields."""
    config = parse_config(f"output: {{http_client: {{{fields}}}}}\n{more}", env={})
    context = build_context(config.resources, config.output)
    return HttpClient(config.output.config, context)
