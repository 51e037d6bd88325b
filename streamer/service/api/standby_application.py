"""Responses of a service that stands by: that it lives, and which one is active."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import hdrs, web

from streamer import __version__
from streamer.config import Config
from streamer.connectors.http_server.replies import error_reply
from streamer.service.access.middlewares import forbid_sniffing, make_middlewares
from streamer.service.api.responses import json_response, text_response
from streamer.service.monitoring.exposition import make_fleet_exposition

RETRY_AFTER_S = 5
"""After how many seconds one who was refused may ask again."""


def make_standby_application(
    root: Config, describe_active: Callable[[], str]
) -> Callable[[str | None], web.Application]:
    """Return what makes the application, for the address that is listened on.

    Args:
        root: the service's config.
        describe_active: says who is active, in a few words.
    """
    metrics = make_fleet_exposition(root.metrics, dict)

    def answer(path: str) -> web.Response:
        if path == "/ping":
            return text_response("pong")
        if path == "/version":
            return json_response({"version": __version__, "built": ""})
        if path in ("/metrics", "/stats") and metrics is not None:
            body, kind = metrics()
            return web.Response(body=body, headers={hdrs.CONTENT_TYPE: kind})
        text = f"standby; active is {describe_active()}"
        return error_reply(503, text, {hdrs.RETRY_AFTER: str(RETRY_AFTER_S)})

    async def handle(request: web.Request) -> web.StreamResponse:
        prefix = root.http["root_path"].rstrip("/")
        return answer(request.path.removeprefix(prefix) or "/")

    def application(host: str | None) -> web.Application:
        app = web.Application(middlewares=make_middlewares(root.http, host), client_max_size=0)
        app.on_response_prepare.append(forbid_sniffing)
        app.router.add_route(hdrs.METH_ANY, "/{rest:.*}", handle)
        return app

    return application
