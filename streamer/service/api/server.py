"""An HTTP server: it runs in a thread beside the streams, from before Spark to the end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Final

from aiohttp import web

from streamer.connectors.http_server.address import HTTP_ADDRESS_HINT, split_address
from streamer.connectors.http_server.component_server import server_tls
from streamer.connectors.http_server.connections import configure_limits
from streamer.connectors.http_server.listen import listen
from streamer.service.api.stream_application import make_application
from streamer.service.monitoring.stream_view import StreamView

_START_TIMEOUT_S: Final = 30.0
_STOP_TIMEOUT_S: Final = 2.0


class HttpServer:
    """A server.

    Attributes:
        url: where it listens.
    """

    def __init__(
        self,
        http: Mapping[str, Any],
        application: Callable[[str | None], web.Application],
        on_listening: Callable[[], None] = lambda: None,
    ) -> None:
        """Begin to listen, and answer in a thread.

        Args:
            http: the `http` section.
            application: makes the application, for the address that is listened on.
            on_listening: called once that is so.

        Raises:
            StreamerError: the address cannot be listened on, or the certificate is of no use.
        """
        self._http = http
        self._application = application
        self._on_listening = on_listening
        self._stop: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        url: Future[str] = Future()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(url)), daemon=True, name="http"
        )
        self._thread.start()
        self.url = url.result(_START_TIMEOUT_S)

    @classmethod
    def for_stream(cls, view: StreamView) -> HttpServer:
        """Serve one stream."""

        def mark_served() -> None:
            view.endpoints.served = True

        return cls(view.config.http, lambda host: make_application(view, host), mark_served)

    async def _serve(self, url_future: Future[str]) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        http = self._http
        configure_limits(http["max_connections"], http["max_connections_per_address"])
        host, port = split_address(http["address"])
        app = self._application(host)
        runner = web.AppRunner(
            app, access_log=None, handle_signals=False, shutdown_timeout=1.0, auto_decompress=False
        )
        await runner.setup()
        try:
            files = http["cert_file"], http["key_file"]
            tls = server_tls(*files, "http.") if files[0] else None
            url = await listen(runner, host, port, HTTP_ADDRESS_HINT, tls)
            self._on_listening()
            url_future.set_result(url)
            await self._stop.wait()
        except Exception as e:
            if url_future.done():
                raise
            url_future.set_exception(e)
        finally:
            await runner.cleanup()

    def stop(self) -> None:
        """Stop listening; requests in hand have a second to be answered."""
        if self._loop is not None and self._stop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(_STOP_TIMEOUT_S)
