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
from streamer.endpoints.replies import error_reply
from streamer.engine.delivery import LogLine
from streamer.errors import StreamerError
from streamer.service.api import debugging
from streamer.service.console.pages import Pages
from streamer.service.doors import AUTHOR, PING, READY, Handler, doors, forbid_sniffing, foreign
from streamer.service.exposition import Exposition, exposition_of_all
from streamer.service.http.answers import as_error, as_json, as_text
from streamer.service.http.authoring import AuthoringEndpoints
from streamer.service.http.endpoint import Answer, Asked, Endpoint, Parameter, Plain
from streamer.service.http.looks import LookEndpoints
from streamer.service.http.manual import ManualEndpoints
from streamer.service.http.openapi import openapi
from streamer.service.http.pictures import PictureEndpoints
from streamer.service.http.playground import PlaygroundEndpoints
from streamer.service.http.reading import TooLargeError, body_of, wish_of
from streamer.service.http.results import ResultEndpoints
from streamer.service.http.served import Served
from streamer.service.http.streams import StreamEndpoints
from streamer.service.http.tapping import TapEndpoints
from streamer.service.streams.manager import Manager

_STARTING: Final = "Spark is starting\n"
_STOPPING: Final = "the service is stopping"
_SECONDS_UNTIL_ANOTHER_TRY: Final = "2"
_SERVICE: Final = "service"
_READY_OF: Final = Parameter(
    "of",
    "`service`: only whether the API answers and what it was left with has been started, whether "
    "its streams flow or not.",
    {"type": "string", "enum": [_SERVICE]},
)


def _set() -> threading.Event:
    event = threading.Event()
    event.set()
    return event


_NOTHING: Final = Asked({}, {}, "", wish_of({}, ""))


@dataclass(frozen=True)
class Api:
    """What the server serves.

    Attributes:
        manager: the streams.
        root: the service's config.
        log: takes log lines.
        enabled: whether streams can be changed and looked at.
        prefixed: whether what components serve stands behind the stream's id.
        deploys: threads for what waits for streams to start and stop.
        looks: threads for all else.
        opened: set when streams can be asked for; before, Spark is starting.
        restored: set when all streams that should run have been tried once.
        stopping: set when the service stops; nothing is ready from then on.
    """

    manager: Manager
    root: Config
    log: LogLine
    enabled: bool = True
    prefixed: bool = True
    deploys: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(16, "deploy"), repr=False
    )
    looks: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(4, "look"), repr=False
    )
    opened: threading.Event = field(default_factory=_set, repr=False)
    restored: threading.Event = field(default_factory=_set, repr=False)
    stopping: threading.Event = field(default_factory=threading.Event, repr=False)

    @cached_property
    def results(self) -> ResultEndpoints:
        """The endpoint of results, of which there is one: it counts those who ask."""
        return ResultEndpoints(self.manager)

    @cached_property
    def playground(self) -> PlaygroundEndpoints:
        """The endpoint that tries mappings, of which there is one: it has processes."""
        return PlaygroundEndpoints(self.manager)

    def application(self, host: str | None) -> web.Application:
        """Return the application, for the address that is listened on (None for all)."""
        http: Mapping[str, Any] = self.root.http
        # What components take is as long as it is; bodies of the API are read within bounds.
        root = http["root_path"].rstrip("/")
        pages = Pages().routes(root) if self.enabled else {}
        app = web.Application(middlewares=doors(http, host, frozenset(pages)), client_max_size=0)
        app.on_response_prepare.append(forbid_sniffing)
        for path, page in pages.items():
            app.router.add_route(hdrs.METH_ANY, path, page)
        by_path: dict[str, dict[str, Endpoint]] = {}
        for endpoint in self.endpoints():
            by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint
        early = {endpoint.path for endpoint in self._always()}
        for path, methods in by_path.items():
            handler = self._handler(methods)
            handler = handler if path in early else self._once_opened(handler)
            for full in dict.fromkeys((path, root + path)):
                app.router.add_route(hdrs.METH_ANY, full, handler)
        served = Served(self.manager.registry, self.prefixed)
        app.on_cleanup.append(self.playground.close)
        rest = self._once_opened(served.handler(root, self._absence_reason))
        app.router.add_route(hdrs.METH_ANY, "/{rest:.*}", rest)
        return app

    def endpoints(self) -> list[Endpoint]:
        """Return the table."""
        found = [*self._always()]
        if self.enabled:
            found += StreamEndpoints(self.manager).all()
            found += LookEndpoints(self.manager).all()
            found += PictureEndpoints(self.manager).all()
            found += TapEndpoints(self.manager).all()
            found += self.results.all()
            found += AuthoringEndpoints(self.manager).all()
            found += self.playground.all()
            found += ManualEndpoints().all()
        return found

    def _always(self) -> list[Endpoint]:
        def get(path: str, name: str, about: str, answer: Any, ok: Any = None) -> Endpoint:
            codes = {503: "Some are not."} if path == READY else {}
            parameters = (_READY_OF,) if path == READY else ()
            return Endpoint("GET", path, name, about, answer, ok, parameters, codes=codes)

        version = {"version": __version__, "built": ""}
        anything: dict[str, Any] = {"type": "object"}
        found = [
            get(PING, "ping", "Return pong.", lambda _: as_text("pong")),
            get("/version", "version", "Return the version.", lambda _: as_json(version), anything),
            get(
                READY,
                "ready",
                "Return 200 when the inputs and outputs of all streams that run are connected.",
                self._ready,
            ),
            get(
                "/endpoints",
                "endpoints",
                "Return all paths with what they are for.",
                lambda _: as_json(self._listed()),
                anything,
            ),
            get(
                "/openapi.json",
                "openapi",
                "Return this API as an OpenAPI document.",
                lambda _: as_json(openapi(self.endpoints(), self.root.http)),
                anything,
            ),
        ]
        metrics = exposition_of_all(self.root.metrics, self._views)
        if metrics is not None:
            found += [
                get(path, name, "Return the metrics of all streams.", _metrics(metrics))
                for path, name in (("/metrics", "metrics"), ("/stats", "stats"))
            ]
        if self.root.http["debug_endpoints"]:
            for path, one in debugging(self.root).items():
                answer = one.answer
                name = path.strip("/").replace("/", "_")
                found.append(get(path, name, one.about, lambda _, answer=answer: answer()))
        return found

    def _views(self) -> dict[str, Any]:
        streams = self.manager.registry.streams()
        return {name: managed.view for name, managed in streams.items()}

    def _listed(self) -> dict[str, str]:
        found: dict[str, list[str]] = {}
        for endpoint in self.endpoints():
            found.setdefault(endpoint.path, []).append(f"{endpoint.method}: {endpoint.about}")
        about = {path: " ".join(texts) for path, texts in found.items()}
        served = Served(self.manager.registry, self.prefixed)
        return dict(sorted({**served.listed(), **about}.items()))

    def _absence_reason(self) -> str:
        """Return why a path may be missing now that is there at other times; empty for none."""
        if self.stopping.is_set():
            return _STOPPING
        return "" if self.restored.is_set() else "streams are starting"

    def _ready(self, asked: Asked) -> web.Response:
        if self.stopping.is_set():
            return as_text(f"{_STOPPING}\n", 503)
        if not self.restored.is_set():
            return as_text("streams are starting\n" if self.opened.is_set() else _STARTING, 503)
        if asked.query.get("of") == _SERVICE:
            return as_text("OK")
        streams = self.manager.registry.streams()
        waiting: dict[str, list[str]] = {}
        for name, one in streams.items():
            if one.active and not one.ready:
                reason = one.view.unready_reason()
                what = f"not ready: {reason}" if reason else "not connected"
                waiting.setdefault(what, []).append(name)
        lines = [f"streams {', '.join(names)} are {what}\n" for what, names in waiting.items()]
        return as_text("".join(lines), 503) if lines else as_text("OK")

    def _once_opened(self, handler: Handler) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            if self.opened.is_set():
                return await handler(request)
            reply = error_reply(503, f"Error: {_STARTING.strip()}: try again")
            reply.headers[hdrs.RETRY_AFTER] = _SECONDS_UNTIL_ANOTHER_TRY
            return reply

        return handle

    def _handler(self, methods: Mapping[str, Endpoint]) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            endpoint = methods.get(request.method)
            if endpoint is None:
                return error_reply(400, f"Error: verb not supported: {request.method}")
            refused = foreign(request, self.root.http) if endpoint.changes else None
            if refused is not None:
                return error_reply(refused[0], f"Error: {refused[1]}")
            try:
                asked = await self._asked(request, endpoint)
            except TooLargeError:
                return error_reply(413, "Error: the body is larger than a config may be")
            except TimeoutError:
                return error_reply(408, "Error: the body has not come in time")
            except UnicodeDecodeError:
                return error_reply(400, "Error: the body is not UTF-8")
            return await self._answered(endpoint, asked)

        return handle

    async def _asked(self, request: web.Request, endpoint: Endpoint) -> Asked:
        body = await body_of(request) if endpoint.body is not None else ""
        query: dict[str, str] = {}
        for name, value in request.query.items():
            query.setdefault(name, value)
        author = request.get(AUTHOR) or f"({request.remote or 'unknown'})"
        return Asked(dict(request.match_info), query, body, wish_of(query, author))

    async def _answered(self, endpoint: Endpoint, asked: Asked) -> web.Response:
        pool = self.deploys if endpoint.slow else self.looks
        try:
            if endpoint.awaited:
                return await cast(Plain, endpoint.answer)(asked)
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(pool, cast(Answer, endpoint.answer), asked)
        except StreamerError as e:
            return as_error(e)
        except Exception as e:
            # What is wrong here is ours; who asked is told so, and gets no traceback.
            text = f"{endpoint.method} {endpoint.path} went wrong: {type(e).__name__}: {e}"
            self.log("ERROR", text, {})
            return error_reply(502, f"Error: {type(e).__name__}: see the service's log")

    def close(self) -> None:
        """Let the threads go."""
        self.deploys.shutdown(wait=False, cancel_futures=True)
        self.looks.shutdown(wait=False, cancel_futures=True)


def _metrics(exposition: Exposition) -> Any:
    def answer(asked: Asked) -> web.Response:
        body, content_type = exposition()
        return web.Response(body=body, headers={hdrs.CONTENT_TYPE: content_type})

    return answer
