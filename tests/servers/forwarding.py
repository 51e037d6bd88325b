"""A proxy before a server over HTTP, which may answer in its place, or not at all."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import urlsplit

_OWN = frozenset({"host", "content-length", "transfer-encoding", "expect", "connection"})
"""Headers that each connection has of its own."""


class ProxyAnswer(NamedTuple):
    """An answer in place of the server's."""

    status: int
    kind: str
    body: bytes


class _Handler(BaseHTTPRequestHandler):
    """Reads and answers requests."""

    protocol_version = "HTTP/1.1"

    def read_body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return body

    def answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
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

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class ForwardingProxy:
    """A proxy that hands requests on.

    Attributes:
        url: its endpoint.
        is_away: whether it closes connections without an answer.
        refused: how many requests it has not handed on.
    """

    def __init__(self, target: str) -> None:
        """Listen on a free port; requests go on to another endpoint."""
        self.is_away = False
        self.refused = 0
        place, proxy = urlsplit(target).netloc, self

        class Handler(_Handler):
            def _forward(self) -> None:
                body = self.read_body()
                if proxy.is_away:
                    proxy.refused += 1
                    self.close_connection = True
                    return
                headers = {name.lower(): text for name, text in self.headers.items()}
                own = proxy.answer_instead(self.command, self.path, headers, body)
                if own is not None:
                    self.answer(own.status, [("Content-Type", own.kind)], own.body)
                    return
                connection = http.client.HTTPConnection(place, timeout=30)
                headers = {
                    name: text for name, text in self.headers.items() if name.lower() not in _OWN
                }
                connection.request(self.command, self.path, body, headers)
                answer = connection.getresponse()
                payload = answer.read()
                self.answer(answer.status, answer.getheaders(), payload)
                connection.close()

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _forward  # noqa: N815

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def answer_instead(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> ProxyAnswer | None:
        """Return an answer in place of the server's; None to hand the request on."""
        return None

    @contextmanager
    def be_away(self) -> Iterator[None]:
        """Answer nothing until the block ends."""
        self.is_away = True
        try:
            yield
        finally:
            self.is_away = False

    def stop(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()
