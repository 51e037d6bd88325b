"""A stream's HTTP server without a stream: a view that the test moves, and requests to it."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from streamer.config import parse_config
from streamer.service.api.server import HttpServer
from streamer.service.monitoring.stream_view import StreamView


@dataclass
class Served:
    """A server that answers."""

    view: StreamView
    url: str

    def get(self, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes, Any]:
        """Ask; return status, body and headers. `X_Y` stands for the header `X-Y`."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.url + path, headers=named, method=method)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.read(), answer.headers
        except urllib.error.HTTPError as e:
            return e.code, e.read(), e.headers

    def json(self, path: str) -> Any:
        return json.loads(self.get(path)[1])


@contextmanager
def serving(http: str = "", rest: str = "", address: str = "127.0.0.1:0") -> Iterator[Served]:
    """Serve a config on a free port; `http` are further fields of its section."""
    text = f"http: {{ address: '{address}'{', ' if http else ''}{http} }}\n{rest}"
    view = StreamView(parse_config(text, env={}))
    server = HttpServer.for_stream(view)
    try:
        yield Served(view, server.url)
    finally:
        server.stop()
