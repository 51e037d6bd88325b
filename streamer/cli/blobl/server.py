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

from streamer.cli.blobl.document import page, policy
from streamer.cli.blobl.drafts import Drafts
from streamer.cli.failures import print_error
from streamer.endpoints.listening import listen
from streamer.errors import StreamerError
from streamer.service.guard import names, refusal
from streamer.trials.evaluator import Busy, Evaluator
from streamer.trials.trial import Answer, Request

LARGEST: Final = 4 << 20
"""How many bytes the body of a request may have."""
_PROCESSES: Final = 2
_WRITE_SECONDS: Final = 1.0
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
class Serving:
    """How the page is served.

    Attributes:
        host: the address to listen on.
        port: the port; 0 for one that is free.
        impure: whether mappings may read files and environment variables.
        seconds: how long one may run.
        mapping_file: where the mapping is from, for its imports.
        opens: whether the page is opened in a browser.
    """

    host: str
    port: int
    impure: bool
    seconds: float
    mapping_file: str | None = None
    opens: bool = False


def serve(serving: Serving, drafts: Drafts) -> None:
    """Serve until Ctrl-C or a SIGTERM.

    Raises:
        StreamerError: the address cannot be listened on, or a draft cannot be written at the end.
    """
    asyncio.run(_serve(serving, drafts))


async def _serve(serving: Serving, drafts: Drafts) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):
            loop.add_signal_handler(number, stop.set)
    runner = web.AppRunner(application(serving, drafts), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    writing = asyncio.create_task(_keep_writing(drafts))
    try:
        await _listen(runner, serving)
        await stop.wait()
    finally:
        writing.cancel()
        await runner.cleanup()
        drafts.write()


async def _listen(runner: web.AppRunner, serving: Serving) -> None:
    url = await listen(runner, serving.host, serving.port, "give another --host or --port")
    click.echo(f"Serving at: {url}   (Ctrl-C stops it)", err=True)
    if serving.impure:
        click.echo("Mappings may read files and environment variables here.", err=True)
    if serving.opens:
        webbrowser.open(url)


async def _keep_writing(drafts: Drafts) -> None:
    while True:
        await asyncio.sleep(_WRITE_SECONDS)
        try:
            drafts.write()
        except StreamerError as e:
            print_error(e)


def application(serving: Serving, drafts: Drafts) -> web.Application:
    """Return the application: `GET /` is the page, `POST /execute` tries a mapping."""
    app = web.Application(
        client_max_size=LARGEST, middlewares=[_guarded(names(serving.host)), _in_json]
    )
    served = _Served(serving, drafts)
    app.router.add_get("/", served.page)
    app.router.add_post("/execute", served.execute)
    app.on_cleanup.append(served.close)
    return app


class _Served:
    """The handlers."""

    def __init__(self, serving: Serving, drafts: Drafts) -> None:
        self._serving = serving
        self._drafts = drafts
        self._evaluator = Evaluator(serving.impure, _PROCESSES, serving.seconds)

    async def page(self, _: web.Request) -> web.Response:
        """Return the page, with what was edited last."""
        nonce = secrets.token_urlsafe(16)
        note = _IMPURE if self._serving.impure else _PURE
        text = page(self._drafts.mapping, self._drafts.input, note, nonce)
        headers = {"Content-Security-Policy": policy(nonce)}
        return web.Response(text=text, content_type="text/html", headers=headers)

    async def execute(self, request: web.Request) -> web.Response:
        """Try the mapping of a JSON body: `{"mapping": …, "input": …, "raw": …}`."""
        body = _checked(await request.read(), request.content_type)
        self._drafts.update(body["mapping"], body["input"])
        trial: Request = {
            "mapping": body["mapping"],
            "input": body["input"],
            "raw": body.get("raw", False),
            "file": self._serving.mapping_file,
        }
        try:
            answer = await self._evaluator.attempt(trial)
        except Busy:
            return _json({"error": "too many mappings run at the moment; try again"}, 503)
        return _json({**_as_benthos(answer), **answer})

    async def close(self, _: web.Application) -> None:
        """End the processes."""
        await self._evaluator.close()


def _checked(body: bytes, content_type: str) -> dict[str, Any]:
    """Return the body of a request.

    Raises:
        web.HTTPException: it is not what is expected.
    """
    if content_type != "application/json":
        # Other types could be sent by a page of another site without asking first.
        raise web.HTTPUnsupportedMediaType(text="expected Content-Type: application/json")
    try:
        found = orjson.loads(body)
    except ValueError as e:
        raise web.HTTPBadRequest(text=f"the body is not JSON: {e}") from None
    expected = {"mapping": str, "input": str, "raw": bool}
    if not isinstance(found, dict) or not {"mapping", "input"} <= found.keys():
        raise web.HTTPBadRequest(text="expected an object with the fields mapping and input")
    for name, kind in expected.items():
        if not isinstance(found.get(name, kind()), kind):
            raise web.HTTPBadRequest(text=f"expected {kind.__name__} in the field {name}")
    return found


def _as_benthos(answer: Answer) -> dict[str, str]:
    """Return the fields that Benthos answers with, for what was written for its server."""
    results = answer.get("results", [])
    shown = answer["problem"]["shown"] if "problem" in answer else ""
    failed = next((one["problem"]["text"] for one in results if "problem" in one), "")
    return {
        "parse_error": f"failed to parse mapping: {shown}\n" if shown else "",
        "mapping_error": failed,
        "result": "" if failed else "\n".join(one.get("output", "") for one in results),
    }


def _json(value: Any, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(value), status=status, content_type="application/json")


def _guarded(allowed: frozenset[str]) -> Any:
    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        reason = refusal(request.headers, allowed)
        response = await handler(request) if reason is None else _json({"error": reason}, 403)
        response.headers.update(_HEADERS)
        return response

    return guard


@web.middleware
async def _in_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPRequestEntityTooLarge:
        return _json({"error": f"the body has more than {LARGEST} bytes"}, 413)
    except web.HTTPException as e:
        return _json({"error": e.text or e.reason}, e.status)
