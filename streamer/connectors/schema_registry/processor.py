"""Processors that ask a schema registry: each message by itself, and a probe for dry runs."""

from __future__ import annotations

from streamer.connectors.schema_registry.client import RegistryClient
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.processing.per_message import Change, PerMessageProcessor


class RegistryProcessor(PerMessageProcessor):
    """Runs a function on every message by itself; see `SupportsProbe`."""

    def __init__(self, change: Change, origin: ComponentRef, client: RegistryClient) -> None:
        """Take the function, the component, and what it asks."""
        super().__init__(change, origin)
        self._client = client

    def probe(self) -> str:
        """Check that the registry answers."""
        return self._client.probe()
