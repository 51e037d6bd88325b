"""Components that come and go while a stream runs, over HTTP: Benthos's API of `dynamic`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol
from urllib.parse import urlsplit

import orjson
from aiohttp import hdrs, web

from streamer.connectors.http_server.registry import EndpointRegistry, Handler
from streamer.connectors.http_server.replies import error_reply
from streamer.core.durations import format_duration
from streamer.core.errors import StreamerError


class RunningComponent(Protocol):
    """A component that runs: since when (`time.monotonic_ns`), and its config as a document."""

    @property
    def since(self) -> int | None:
        """Time of its start; None when it has ended by itself."""

    @property
    def document(self) -> Mapping[str, Any]:
        """Its config."""


class ComponentRegistry(Protocol):
    """Those that run. Its methods are called in threads."""

    def running(self) -> Mapping[str, RunningComponent]:
        """Return what runs, by id."""

    def put(self, name: str, text: str) -> None:
        """Start one, or change it.

        Raises:
            StreamerError: the config is not right.
        """

    def remove(self, name: str) -> None:
        """Stop one; one that there is not is as good."""


def serve_dynamic(
    endpoints: EndpointRegistry,
    what: str,
    prefix: str,
    registry: ComponentRegistry,
    format_config: Callable[[Any], str],
    file: str = "",
) -> Callable[[], None]:
    """Add the endpoints; return the function that removes them, see `EndpointRegistry.add`.

    Args:
        endpoints: of the stream's server.
        what: `outputs` or `inputs`.
        prefix: what paths begin with.
        registry: what runs.
        format_config: writes a document as YAML.
        file: the file that the component stands in.
    """
    one, api = what[:-1], _DynamicApi(registry, format_config)
    base = f"{prefix.rstrip('/')}/{what}"
    handlers: dict[str, tuple[str, Handler]] = {
        f"{base}/{{id}}/uptime": (f"Returns for how long an {one} runs.", api.get_uptime),
        f"{base}/{{id}}": (f"Returns, makes, changes or removes an {one}.", api.handle_component),
        base: (f"Returns the dynamic {what} with their configs.", api.list_components),
    }
    served = {
        path if path.startswith("/") else f"/{path}": given for path, given in handlers.items()
    }
    return endpoints.add(f"the {one} dynamic", served, "give one of them another prefix", file)


class _DynamicApi:
    """The handlers of the endpoints."""

    def __init__(self, registry: ComponentRegistry, format_config: Callable[[Any], str]) -> None:
        self._registry = registry
        self._format_config = format_config

    async def list_components(
        self, request: web.BaseRequest, _: Mapping[str, str]
    ) -> web.StreamResponse:
        """List what runs."""
        components = {
            name: {
                "uptime": _format_uptime(running),
                "config": running.document,
                "config_raw": self._format_config(running.document),
            }
            for name, running in self._registry.running().items()
        }
        return web.Response(body=orjson.dumps(components, default=str))

    async def get_uptime(
        self, request: web.BaseRequest, named: Mapping[str, str]
    ) -> web.StreamResponse:
        """Return for how long one runs."""
        running = self._registry.running().get(named["id"])
        if running is None:
            return error_reply(404, f"Dynamic component '{named['id']}' is unknown")
        return web.Response(text=_format_uptime(running))

    async def handle_component(
        self, request: web.BaseRequest, named: Mapping[str, str]
    ) -> web.StreamResponse:
        """Return, make, change or remove one."""
        name = named["id"]
        if request.method != "GET" and _is_cross_site(request):
            return error_reply(403, "Pages of other sites may not change this program")
        if request.method == "GET":
            running = self._registry.running().get(name)
            if running is None:
                return error_reply(404, f"Dynamic component '{name}' is not active")
            return web.Response(text=self._format_config(running.document))
        try:
            if request.method == "POST":
                text = (await request.read()).decode()
                await asyncio.to_thread(self._registry.put, name, text)
            elif request.method == "DELETE":
                await asyncio.to_thread(self._registry.remove, name)
            else:
                raise StreamerError(f"verb not supported: {request.method}")
        except (StreamerError, ValueError) as error:
            return error_reply(502, f"Error: {error}")
        return web.Response()


def _format_uptime(running: RunningComponent) -> str:
    if running.since is None:
        return "stopped"
    return format_duration(time.monotonic_ns() - running.since)


def _is_cross_site(request: web.BaseRequest) -> bool:
    """Return whether a page of another site asks: what a config names may well be a command."""
    origin = request.headers.get(hdrs.ORIGIN)
    return origin is not None and urlsplit(origin).netloc != request.headers.get(hdrs.HOST, "")
