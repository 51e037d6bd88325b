"""The endpoints of a stream's HTTP server; paths and bodies are Benthos's.

Every path is served twice: as it is, and behind `root_path`.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple

import orjson
import yaml
from aiohttp import hdrs, web

from streamer import __version__
from streamer.config import Config
from streamer.config.echo import echo
from streamer.redaction import Redaction
from streamer.service.doors import PING, READY, doors, forbid_sniffing
from streamer.service.exposition import exposition
from streamer.service.ready import readiness
from streamer.service.view import StreamView

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_METRICS: Final = "Exposes service-wide metrics in the format configured."


class _Endpoint(NamedTuple):
    about: str
    answer: Callable[[], web.Response]


def application(view: StreamView, host: str | None) -> web.Application:
    """Return the application.

    Args:
        view: the stream.
        host: the address that is listened on; None for all.
    """
    http: Mapping[str, Any] = view.config.http
    # What components take is as long as it is; the other paths read no bodies.
    app = web.Application(middlewares=doors(http, host), client_max_size=0)
    app.on_response_prepare.append(forbid_sniffing)
    for path, endpoint in _endpoints(view, bool(http["debug_endpoints"])).items():
        for full in dict.fromkeys((path, http["root_path"].rstrip("/") + path)):
            app.router.add_route(hdrs.METH_ANY, full, _handler(endpoint))
    app.router.add_route(hdrs.METH_ANY, "/{rest:.*}", _of_components(view, http["root_path"]))
    return app


def _endpoints(view: StreamView, debug: bool) -> dict[str, _Endpoint]:
    found = debugging(view.config) if debug else {}
    found[PING] = _Endpoint("Ping me.", lambda: web.Response(text="pong"))
    found["/version"] = _Endpoint("Returns the service version.", _version)
    found["/endpoints"] = _Endpoint(
        "Returns this map of endpoints.",
        lambda: _json(_listed(found, view)),
    )
    found[READY] = _Endpoint(
        "Returns 200 OK if all inputs and outputs are connected, otherwise a 503 is returned.",
        lambda: _ready(view),
    )
    metrics = exposition(view)
    if metrics is not None:
        for path in ("/stats", "/metrics"):
            found[path] = _Endpoint(_METRICS, lambda: _text(*metrics()))
    return found


def _listed(found: Mapping[str, _Endpoint], view: StreamView) -> dict[str, str]:
    about = {path: endpoint.about for path, endpoint in found.items()}
    return dict(sorted((view.endpoints.listed() | about).items()))


def _of_components(view: StreamView, root_path: str) -> Handler:
    """Answer what components serve, on paths that they add while the server runs."""
    root = root_path.rstrip("/")

    async def handle(request: web.Request) -> web.StreamResponse:
        paths = (request.path, request.path.removeprefix(root) or "/")
        for path in dict.fromkeys(paths):
            found = view.endpoints.find(path)
            if found is not None:
                return await found[0](request, found[1])
        return web.Response(status=404, text="404: Not Found")

    return handle


def debugging(config: Config) -> dict[str, _Endpoint]:
    """Return the endpoints that show the program from inside; secrets are scrubbed."""

    def as_yaml() -> str:
        return echo(config, os.environ)

    return {
        "/debug/config/json": _Endpoint(
            "DEBUG: Returns the loaded config as JSON.",
            lambda: _json(yaml.safe_load(as_yaml())),
        ),
        "/debug/config/yaml": _Endpoint(
            "DEBUG: Returns the loaded config as YAML.",
            lambda: web.Response(text=as_yaml()),
        ),
        "/debug/stack": _Endpoint(
            "DEBUG: Returns a snapshot of the current service stack trace.",
            lambda: web.Response(text=_stacks()),
        ),
    }


def _version() -> web.Response:
    return _json({"version": __version__, "built": ""})


def _ready(view: StreamView) -> web.Response:
    ready, body = readiness(view)
    # What keeps a connection from being made is often said with its URL.
    return _json(Redaction(view.config.secrets).value(body), 200 if ready else 503)


def _stacks() -> str:
    frames = sys._current_frames().items()
    return "\n".join(
        f"thread {number}\n{''.join(traceback.format_stack(frame))}" for number, frame in frames
    )


def _json(value: Any, status: int = 200) -> web.Response:
    return _text(orjson.dumps(value), "application/json", status)


def _text(body: bytes, content_type: str, status: int = 200) -> web.Response:
    return web.Response(body=body, status=status, headers={hdrs.CONTENT_TYPE: content_type})


def _handler(endpoint: _Endpoint) -> Handler:
    async def handle(_: web.Request) -> web.Response:
        return endpoint.answer()

    return handle
