"""What a service answers that stands by: that it lives, and who is active."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import hdrs, web

from streamer import __version__
from streamer.config import Config
from streamer.endpoints.replies import error_reply
from streamer.service.doors import doors, forbid_sniffing
from streamer.service.exposition import exposition_of_all
from streamer.service.http.answers import as_json, as_text

RETRY_SECONDS = 5
"""After how many seconds one who was refused may ask again."""


def standby_application(
    root: Config, active: Callable[[], str]
) -> Callable[[str | None], web.Application]:
    """Return what makes the application, for the address that is listened on.

    Args:
        root: the service's config.
        active: says who is active, in a few words.
    """
    metrics = exposition_of_all(root.metrics, dict)

    def answer(path: str) -> web.Response:
        if path == "/ping":
            return as_text("pong")
        if path == "/version":
            return as_json({"version": __version__, "built": ""})
        if path in ("/metrics", "/stats") and metrics is not None:
            body, kind = metrics()
            return web.Response(body=body, headers={hdrs.CONTENT_TYPE: kind})
        text = f"standby; active is {active()}"
        return error_reply(503, text, {hdrs.RETRY_AFTER: str(RETRY_SECONDS)})

    async def handle(request: web.Request) -> web.StreamResponse:
        prefix = root.http["root_path"].rstrip("/")
        return answer(request.path.removeprefix(prefix) or "/")

    def application(host: str | None) -> web.Application:
        app = web.Application(middlewares=doors(root.http, host), client_max_size=0)
        app.on_response_prepare.append(forbid_sniffing)
        app.router.add_route(hdrs.METH_ANY, "/{rest:.*}", handle)
        return app

    return application
