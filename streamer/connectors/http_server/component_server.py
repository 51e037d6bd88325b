"""A server at an address of a component's own."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from streamer.connectors.http_server.address import split_address
from streamer.connectors.http_server.cors import with_cors
from streamer.connectors.http_server.listen import listen
from streamer.connectors.http_server.paths import PathPattern
from streamer.connectors.http_server.registry import Handler
from streamer.core.errors import StreamerError


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The address and settings of a component's own server.

    Attributes:
        address: `host:port`.
        cert_file: a certificate, PEM; empty for no TLS.
        key_file: its key, PEM.
        origins: whose pages may ask; None when CORS is not enabled.
        reuse_port: whether others may listen on the port as well.
    """

    address: str
    cert_file: str = ""
    key_file: str = ""
    origins: frozenset[str] | None = None
    reuse_port: bool = False


async def serve_paths(
    settings: ServerSettings, paths: Mapping[str, Handler], while_: Callable[[str], Awaitable[None]]
) -> None:
    """Serve paths until a coroutine returns, which is given the URL of the server.

    Raises:
        StreamerError: the address cannot be listened on, or the certificate is of no use.
    """
    compiled = [(PathPattern(path), handler) for path, handler in paths.items()]
    loop = asyncio.get_running_loop()

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        for path, handler in compiled:
            parameters = path.match(request.path)
            if parameters is not None:
                return await handler(request, parameters)
        return web.Response(status=404, text="404 page not found\n")

    async def handle_with_cors(request: web.BaseRequest) -> web.StreamResponse:
        if settings.origins is None:
            return await handle(request)
        return await with_cors(request, settings.origins, lambda: handle(request))

    def make_request(
        message: Any, payload: Any, protocol: Any, writer: Any, task: Any
    ) -> web.BaseRequest:
        return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=0)

    server = web.Server(
        handle_with_cors, request_factory=make_request, access_log=None, auto_decompress=False
    )
    runner = web.ServerRunner(server, shutdown_timeout=1.0)
    await runner.setup()
    try:
        host, port = split_address(settings.address)
        hint = "set address to another one"
        tls = server_tls(settings.cert_file, settings.key_file) if settings.cert_file else None
        url = await listen(runner, host, port, hint, tls, reuse_port=settings.reuse_port)
        await while_(url)
    finally:
        await runner.cleanup()


def server_tls(cert_file: str, key_file: str, section: str = "") -> ssl.SSLContext:
    """Return how a server with a certificate speaks TLS; `section` is where the files are named.

    Raises:
        StreamerError: the files are missing, or no certificate with its key.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(cert_file, key_file)
    except OSError as e:
        # A key that does not fit, or no PEM: ssl's own errors are among these.
        reason = (e.strerror or str(e)).lower()
        raise StreamerError(
            f"{section}cert_file {cert_file} with {section}key_file {key_file}: {reason}; "
            "expected a certificate and its key, both PEM"
        ) from None
    return context
