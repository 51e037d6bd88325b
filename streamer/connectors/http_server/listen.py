"""Listening for HTTP: addresses as configs write them, and errors that a user understands."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

from aiohttp import web

from streamer.connectors.http_server.address import format_host_for_url, listen_error
from streamer.connectors.http_server.connections import (
    TLS_HANDSHAKE_TIMEOUT_S,
    ConnectionGuard,
    Listener,
    make_listeners,
    process_limits,
)


class _GuardedSite(web.BaseSite):
    """The sites of a runner: connections are counted, and have limits of time."""

    def __init__(
        self, runner: web.BaseRunner, listener: Listener, tls: ssl.SSLContext | None
    ) -> None:
        super().__init__(runner, ssl_context=tls)
        self._listener = listener

    @property
    def name(self) -> str:
        """The address, for aiohttp."""
        return str(self._listener.getsockname())

    async def start(self) -> None:
        """Begin to accept connections."""
        await super().start()
        handlers: Any = self._runner.server
        self._server = await asyncio.get_running_loop().create_server(
            lambda: ConnectionGuard(handlers()),
            sock=self._listener,
            ssl=self._ssl_context,
            backlog=self._backlog,
            ssl_handshake_timeout=TLS_HANDSHAKE_TIMEOUT_S if self._ssl_context else None,
        )


async def listen(
    runner: web.BaseRunner,
    host: str | None,
    port: int,
    hint: str,
    tls: ssl.SSLContext | None = None,
    *,
    reuse_port: bool | None = None,
) -> str:
    """Begin to listen.

    Args:
        runner: an application, set up.
        host: the address; None for all of the machine's.
        port: the port; 0 for one that is free.
        hint: what to do when it cannot be listened on.
        tls: with it, HTTPS is spoken.
        reuse_port: whether others may listen on the port as well.

    Returns:
        The URL of the server.

    Raises:
        StreamerError: the address cannot be listened on.
    """
    try:
        for one in make_listeners(host, port, process_limits(), reuse_port=bool(reuse_port)):
            await _GuardedSite(runner, one, tls).start()
    except OSError as e:
        raise listen_error(host, port, e, hint) from None
    actual_host, bound = runner.addresses[0][:2]
    return f"{'https' if tls else 'http'}://{format_host_for_url(actual_host)}:{bound}"
