"""The service's server on pretended streams, and requests to it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from streamer.config import parse_config
from streamer.service.api.fleet_application import FleetApi
from streamer.service.api.server import HttpServer
from streamer.service.fleet.api_permissions import ApiPermissions
from tests.service.fleet.pretending import Pretended, Stage, pretended


@dataclass
class Asking:
    """A server that answers."""

    client: httpx2.Client
    service: Pretended
    api: FleetApi
    url: str

    @property
    def stage(self) -> Stage:
        return self.service.stage

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> httpx2.Response:
        """Ask; a body that is no text is sent as JSON. `X_Y` stands for the header `X-Y`."""
        content = body if isinstance(body, str | bytes | None) else json.dumps(body)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.request(method, path, content=content, headers=named)


@contextmanager
def asking(
    directory: Path,
    http: str = "",
    files: Mapping[str, str] | None = None,
    allowance: ApiPermissions = ApiPermissions(),  # noqa: B008
    stage: Stage | None = None,
    enabled: bool = True,
    prefixed: bool = True,
    sections: str = "",
    address: str = "127.0.0.1:0",
) -> Iterator[Asking]:
    root = f"http: {{ address: '{address}'{', ' if http else ''}{http} }}\n{sections}"
    with pretended(directory, allowance, stage, files, root) as service:
        config = parse_config(root, "root.yaml")
        log = service.manager.registry.log
        api = FleetApi(service.manager, config, log, enabled, prefixed)
        server = HttpServer(config.http, api.make_application)
        try:
            with httpx2.Client(base_url=server.url, timeout=30) as client:
                yield Asking(client, service, api, server.url)
        finally:
            server.stop()
            api.close()
