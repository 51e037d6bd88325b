"""A local HTTP server that records requests, for tests of components that send them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class RecordedRequest(NamedTuple):
    """A request that was answered with 200."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class RequestRecorder:
    """Records requests, or refuses some.

    Attributes:
        url: the server's URL.
        requests: the requests that were taken, in order.
        refusals: the number of requests to come that are answered with 503.
    """

    def __init__(self, url: str) -> None:
        """Begin without requests."""
        self.url = url
        self.requests: list[RecordedRequest] = []
        self.refusals = 0
        self.lock = threading.Lock()

    @property
    def bodies(self) -> list[bytes]:
        """The bodies of the requests."""
        return [request.body for request in self.requests]


@contextmanager
def record_requests() -> Iterator[RequestRecorder]:
    """Serve HTTP on a free port of this machine's loopback address while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_request(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            with recorder.lock:
                is_refused = recorder.refusals > 0
                recorder.refusals -= is_refused
                if not is_refused:
                    recorder.requests.append(
                        RecordedRequest(self.command, self.path, dict(self.headers), body)
                    )
            self.send_response(503 if is_refused else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_request

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    recorder = RequestRecorder(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield recorder
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
