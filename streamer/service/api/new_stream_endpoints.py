"""The endpoints for a new stream: configs to begin with, and a check of its id."""

from __future__ import annotations

from collections.abc import Iterator

from aiohttp import web

from streamer.service.api import schemas as s
from streamer.service.api.endpoint import ApiRequest, Endpoint, Parameter
from streamer.service.api.responses import json_response
from streamer.service.console.starter_configs import list_starters
from streamer.service.fleet.manager import Manager
from streamer.service.fleet.stream_ids import stream_id_problem

_STARTER_SCHEMA = s.object_schema(name=s.STRING, title=s.STRING, text=s.STRING)


class NewStreamEndpoints:
    """The endpoints that the page of a new stream requests."""

    def __init__(self, manager: Manager) -> None:
        """Take the streams."""
        self._manager = manager

    def list_endpoints(self) -> Iterator[Endpoint]:
        """Return the endpoints."""
        yield Endpoint(
            *("GET", "/console/starters", "list_starters"),
            "Return configs to begin a new stream with.",
            *(self._list_starters, s.list_schema(_STARTER_SCHEMA)),
        )
        yield Endpoint(
            *("GET", "/console/new-id", "check_new_id"),
            "Return why a new stream cannot have an id; an empty problem when it can.",
            *(self._check_id, s.object_schema(problem=s.STRING)),
            parameters=(Parameter("id", "The id.", s.STRING),),
        )

    def _list_starters(self, request: ApiRequest) -> web.Response:
        return json_response([one._asdict() for one in list_starters()])

    def _check_id(self, request: ApiRequest) -> web.Response:
        registry, stream_id = self._manager.registry, request.query.get("id", "")
        problem = stream_id_problem(stream_id, registry.root_path) or ""
        if not problem and stream_id in registry.streams():
            problem = f"there is a stream {stream_id!r} already; expected another id"
        return json_response({"problem": problem})
