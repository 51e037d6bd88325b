"""Metrics as one JSON object at `/stats` of the HTTP server."""

from __future__ import annotations

from typing import Final

from streamer.sdk.spec import Kind, Spec

SPEC: Final = Spec(
    Kind.METRICS, "json_api", "Serves metrics as a JSON object at `/stats` of the HTTP server."
)
