"""The endpoints that the console draws a stream by: its components, and what they count."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict
from typing import Final

from aiohttp import web

from streamer.config import Config
from streamer.config.echo import ConfigRedactor
from streamer.plan import make_plan
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec.children import child_components
from streamer.service.api import schemas as s
from streamer.service.api.endpoint import ApiRequest, Endpoint
from streamer.service.api.responses import json_response
from streamer.service.fleet.manager import Manager
from streamer.service.monitoring.stream_summary import summarise_components
from streamer.tools.graph.model import build_graph

_UNKNOWN_STREAM_CODES: Final = {404: "There is no such stream."}


class GraphEndpoints:
    """The graph of a stream, and the figures of its nodes."""

    def __init__(self, manager: Manager) -> None:
        """Take the streams."""
        self._manager = manager

    def list_endpoints(self) -> Iterator[Endpoint]:
        """Return the endpoints."""
        path = "/streams/{id}"
        yield Endpoint(
            *("GET", f"{path}/graph", "read_graph"),
            "Return a stream's components as they stand on a message's way, without secrets.",
            *(self._graph, s.GRAPH),
            codes=_UNKNOWN_STREAM_CODES,
        )
        yield Endpoint(
            *("GET", f"{path}/components", "read_components"),
            "Return the counters of each component of a stream since the program's start.",
            *(self._components, s.COMPONENTS),
            codes=_UNKNOWN_STREAM_CODES,
        )

    def _graph(self, request: ApiRequest) -> web.Response:
        managed = self._manager.registry.get(request.path["id"])
        config = managed.config
        plan = make_plan(config, name=managed.stream_id)
        graph = asdict(build_graph(plan, ConfigRedactor(config, os.environ)))
        shown = managed.redact_value({**graph, "revision": managed.revision.number})
        return json_response({**shown, "lines": find_component_lines(config)})

    def _components(self, request: ApiRequest) -> web.Response:
        managed = self._manager.registry.get(request.path["id"])
        document = {
            "revision": managed.revision.number,
            "condition": managed.condition(),
            "components": summarise_components(managed.view),
        }
        return json_response(document)


def find_component_lines(config: Config) -> dict[str, int]:
    """Return the lines of a config's components, by their paths as metrics have them.

    Those that stand in other files, such as resources of the service, are left out.
    """
    lines: dict[str, int] = {}
    waiting = [*config.components, config.output]
    while waiting:
        component = waiting.pop()
        path = ComponentRef(component).fields["path"]
        if component.file == config.path and component.line and path not in lines:
            lines[path] = component.line
            waiting += [*component.processors, *child_components(component)]
    return lines
