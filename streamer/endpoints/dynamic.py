"""The REST API of components that others are added to while they run; as Benthos's."""

from __future__ import annotations

import asyncio
import hashlib
import posixpath
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import orjson
import yaml
from aiohttp import hdrs, web

from streamer.durations import format_duration
from streamer.endpoints.registry import Endpoints
from streamer.endpoints.replies import error_reply
from streamer.errors import StreamerError

_JSON: Final = "application/json"


class DynamicApi:
    """Lists, shows, adds and removes components by their names."""

    def __init__(
        self,
        what: str,
        update: Callable[[str, str], str],
        delete: Callable[[str], None],
        now: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Set up.

        Args:
            what: the components' kind, plural: `inputs`.
            update: adds one of a name with a config, in the place of what is there; returns the
                config as it is shown. Raises StreamerError.
            delete: removes one. Raises StreamerError.
            now: a clock that never runs backwards, ns.
        """
        self._what = what
        self._update = update
        self._delete = delete
        self._now = now
        self._lock = threading.Lock()
        self._began: dict[str, int] = {}
        self._configs: dict[str, str] = {}
        self._given: dict[str, str] = {}

    def serve(self, endpoints: Endpoints, prefix: str) -> None:
        """Add the paths."""
        root = posixpath.join("/", prefix.strip("/"), self._what)
        one = f"{root}/{{id}}"
        about = f"Returns the uptime of one of the dynamic {self._what}, or `stopped`."
        endpoints.add(f"{one}/uptime", about, self._show_uptime)
        about = f"Returns, makes, changes or removes one of the dynamic {self._what}."
        endpoints.add(one, about, self._change)
        endpoints.add(root, f"Lists the dynamic {self._what}.", self._list)

    def started(self, name: str, config: str) -> None:
        """Say that a component runs."""
        with self._lock:
            self._began[name] = self._now()
            self._configs[name] = config

    def stopped(self, name: str) -> None:
        """Say that a component runs no more."""
        with self._lock:
            self._began.pop(name, None)

    def uptime(self, name: str) -> str | None:
        """Return how long a component has run, or `stopped`; None when there is none."""
        with self._lock:
            if name in self._began:
                return format_duration(self._now() - self._began[name])
            return "stopped" if name in self._configs else None

    async def _list(self, request: web.BaseRequest, _: Mapping[str, str]) -> web.Response:
        with self._lock:
            configs = dict(self._configs)
        found: dict[str, Any] = {
            name: {
                "uptime": self.uptime(name) or "stopped",
                "config": yaml.safe_load(config),
                "config_raw": config,
            }
            for name, config in sorted(configs.items())
        }
        return web.Response(body=orjson.dumps(found), content_type=_JSON)

    async def _show_uptime(
        self, request: web.BaseRequest, parameters: Mapping[str, str]
    ) -> web.Response:
        name = parameters["id"]
        found = self.uptime(name)
        if found is None:
            return error_reply(404, f"Dynamic component '{name}' is unknown")
        return web.Response(text=found)

    async def _change(
        self, request: web.BaseRequest, parameters: Mapping[str, str]
    ) -> web.Response:
        name = parameters["id"]
        try:
            if request.method == "GET":
                return self._shown(name)
            if _from_elsewhere(request):
                return error_reply(403, "Pages of other sites may not change this program")
            if request.method == "POST":
                body = await request.read()
                await asyncio.to_thread(self._post, name, body)
            elif request.method == "DELETE":
                await asyncio.to_thread(self._remove, name)
            else:
                raise StreamerError(f"verb not supported: {request.method}")
        except StreamerError as e:
            return error_reply(502, f"Error: {e}")
        return web.Response()

    def _shown(self, name: str) -> web.Response:
        config = self._configs.get(name)
        if config is None:
            return error_reply(404, f"Dynamic component '{name}' is not active")
        return web.Response(text=config)

    def _post(self, name: str, body: bytes) -> None:
        given = hashlib.sha256(body).hexdigest()
        if self._given.get(name) == given:
            return
        shown = self._update(name, body.decode(errors="replace"))
        self._given[name] = given
        self.started(name, shown)

    def _remove(self, name: str) -> None:
        self._delete(name)
        self.stopped(name)
        with self._lock:
            self._given.pop(name, None)
            self._configs.pop(name, None)


def _from_elsewhere(request: web.BaseRequest) -> bool:
    """Tell whether a page of another site asks: a config may well run commands."""
    origin = request.headers.get(hdrs.ORIGIN)
    return origin is not None and urlsplit(origin).netloc != request.headers.get(hdrs.HOST, "")
