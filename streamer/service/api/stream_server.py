"""The HTTP server of `streamer -c …`, from before Spark starts to after the stream has ended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from streamer.connectors.http_server.address import (
    HTTP_ADDRESS_HINT,
    check_free_address,
    split_address,
)
from streamer.core.errors import StreamerError
from streamer.core.log_format import LogLine
from streamer.sdk.spec import ParsedFields
from streamer.service.monitoring.stream_view import StreamView


def check_server_address(view: StreamView) -> None:
    """Check that an address that somebody asked for can be listened on, before anything is started.

    Raises:
        StreamerError: it cannot.
    """
    http = view.config.http
    if http["enabled"] and (http.is_given("address") or http.is_given("enabled")):
        check_free_address(*split_address(http["address"]), HTTP_ADDRESS_HINT)


def bound_connections(http: ParsedFields) -> None:
    """Bound the connections of this process by a section `http`, also where it serves nothing.

    Components may have servers of their own.
    """
    from streamer.connectors.http_server.connections import configure_limits

    configure_limits(http["max_connections"], http["max_connections_per_address"])


@contextmanager
def serve_stream(view: StreamView, log: LogLine) -> Iterator[str]:
    """Serve a stream for as long as the block runs, if its config says so; give the URL, or "".

    Raises:
        StreamerError: the address cannot be listened on. One that nobody asked for, the default,
            may be in use: then there is a line in the log, and no server.
    """
    http = view.config.http
    if not http["enabled"]:
        bound_connections(http)
        yield ""
        return
    # Imported here: a stream without a server should not wait for aiohttp.
    from streamer.service.api.server import HttpServer

    try:
        server = HttpServer.for_stream(view)
    except StreamerError as e:
        if http.is_given("address") or http.is_given("enabled"):
            raise
        log("WARN", f"There is no HTTP server: {e}", {})
        yield ""
        return
    log("INFO", "Listening for HTTP requests", {"url": server.url})
    try:
        yield server.url
    finally:
        server.stop()
