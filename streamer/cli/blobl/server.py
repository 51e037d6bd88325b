"""The web server behind `streamer blobl server`: a page, and trials of mappings for it."""

from __future__ import annotations

import asyncio
import secrets
import signal
import webbrowser
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import click
import orjson
from aiohttp import web

from streamer.cli.blobl.editor_state import EditorState
from streamer.cli.blobl.html_page import build_content_policy, render_page
from streamer.cli.error_output import print_error
from streamer.connectors.http_server.listen import listen
from streamer.core.errors import StreamerError
from streamer.service.access.origin_check import refusal_reason, server_names
from streamer.tools.playground.evaluator import BusyError, Evaluator
from streamer.tools.playground.trial import Answer, Request

MAX_BODY_BYTES: Final = 4 << 20
"""How many bytes the body of a request may have."""
_PROCESSES: Final = 2
_WRITE_INTERVAL_S: Final = 1.0
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_IMPURE: Final = "Mappings can read files and environment variables."
_PURE: Final = "Mappings cannot read files or environment variables, unless started with --impure."
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class ServerSettings:
    """Settings of the server of the page.

    Attributes:
        host: the address to listen on.
        port: the port; 0 for one that is free.
        impure: whether mappings may read files and environment variables.
        seconds: how long one may run.
        mapping_file: where the mapping is from, for its imports.
        opens_browser: whether the page is opened in a browser.
    """

    host: str
    port: int
    impure: bool
    seconds: float
    mapping_file: str | None = None
    opens_browser: bool = False


def serve(settings: ServerSettings, drafts: EditorState) -> None:
    """Serve until Ctrl-C or a SIGTERM.

    Raises:
        StreamerError: the address cannot be listened on, or a draft cannot be written at the end.
    """
    asyncio.run(_serve(settings, drafts))


async def _serve(settings: ServerSettings, drafts: EditorState) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):
            loop.add_signal_handler(number, stop.set)
    runner = web.AppRunner(
        make_application(settings, drafts), access_log=None, shutdown_timeout=1.0
    )
    await runner.setup()
    writing = asyncio.create_task(_keep_writing(drafts))
    try:
        await _listen(runner, settings)
        await stop.wait()
    finally:
        writing.cancel()
        await runner.cleanup()
        drafts.write()


async def _listen(runner: web.AppRunner, settings: ServerSettings) -> None:
    url = await listen(runner, settings.host, settings.port, "give another --host or --port")
    click.echo(f"Serving at: {url}   (Ctrl-C stops it)", err=True)
    if settings.impure:
        click.echo("Mappings may read files and environment variables here.", err=True)
    if settings.opens_browser:
        webbrowser.open(url)


async def _keep_writing(drafts: EditorState) -> None:
    while True:
        await asyncio.sleep(_WRITE_INTERVAL_S)
        try:
            drafts.write()
        except StreamerError as e:
            print_error(e)


def make_application(settings: ServerSettings, drafts: EditorState) -> web.Application:
    """Return the application: `GET /` is the page, `POST /execute` tries a mapping."""
    app = web.Application(
        client_max_size=MAX_BODY_BYTES,
        middlewares=[_make_guard(server_names(settings.host)), _answer_errors_in_json],
    )
    handlers = _Handlers(settings, drafts)
    app.router.add_get("/", handlers.get_page)
    app.router.add_post("/execute", handlers.execute)
    app.on_cleanup.append(handlers.close)
    return app


class _Handlers:
    """The handlers."""

    def __init__(self, settings: ServerSettings, drafts: EditorState) -> None:
        self._settings = settings
        self._drafts = drafts
        self._evaluator = Evaluator(settings.impure, _PROCESSES, settings.seconds)

    async def get_page(self, _: web.Request) -> web.Response:
        """Return the page, with what was edited last."""
        nonce = secrets.token_urlsafe(16)
        note = _IMPURE if self._settings.impure else _PURE
        text = render_page(self._drafts.mapping, self._drafts.input, note, nonce)
        headers = {"Content-Security-Policy": build_content_policy(nonce)}
        return web.Response(text=text, content_type="text/html", headers=headers)

    async def execute(self, request: web.Request) -> web.Response:
        """Try the mapping of a JSON body: `{"mapping": …, "input": …, "raw": …}`."""
        body = _parse_body(await request.read(), request.content_type)
        self._drafts.update(body["mapping"], body["input"])
        trial: Request = {
            "mapping": body["mapping"],
            "input": body["input"],
            "raw": body.get("raw", False),
            "file": self._settings.mapping_file,
        }
        try:
            answer = await self._evaluator.attempt(trial)
        except BusyError:
            return _make_json_response(
                {"error": "too many mappings run at the moment; try again"}, 503
            )
        return _make_json_response({**_format_benthos_fields(answer), **answer})

    async def close(self, _: web.Application) -> None:
        """End the processes."""
        await self._evaluator.close()


def _parse_body(body: bytes, content_type: str) -> dict[str, Any]:
    """Return the body of a request.

    Raises:
        web.HTTPException: it is not what is expected.
    """
    if content_type != "application/json":
        # Other types could be sent by a page of another site without asking first.
        raise web.HTTPUnsupportedMediaType(text="expected Content-Type: application/json")
    try:
        fields = orjson.loads(body)
    except ValueError as e:
        raise web.HTTPBadRequest(text=f"the body is not JSON: {e}") from None
    expected = {"mapping": str, "input": str, "raw": bool}
    if not isinstance(fields, dict) or not {"mapping", "input"} <= fields.keys():
        raise web.HTTPBadRequest(text="expected an object with the fields mapping and input")
    for name, kind in expected.items():
        if not isinstance(fields.get(name, kind()), kind):
            raise web.HTTPBadRequest(text=f"expected {kind.__name__} in the field {name}")
    return fields


def _format_benthos_fields(answer: Answer) -> dict[str, str]:
    """Return the fields that Benthos answers with, for what was written for its server."""
    results = answer.get("results", [])
    shown = answer["problem"]["shown"] if "problem" in answer else ""
    failed = next((one["problem"]["text"] for one in results if "problem" in one), "")
    return {
        "parse_error": f"failed to parse mapping: {shown}\n" if shown else "",
        "mapping_error": failed,
        "result": "" if failed else "\n".join(one.get("output", "") for one in results),
    }


def _make_json_response(value: Any, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(value), status=status, content_type="application/json")


def _make_guard(allowed: frozenset[str]) -> Any:
    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        reason = refusal_reason(request.headers, allowed)
        response = (
            await handler(request)
            if reason is None
            else _make_json_response({"error": reason}, 403)
        )
        response.headers.update(_HEADERS)
        return response

    return guard


@web.middleware
async def _answer_errors_in_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPRequestEntityTooLarge:
        return _make_json_response({"error": f"the body has more than {MAX_BODY_BYTES} bytes"}, 413)
    except web.HTTPException as e:
        return _make_json_response({"error": e.text or e.reason}, e.status)
