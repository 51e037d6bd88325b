"""The HTTP server of many streams: the API, metrics, health, and what their components serve.

Every path is served twice: as it is, and behind `root_path`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, cast

from aiohttp import hdrs, web

from streamer import __version__
from streamer.config import Config
from streamer.connectors.http_server.replies import error_reply
from streamer.core.errors import StreamerError
from streamer.core.log_format import LogLine
from streamer.service.access.middlewares import (
    AUTHOR_KEY,
    PING_PATH,
    READY_PATH,
    Handler,
    cross_site_refusal,
    forbid_sniffing,
    make_middlewares,
)
from streamer.service.api.authoring_endpoints import AuthoringEndpoints
from streamer.service.api.canary_endpoints import CanaryEndpoints
from streamer.service.api.component_routes import ComponentRoutes
from streamer.service.api.decision_endpoints import DecisionEndpoints
from streamer.service.api.earlier_state_endpoints import EarlierStateEndpoints
from streamer.service.api.endpoint import ApiRequest, AsyncHandler, Endpoint, Parameter, SyncHandler
from streamer.service.api.failed_message_endpoints import FailedMessageEndpoints
from streamer.service.api.graph_endpoints import GraphEndpoints
from streamer.service.api.history_endpoints import HistoryEndpoints
from streamer.service.api.label_endpoints import LabelEndpoints
from streamer.service.api.manual_endpoints import ManualEndpoints
from streamer.service.api.new_stream_endpoints import NewStreamEndpoints
from streamer.service.api.openapi import make_openapi
from streamer.service.api.playground_endpoints import PlaygroundEndpoints
from streamer.service.api.read_endpoints import ReadEndpoints
from streamer.service.api.request_parsing import BodyTooLargeError, parse_change_options, read_body
from streamer.service.api.responses import error_response, json_response, text_response
from streamer.service.api.result_endpoints import ResultEndpoints
from streamer.service.api.service_endpoints import ServiceEndpoints
from streamer.service.api.stream_application import debug_endpoints
from streamer.service.api.stream_endpoints import StreamEndpoints
from streamer.service.api.tap_endpoints import TapEndpoints
from streamer.service.api.trial_endpoints import TrialEndpoints
from streamer.service.api.window_endpoints import WindowEndpoints
from streamer.service.console.pages import ConsolePages
from streamer.service.fleet.log_tail import LogTail
from streamer.service.fleet.manager import Manager
from streamer.service.fleet.service_facts import StartOptions
from streamer.service.monitoring.exposition import Exposition, make_fleet_exposition

_STARTING_TEXT: Final = "Spark is starting\n"
_STOPPING: Final = "the service is stopping"
_RETRY_AFTER_S: Final = "2"
_SERVICE: Final = "service"
_READY_PARAMETER: Final = Parameter(
    "of",
    "`service`: whether the API answers and the streams of the last run have been started, "
    "with or without messages.",
    {"type": "string", "enum": [_SERVICE]},
)


def _make_set_event() -> threading.Event:
    event = threading.Event()
    event.set()
    return event


@dataclass(frozen=True)
class FleetApi:
    """The parts of the service that the server serves.

    Attributes:
        manager: the streams.
        root: the service's config.
        log: takes log lines.
        enabled: whether streams can be changed and looked at.
        prefixed: whether what components serve stands behind the stream's id.
        deploy_pool: threads for what waits for streams to start and stop.
        read_pool: threads for all else.
        streams_available: set when streams can be asked for; before, Spark is starting.
        streams_restored: set when all streams that should run have been tried once.
        stopping: set when the service stops; nothing is ready from then on.
        service_log: the newest lines of the service's own log.
        options: how it was started.
    """

    manager: Manager
    root: Config
    log: LogLine
    enabled: bool = True
    prefixed: bool = True
    deploy_pool: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(16, "deploy"), repr=False
    )
    read_pool: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(4, "look"), repr=False
    )
    streams_available: threading.Event = field(default_factory=_make_set_event, repr=False)
    streams_restored: threading.Event = field(default_factory=_make_set_event, repr=False)
    stopping: threading.Event = field(default_factory=threading.Event, repr=False)
    service_log: LogTail = field(default_factory=LogTail, repr=False)
    options: StartOptions = field(default_factory=StartOptions, repr=False)

    @cached_property
    def results(self) -> ResultEndpoints:
        """The endpoint of results, of which there is one: it counts those who ask."""
        return ResultEndpoints(self.manager)

    @cached_property
    def earlier_states(self) -> EarlierStateEndpoints:
        """The endpoints of earlier states, of which there is one: it reads one at a time."""
        return EarlierStateEndpoints(self.manager)

    @cached_property
    def playground(self) -> PlaygroundEndpoints:
        """The endpoint that tries mappings, of which there is one: it has processes."""
        return PlaygroundEndpoints(self.manager)

    @cached_property
    def trials(self) -> TrialEndpoints:
        """The endpoints that try configs, of which there is one: it has processes."""
        return TrialEndpoints(self.manager)

    @cached_property
    def service(self) -> ServiceEndpoints:
        """The endpoints of the service itself: they remember how large checkpoints are."""
        return ServiceEndpoints(self.manager, self.root, self.service_log, self.options)

    def make_application(self, host: str | None) -> web.Application:
        """Return the application, for the address that is listened on (None for all)."""
        http: Mapping[str, Any] = self.root.http
        # What components take is as long as it is; bodies of the API are read within bounds.
        root = http["root_path"].rstrip("/")
        pages = ConsolePages().make_routes(root) if self.enabled else {}
        app = web.Application(
            middlewares=make_middlewares(http, host, frozenset(pages)), client_max_size=0
        )
        app.on_response_prepare.append(forbid_sniffing)
        for path, page in pages.items():
            app.router.add_route(hdrs.METH_ANY, path, page)
        by_path: dict[str, dict[str, Endpoint]] = {}
        for endpoint in self.list_endpoints():
            by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint
        early = {endpoint.path for endpoint in self._base_endpoints()}
        # What a start waits for stands in the log.
        early |= {endpoint.path for endpoint in self.service.list_endpoints()}
        for path, methods in by_path.items():
            handler = self._make_handler(methods)
            handler = handler if path in early else self._when_available(handler)
            for full in dict.fromkeys((path, root + path)):
                app.router.add_route(hdrs.METH_ANY, full, handler)
        routes = ComponentRoutes(self.manager.registry, self.prefixed)
        if not pages:
            # Without the console, the address that the log shows lists what there is.
            app.router.add_get("/", self._show_paths)
        app.on_cleanup.extend((self.playground.close, self.trials.close))
        rest = self._when_available(routes.make_handler(root, self._absence_reason))
        app.router.add_route(hdrs.METH_ANY, "/{rest:.*}", rest)
        return app

    def list_endpoints(self) -> list[Endpoint]:
        """Return the table."""
        endpoints = [*self._base_endpoints()]
        if self.enabled:
            endpoints += self.service.list_endpoints()
            endpoints += StreamEndpoints(self.manager).list_endpoints()
            endpoints += CanaryEndpoints(self.manager).list_endpoints()
            endpoints += ReadEndpoints(self.manager).list_endpoints()
            endpoints += GraphEndpoints(self.manager).list_endpoints()
            endpoints += HistoryEndpoints(self.manager).list_endpoints()
            endpoints += TapEndpoints(self.manager).list_endpoints()
            endpoints += FailedMessageEndpoints(self.manager).list_endpoints()
            endpoints += LabelEndpoints(self.manager).list_endpoints()
            endpoints += WindowEndpoints(self.manager).list_endpoints()
            endpoints += DecisionEndpoints(self.manager).list_endpoints()
            endpoints += self.earlier_states.list_endpoints()
            endpoints += self.results.list_endpoints()
            endpoints += AuthoringEndpoints(self.manager).list_endpoints()
            endpoints += self.playground.list_endpoints()
            endpoints += self.trials.list_endpoints()
            endpoints += NewStreamEndpoints(self.manager).list_endpoints()
            endpoints += ManualEndpoints().list_endpoints()
        return endpoints

    def _base_endpoints(self) -> list[Endpoint]:
        def get(path: str, name: str, about: str, answer: Any, ok: Any = None) -> Endpoint:
            codes = {503: "Some are not."} if path == READY_PATH else {}
            parameters = (_READY_PARAMETER,) if path == READY_PATH else ()
            return Endpoint("GET", path, name, about, answer, ok, parameters, codes=codes)

        version = {"version": __version__, "built": ""}
        anything: dict[str, Any] = {"type": "object"}
        endpoints = [
            get(PING_PATH, "ping", "Return pong.", lambda _: text_response("pong")),
            get(
                "/version",
                "version",
                "Return the version.",
                lambda _: json_response(version),
                anything,
            ),
            get(
                READY_PATH,
                "ready",
                "Return 200 when the inputs and outputs of all streams that run are connected.",
                self._ready_response,
            ),
            get(
                "/endpoints",
                "endpoints",
                "Return all paths with a sentence about each.",
                lambda _: json_response(self._describe_paths()),
                anything,
            ),
            get(
                "/openapi.json",
                "openapi",
                "Return this API as an OpenAPI document.",
                lambda _: json_response(make_openapi(self.list_endpoints(), self.root.http)),
                anything,
            ),
        ]
        metrics = make_fleet_exposition(self.root.metrics, self._views)
        if metrics is not None:
            endpoints += [
                get(path, name, "Return the metrics of all streams.", _make_metrics_answer(metrics))
                for path, name in (("/metrics", "metrics"), ("/stats", "stats"))
            ]
        if self.root.http["debug_endpoints"]:
            for path, one in debug_endpoints(self.root).items():
                answer = one.answer
                name = path.strip("/").replace("/", "_")
                endpoints.append(get(path, name, one.about, lambda _, answer=answer: answer()))
        return endpoints

    def _views(self) -> dict[str, Any]:
        streams = self.manager.registry.streams()
        return {name: managed.view for name, managed in streams.items()}

    async def _show_paths(self, request: web.Request) -> web.StreamResponse:
        route = ComponentRoutes(self.manager.registry, self.prefixed).find_route("/")
        if route is not None:
            return await route[0](request, route[1])
        return json_response(self._describe_paths())

    def _describe_paths(self) -> dict[str, str]:
        texts_by_path: dict[str, list[str]] = {}
        for endpoint in self.list_endpoints():
            texts_by_path.setdefault(endpoint.path, []).append(
                f"{endpoint.method}: {endpoint.about}"
            )
        about = {path: " ".join(texts) for path, texts in texts_by_path.items()}
        routes = ComponentRoutes(self.manager.registry, self.prefixed)
        return dict(sorted({**routes.list_paths(), **about}.items()))

    def _absence_reason(self) -> str:
        """Return why a path may be missing now that is there at other times; empty for none."""
        if self.stopping.is_set():
            return _STOPPING
        return "" if self.streams_restored.is_set() else "streams are starting"

    def _ready_response(self, request: ApiRequest) -> web.Response:
        if self.stopping.is_set():
            return text_response(f"{_STOPPING}\n", 503)
        if not self.streams_restored.is_set():
            return text_response(
                "streams are starting\n" if self.streams_available.is_set() else _STARTING_TEXT, 503
            )
        if request.query.get("of") == _SERVICE:
            return text_response("OK")
        streams = self.manager.registry.streams()
        waiting: dict[str, list[str]] = {}
        for name, one in streams.items():
            if one.lifecycle.is_active and not one.is_ready:
                waiting.setdefault(one.unready_text(), []).append(name)
        lines = [f"streams {', '.join(names)} are not ready: {w}\n" for w, names in waiting.items()]
        return text_response("".join(lines), 503) if lines else text_response("OK")

    def _when_available(self, handler: Handler) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            if self.streams_available.is_set():
                return await handler(request)
            reply = error_reply(503, f"Error: {_STARTING_TEXT.strip()}: try again")
            reply.headers[hdrs.RETRY_AFTER] = _RETRY_AFTER_S
            return reply

        return handle

    def _make_handler(self, methods: Mapping[str, Endpoint]) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            endpoint = methods.get(request.method)
            if endpoint is None:
                return error_reply(400, f"Error: verb not supported: {request.method}")
            refusal = cross_site_refusal(request, self.root.http) if endpoint.is_change else None
            if refusal is not None:
                return error_reply(refusal[0], f"Error: {refusal[1]}")
            try:
                api_request = await self._parse_request(request, endpoint)
            except BodyTooLargeError:
                return error_reply(413, "Error: the body is larger than a config may be")
            except TimeoutError:
                return error_reply(408, "Error: the body has not come in time")
            except UnicodeDecodeError:
                return error_reply(400, "Error: the body is not UTF-8")
            return await self._call_endpoint(endpoint, api_request)

        return handle

    async def _parse_request(self, request: web.Request, endpoint: Endpoint) -> ApiRequest:
        body = await read_body(request) if endpoint.body is not None else ""
        query: dict[str, str] = {}
        for name, value in request.query.items():
            query.setdefault(name, value)
        author = request.get(AUTHOR_KEY) or f"({request.remote or 'unknown'})"
        options = parse_change_options(query, author)

        def is_abandoned() -> bool:
            return request.transport is None or request.transport.is_closing()

        return ApiRequest(dict(request.match_info), query, body, options, is_abandoned)

    async def _call_endpoint(self, endpoint: Endpoint, request: ApiRequest) -> web.StreamResponse:
        pool = self.deploy_pool if endpoint.is_slow else self.read_pool
        try:
            if endpoint.is_awaited:
                return await cast(AsyncHandler, endpoint.answer)(request)
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(pool, cast(SyncHandler, endpoint.answer), request)
        except StreamerError as e:
            return error_response(e)
        except Exception as e:
            # What is wrong here is ours; who asked is told so, and gets no traceback.
            text = f"{endpoint.method} {endpoint.path} went wrong: {type(e).__name__}: {e}"
            self.log("ERROR", text, {})
            return error_reply(502, f"Error: {type(e).__name__}: see the service's log")

    def close(self) -> None:
        """Let the threads go."""
        self.deploy_pool.shutdown(wait=False, cancel_futures=True)
        self.read_pool.shutdown(wait=False, cancel_futures=True)
        self.results.close()


def _make_metrics_answer(exposition: Exposition) -> Any:
    def answer(request: ApiRequest) -> web.Response:
        body, content_type = exposition()
        return web.Response(body=body, headers={hdrs.CONTENT_TYPE: content_type})

    return answer
