"""An HTTP server that answers as a test tells it, and keeps what it was asked."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Asked:
    """A request."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Reply:
    """What is answered."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


Answers = Callable[[Asked], Reply]


@dataclass
class Server:
    """A running server: where it is, and what it was asked, in order."""

    url: str
    asked: list[Asked] = field(default_factory=list)

    @property
    def bodies(self) -> list[bytes]:
        return [one.body for one in self.asked]


@contextmanager
def http_server(
    answers: Answers = lambda asked: Reply(), tls: ssl.SSLContext | None = None, port: int = 0
) -> Iterator[Server]:
    """Run one, on a port of its own if none is given; `answers` is called from several threads."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Small answers must not wait for the client's acknowledgement.
        disable_nagle_algorithm = True

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except ConnectionError:
                self.close_connection = True

        def _any(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(length)
            if len(body) < length:
                # Whoever sent it has died meanwhile: a request that is not whole is none.
                self.close_connection = True
                return
            asked = Asked(self.command, self.path, headers, body)
            server.asked.append(asked)
            reply = answers(asked)
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _any

        def log_message(self, *arguments: Any) -> None:
            pass

    running = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    running.daemon_threads = True
    if tls is not None:
        running.socket = tls.wrap_socket(running.socket, server_side=True)
    scheme = "http" if tls is None else "https"
    server = Server(f"{scheme}://127.0.0.1:{running.server_address[1]}")
    thread = threading.Thread(target=running.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        running.shutdown()
        running.server_close()
        thread.join()
