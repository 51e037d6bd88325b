"""The stream's HTTP server as its components see it: they add paths while it runs."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from streamer.endpoints.paths import Path

if TYPE_CHECKING:
    from aiohttp import web

Handler = Callable[["web.BaseRequest", Mapping[str, str]], Awaitable["web.StreamResponse"]]
"""Answers a request; its second argument is what the path's parameters stand for."""


class Endpoints:
    """Paths of components. They are added and asked for in several threads.

    Attributes:
        served: whether a server listens that asks here.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self.served = False
        self._lock = threading.Lock()
        self._paths: list[tuple[Path, str, Handler]] = []

    def add(self, path: str, about: str, handler: Handler) -> None:
        """Serve a path; one that is there is replaced."""
        with self._lock:
            kept = [entry for entry in self._paths if entry[0].text != path]
            self._paths = [*kept, (Path(path), about, handler)]

    def find(self, path: str) -> tuple[Handler, Mapping[str, str]] | None:
        """Return who answers a request's path, and what its parameters stand for."""
        for known, _, handler in self._paths:
            found = known.match(path)
            if found is not None:
                return handler, found
        return None

    def listed(self) -> dict[str, str]:
        """Return the paths with what they are for."""
        return {path.text: about for path, about, _ in self._paths}
