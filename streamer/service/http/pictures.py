"""The endpoints that the console draws a stream by: its components, and what they count."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict
from typing import Final

from aiohttp import web

from streamer.config.echo import Shown
from streamer.graph.model import graph_of
from streamer.service.http import schemas as s
from streamer.service.http.answers import as_json
from streamer.service.http.endpoint import Asked, Endpoint
from streamer.service.streams.manager import Manager
from streamer.service.streams.run import plan_of
from streamer.service.vitals import components

_UNKNOWN: Final = {404: "There is no such stream."}


class PictureEndpoints:
    """The graph of a stream, and the figures of its nodes."""

    def __init__(self, manager: Manager) -> None:
        """Take the streams."""
        self._manager = manager

    def all(self) -> Iterator[Endpoint]:
        """Return them."""
        path = "/streams/{id}"
        yield Endpoint(
            *("GET", f"{path}/graph", "read_graph"),
            "Return a stream's components as they stand on a message's way, without secrets.",
            *(self._graph, s.GRAPH),
            codes=_UNKNOWN,
        )
        yield Endpoint(
            *("GET", f"{path}/components", "read_components"),
            "Return what each component of a stream has counted since the program's start.",
            *(self._components, s.COMPONENTS),
            codes=_UNKNOWN,
        )

    def _graph(self, asked: Asked) -> web.Response:
        managed = self._manager.registry.get(asked.path["id"])
        config = managed.config
        plan = plan_of(config, managed.stream_id, "INFO")
        found = asdict(graph_of(plan, Shown(config, os.environ)))
        return as_json(managed.without_secrets({**found, "revision": managed.revision.number}))

    def _components(self, asked: Asked) -> web.Response:
        managed = self._manager.registry.get(asked.path["id"])
        found = {"revision": managed.revision.number, "components": components(managed.view)}
        return as_json(found)
