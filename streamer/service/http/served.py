"""What the components of streams serve, on the service's server: behind the stream's id, or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from aiohttp import web

from streamer.endpoints.registry import Endpoints
from streamer.endpoints.registry import Handler as ComponentHandler
from streamer.endpoints.replies import not_yet
from streamer.service.doors import Handler
from streamer.service.streams.registry import Registry

_Found = tuple[ComponentHandler, Mapping[str, str]]


class Served:
    """Finds who answers a path."""

    def __init__(self, registry: Registry, prefixed: bool) -> None:
        """Take the streams, and whether paths begin with their ids."""
        self._registry = registry
        self._prefixed = prefixed

    def handler(self, root: str, absence_reason: Callable[[], str] = str) -> Handler:
        """Return what answers requests, with and without a prefix for all paths.

        Args:
            root: the prefix.
            absence_reason: gives why streams are not there that should be; while it gives one,
                those who ask for what is not there are asked to come again.
        """

        async def handle(request: web.Request) -> web.StreamResponse:
            paths = (request.path, request.path.removeprefix(root) or "/")
            for path in dict.fromkeys(paths):
                found = self.find(path)
                if found is not None:
                    return await found[0](request, found[1])
            if reason := absence_reason():
                return not_yet(reason)
            return web.Response(status=404, text="404: Not Found")

        return handle

    def find(self, path: str) -> _Found | None:
        """Return who answers a path, and what its parameters stand for."""
        if self._prefixed:
            stream_id, _, rest = path.removeprefix("/").partition("/")
            own = dict(self._served()).get(stream_id)
            if own is not None and (found := own.find(f"/{rest}")):
                return found
        of_resource = self._prefixed
        return next(
            (found for _, served in self._served() if (found := served.find(path, of_resource))),
            None,
        )

    def _served(self) -> Iterator[tuple[str, Endpoints]]:
        """Return what streams serve, by their ids; those that are stopped serve nothing."""
        for stream_id, managed in self._registry.streams().items():
            if not managed.view.is_over:
                yield stream_id, managed.view.endpoints

    def listed(self) -> dict[str, str]:
        """Return the paths with what they are for."""
        found: dict[str, str] = {}
        for stream_id, served in self._served():
            prefix = f"/{stream_id}" if self._prefixed else ""
            found |= {prefix + path: about for path, about in served.listed().items()}
            found |= served.listed(of_resource=True)
        return found
