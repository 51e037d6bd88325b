"""Routes of the streams' components on the service's server, with the stream's id or without."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from aiohttp import web

from streamer.connectors.http_server.registry import EndpointRegistry
from streamer.connectors.http_server.registry import Handler as ComponentHandler
from streamer.connectors.http_server.replies import retry_later_reply
from streamer.service.access.middlewares import Handler
from streamer.service.fleet.registry import Registry

_Route = tuple[ComponentHandler, Mapping[str, str]]


class ComponentRoutes:
    """Finds who answers a path."""

    def __init__(self, registry: Registry, prefixed: bool) -> None:
        """Take the streams, and whether paths begin with their ids."""
        self._registry = registry
        self._prefixed = prefixed

    def make_handler(self, root: str, absence_reason: Callable[[], str] = str) -> Handler:
        """Return what answers requests, with and without a prefix for all paths.

        Args:
            root: the prefix.
            absence_reason: gives why streams are not there that should be; while it gives one,
                those who ask for what is not there are asked to come again.
        """

        async def handle(request: web.Request) -> web.StreamResponse:
            paths = (request.path, request.path.removeprefix(root) or "/")
            for path in dict.fromkeys(paths):
                route = self.find_route(path)
                if route is not None:
                    return await route[0](request, route[1])
            if reason := absence_reason():
                return retry_later_reply(reason)
            return web.Response(status=404, text="404: Not Found")

        return handle

    def find_route(self, path: str) -> _Route | None:
        """Return who answers a path, and what its parameters stand for."""
        if self._prefixed:
            stream_id, _, rest = path.removeprefix("/").partition("/")
            own_endpoints = dict(self._iter_endpoints()).get(stream_id)
            if own_endpoints is not None and (route := own_endpoints.find(f"/{rest}")):
                return route
        of_resource = self._prefixed
        return next(
            (
                route
                for _, endpoints in self._iter_endpoints()
                if (route := endpoints.find(path, of_resource))
            ),
            None,
        )

    def _iter_endpoints(self) -> Iterator[tuple[str, EndpointRegistry]]:
        """Return what streams serve, by their ids; those that are stopped serve nothing."""
        for stream_id, managed in self._registry.streams().items():
            if not managed.view.has_ended:
                yield stream_id, managed.view.endpoints

    def list_paths(self) -> dict[str, str]:
        """Return the paths with what they are for."""
        paths: dict[str, str] = {}
        for stream_id, endpoints in self._iter_endpoints():
            prefix = f"/{stream_id}" if self._prefixed else ""
            paths |= {prefix + path: about for path, about in endpoints.list_paths().items()}
            paths |= endpoints.list_paths(of_resource=True)
        return paths
