"""A proxy before a simulated S3, whose credentials expire and are valid again."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

_EXPIRED = (
    b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>ExpiredToken</Code>'
    b"<Message>The provided token has expired.</Message></Error>"
)

_OWN = frozenset({"host", "content-length", "transfer-encoding", "expect", "connection"})
"""Headers that each connection has of its own."""


class ExpiringS3:
    """A proxy that answers as S3 does once a session's token has expired.

    Attributes:
        url: its endpoint.
        expired_methods: the methods of requests that are refused now.
        refused: how many it has refused.
    """

    def __init__(self, target: str) -> None:
        """Listen on a free port; requests go on to another endpoint."""
        self.expired_methods: frozenset[str] = frozenset()
        self.refused = 0
        place, proxy = urlsplit(target).netloc, self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _forward(self) -> None:
                body = self._read_body()
                if self.command in proxy.expired_methods:
                    proxy.refused += 1
                    self._answer(400, [("Content-Type", "application/xml")], _EXPIRED)
                    return
                connection = http.client.HTTPConnection(place, timeout=30)
                headers = {
                    name: text for name, text in self.headers.items() if name.lower() not in _OWN
                }
                connection.request(self.command, self.path, body, headers)
                answer = connection.getresponse()
                payload = answer.read()
                self._answer(answer.status, answer.getheaders(), payload)
                connection.close()

            def _read_body(self) -> bytes:
                if "chunked" not in self.headers.get("Transfer-Encoding", ""):
                    return self.rfile.read(int(self.headers.get("Content-Length") or 0))
                body = b""
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                while self.rfile.readline().strip():
                    pass
                return body

            def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
                self.send_response(status)
                length = str(len(body))
                for name, text in headers:
                    if name.lower() == "content-length" and self.command == "HEAD":
                        length = text
                    elif name.lower() not in ("content-length", "transfer-encoding", "connection"):
                        self.send_header(name, text)
                self.send_header("Content-Length", length)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _forward  # noqa: N815

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @contextmanager
    def expire(self, *methods: str) -> Iterator[None]:
        """Refuse requests of these methods until the block ends."""
        self.expired_methods = frozenset(methods)
        try:
            yield
        finally:
            self.expired_methods = frozenset()

    def stop(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def expiring_s3(target: str) -> Iterator[ExpiringS3]:
    """Run one until the block ends."""
    proxy = ExpiringS3(target)
    try:
        yield proxy
    finally:
        proxy.stop()
