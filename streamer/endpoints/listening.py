"""Listening for HTTP: addresses as configs write them, and errors that a user understands."""

from __future__ import annotations

import ssl

from aiohttp import web

from streamer.endpoints.address import in_url, listening_error


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
    site = web.TCPSite(runner, host, port, ssl_context=tls, reuse_port=reuse_port)
    try:
        await site.start()
    except OSError as e:
        raise listening_error(host, port, e, hint) from None
    found, bound = runner.addresses[0][:2]
    return f"{'https' if tls else 'http'}://{in_url(found)}:{bound}"
