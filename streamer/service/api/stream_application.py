"""The endpoints of a stream's HTTP server; paths and bodies are Benthos's.

Every path is served twice: as it is, and behind `root_path`.
"""

from __future__ import annotations

import asyncio
import os
import sys
import traceback
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

import orjson
import yaml
from aiohttp import hdrs, web

from streamer import __version__
from streamer.config import Config
from streamer.config.echo import echo_config
from streamer.core.redaction import Redaction
from streamer.engine.driver.decision_journal import read_decisions
from streamer.plan import make_plan
from streamer.service.access.middlewares import (
    PING_PATH,
    READY_PATH,
    forbid_sniffing,
    make_middlewares,
)
from streamer.service.monitoring.decision_answers import (
    DecisionQuery,
    DecisionQueryError,
    answer_query,
    windows_by_label,
)
from streamer.service.monitoring.exposition import make_exposition
from streamer.service.monitoring.history_document import (
    HistoryQuery,
    HistoryQueryError,
    describe_history,
)
from streamer.service.monitoring.readiness import check_readiness
from streamer.service.monitoring.stream_view import StreamView
from streamer.window.inspect.window_query import MAX_ROWS, WindowQuery

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_HISTORY_PATH: Final = "/history"
_WHY_PATH: Final = "/why"
_METRICS_ABOUT: Final = "Exposes service-wide metrics in the format configured."


class _Endpoint(NamedTuple):
    about: str
    answer: Callable[[], web.Response]


def make_application(view: StreamView, host: str | None) -> web.Application:
    """Return the application.

    Args:
        view: the stream.
        host: the address that is listened on; None for all.
    """
    http: Mapping[str, Any] = view.config.http
    # What components take is as long as it is; the other paths read no bodies.
    app = web.Application(middlewares=make_middlewares(http, host), client_max_size=0)
    app.on_response_prepare.append(forbid_sniffing)
    endpoints = _make_endpoints(view, bool(http["debug_endpoints"]))
    handlers = {path: _make_handler(endpoint) for path, endpoint in endpoints.items()}
    handlers[_HISTORY_PATH] = partial(_answer_history, view)
    handlers[_WHY_PATH] = partial(_answer_why, view)
    for path, handler in handlers.items():
        for full in dict.fromkeys((path, http["root_path"].rstrip("/") + path)):
            app.router.add_route(hdrs.METH_ANY, full, handler)
    components = _make_component_handler(view, http["root_path"])
    for root in dict.fromkeys(("/", http["root_path"].rstrip("/") + "/")):
        app.router.add_route(hdrs.METH_ANY, root, _make_root_handler(view, components, endpoints))
    app.router.add_route(hdrs.METH_ANY, "/{rest:.*}", components)
    return app


def _make_endpoints(view: StreamView, debug: bool) -> dict[str, _Endpoint]:
    endpoints = debug_endpoints(view.config) if debug else {}
    endpoints[PING_PATH] = _Endpoint("Ping me.", lambda: web.Response(text="pong"))
    endpoints["/version"] = _Endpoint("Returns the service version.", _version_response)
    endpoints["/endpoints"] = _Endpoint(
        "Returns this map of endpoints.",
        lambda: _json_response(_list_endpoints(endpoints, view)),
    )
    endpoints[READY_PATH] = _Endpoint(
        "Returns 200 OK if all inputs and outputs are connected, otherwise a 503 is returned.",
        lambda: _ready_response(view),
    )
    # It reads parameters, and has a handler of its own.
    endpoints[_HISTORY_PATH] = _Endpoint(
        "Returns the figures of the last hour by time: ?from=15m&figures=in,out.",
        lambda: _history_response(view, {}),
    )
    endpoints[_WHY_PATH] = _Endpoint(
        "Returns who holds the clock of windows back, and the reason of a decision: ?window=TIME.",
        lambda: _why_response(view, {}),
    )
    metrics = make_exposition(view)
    if metrics is not None:
        for path in ("/stats", "/metrics"):
            endpoints[path] = _Endpoint(_METRICS_ABOUT, lambda: _text_response(*metrics()))
    return endpoints


def _list_endpoints(endpoints: Mapping[str, _Endpoint], view: StreamView) -> dict[str, str]:
    about = {path: endpoint.about for path, endpoint in endpoints.items()}
    return dict(sorted((view.endpoints.list_paths() | about).items()))


def _make_component_handler(view: StreamView, root_path: str) -> Handler:
    """Answer what components serve, on paths that they add while the server runs."""
    root = root_path.rstrip("/")

    async def handle(request: web.Request) -> web.StreamResponse:
        paths = (request.path, request.path.removeprefix(root) or "/")
        for path in dict.fromkeys(paths):
            route = view.endpoints.find(path)
            if route is not None:
                return await route[0](request, route[1])
        return web.Response(status=404, text="404: Not Found")

    return handle


def _make_root_handler(
    view: StreamView, components: Handler, endpoints: Mapping[str, _Endpoint]
) -> Handler:
    """Answer the address that the log shows: with the map of endpoints, unless a component does."""

    async def handle(request: web.Request) -> web.StreamResponse:
        if request.method not in (hdrs.METH_GET, hdrs.METH_HEAD) or view.endpoints.find("/"):
            return await components(request)
        return _json_response(_list_endpoints(endpoints, view))

    return handle


def debug_endpoints(config: Config) -> dict[str, _Endpoint]:
    """Return the endpoints that show the program from inside; secrets are scrubbed."""

    def as_yaml() -> str:
        return echo_config(config, os.environ)

    return {
        "/debug/config/json": _Endpoint(
            "DEBUG: Returns the loaded config as JSON.",
            lambda: _json_response(yaml.safe_load(as_yaml())),
        ),
        "/debug/config/yaml": _Endpoint(
            "DEBUG: Returns the loaded config as YAML.",
            lambda: web.Response(text=as_yaml()),
        ),
        "/debug/stack": _Endpoint(
            "DEBUG: Returns a snapshot of the current service stack trace.",
            lambda: web.Response(text=_format_stacks()),
        ),
    }


def _version_response() -> web.Response:
    return _json_response({"version": __version__, "built": ""})


def _ready_response(view: StreamView) -> web.Response:
    ready, body = check_readiness(view)
    # What keeps a connection from being made is often said with its URL.
    return _json_response(Redaction(view.config.secrets).redact_value(body), 200 if ready else 503)


async def _answer_history(view: StreamView, request: web.Request) -> web.StreamResponse:
    # A component that is served there has been there for longer.
    route = view.endpoints.find(_HISTORY_PATH)
    if route is not None:
        return await route[0](request, route[1])
    return _history_response(view, request.query)


def _history_response(view: StreamView, parameters: Mapping[str, str]) -> web.Response:
    try:
        query = HistoryQuery.parse(parameters, view.figures.clock())
    except HistoryQueryError as e:
        return web.Response(status=400, text=f"Error: {e}\n")
    document = describe_history(view.figures, query)
    markers = Redaction(view.config.secrets).redact_value(document["markers"])
    return _json_response({**document, "markers": markers})


async def _answer_why(view: StreamView, request: web.Request) -> web.StreamResponse:
    route = view.endpoints.find(_WHY_PATH)  # as for the history
    if route is not None:
        return await route[0](request, route[1])
    # The journal is read from files.
    return await asyncio.to_thread(_why_response, view, dict(request.query))


def _why_response(view: StreamView, parameters: Mapping[str, str]) -> web.Response:
    try:
        query = DecisionQuery.parse(parameters)
    except DecisionQueryError as e:
        return web.Response(status=400, text=f"Error: {e}\n")
    directory = view.checkpoint_directory
    records = [] if directory is None else [*read_decisions(directory)]
    listed: Any = ()
    if query.lists_windows and view.is_running:
        usual = WindowQuery(limit=MAX_ROWS, key=query.key, only_key=query.key is not None)
        listed = view.list_windows(usual).get("windows", ())
    windows = windows_by_label(make_plan(view.config))
    document = answer_query(records, windows, query, listed)
    return _json_response(Redaction(view.config.secrets).redact_value(document))


def _format_stacks() -> str:
    frames = sys._current_frames().items()
    return "\n".join(
        f"thread {number}\n{''.join(traceback.format_stack(frame))}" for number, frame in frames
    )


def _json_response(value: Any, status: int = 200) -> web.Response:
    return _text_response(orjson.dumps(value), "application/json", status)


def _text_response(body: bytes, content_type: str, status: int = 200) -> web.Response:
    return web.Response(body=body, status=status, headers={hdrs.CONTENT_TYPE: content_type})


def _make_handler(endpoint: _Endpoint) -> Handler:
    async def handle(_: web.Request) -> web.Response:
        return endpoint.answer()

    return handle
