"""The HTTP server of `streamer -c …`, from before Spark starts to after the stream has ended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from streamer.endpoints.address import HTTP_ADDRESS_HINT, check_free_address, split_address
from streamer.engine.delivery import LogLine
from streamer.errors import StreamerError
from streamer.service.view import StreamView
from streamer.spec import Parsed


def check_served(view: StreamView) -> None:
    """See that an address that somebody asked for can be listened on, before anything is started.

    Raises:
        StreamerError: it cannot.
    """
    http = view.config.http
    if http["enabled"] and (http.given("address") or http.given("enabled")):
        check_free_address(*split_address(http["address"]), HTTP_ADDRESS_HINT)


def bound_connections(http: Parsed) -> None:
    """Bound the connections of this process by a section `http`, also where it serves nothing.

    Components may have servers of their own.
    """
    from streamer.endpoints.connections import configure

    configure(http["max_connections"], http["max_connections_per_address"])


@contextmanager
def served(view: StreamView, log: LogLine) -> Iterator[None]:
    """Serve a stream for as long as the block runs, if its config says so.

    Raises:
        StreamerError: the address cannot be listened on. One that nobody asked for, the default,
            may be in use: then there is a line in the log, and no server.
    """
    http = view.config.http
    if not http["enabled"]:
        bound_connections(http)
        yield
        return
    # Imported here: a stream without a server should not wait for aiohttp.
    from streamer.service.server import HttpServer

    try:
        server = HttpServer.of_stream(view)
    except StreamerError as e:
        if http.given("address") or http.given("enabled"):
            raise
        log("INFO", f"There is no HTTP server: {e}", {})
        yield
        return
    log("INFO", "Listening for HTTP requests", {"url": server.url})
    try:
        yield
    finally:
        server.stop()
