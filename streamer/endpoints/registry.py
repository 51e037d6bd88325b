"""The stream's HTTP server as its components see it: they add paths while it runs."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamer.endpoints.paths import Path
from streamer.errors import StreamerError

if TYPE_CHECKING:
    from aiohttp import web

_ELSEWHERE = "give one of them another path, or an address of its own"

Handler = Callable[["web.BaseRequest", Mapping[str, str]], Awaitable["web.StreamResponse"]]
"""Answers a request; its second argument is what the path's parameters stand for."""


async def _not_yet(request: web.BaseRequest, found: Mapping[str, str]) -> web.StreamResponse:
    # aiohttp comes along with it, which only those need that serve.
    from streamer.endpoints.replies import not_yet

    return not_yet("the stream is starting")


@dataclass
class _Entry:
    """A path, and who serves it; `held` until that one lets go of it."""

    path: Path
    who: str
    about: str
    handler: Handler
    held: bool = True


# Streams that share a server must not be given one path at the same moment.
_adding = threading.Lock()


class Endpoints:
    """Paths of components. They are added and asked for in several threads.

    Attributes:
        served: whether a server listens that asks here.
        beside: gives those of other streams, by their names, whose paths are on the same server
            without anything before them.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self.served = False
        self.beside: Callable[[], Iterable[tuple[str, Endpoints]]] = lambda: ()
        self._lock = threading.Lock()
        self._paths: list[_Entry] = []
        self._expected: list[Path] = []

    def expect(self, paths: Iterable[str]) -> None:
        """Take paths that components will add: until they do, requests are asked to come again."""
        self._expected = [Path(path) for path in paths]

    def add(
        self, who: str, served: Mapping[str, tuple[str, Handler]], change: str = _ELSEWHERE
    ) -> Callable[[], None]:
        """Serve paths.

        Args:
            who: the component that serves them, for messages.
            served: what each path is for, and who answers there.
            change: what to do where another component has one of them.

        Returns:
            What lets go of the paths: they are answered as before until another wants them.

        Raises:
            StreamerError: another component has one of them; none is added.
        """
        entries = [
            _Entry(Path(path), who, about, handler) for path, (about, handler) in served.items()
        ]
        shapes = {entry.path.shape: entry.path.text for entry in entries}
        with _adding:
            for stream, other in self.beside():
                for entry in other._held(shapes):
                    raise StreamerError(
                        f"{who} wants the path {shapes[entry.path.shape]}, which {entry.who} of "
                        f"the stream {stream} serves on the same server: {change}"
                    )
            for entry in self._held(shapes):
                raise StreamerError(
                    f"{who} wants the path {shapes[entry.path.shape]}, which {entry.who} "
                    f"serves on the same server: {change}"
                )
            with self._lock:
                kept = [entry for entry in self._paths if entry.path.shape not in shapes]
                self._paths = kept + entries

        def let_go() -> None:
            for entry in entries:
                entry.held = False

        return let_go

    def _held(self, shapes: Mapping[str, str]) -> list[_Entry]:
        """Return the paths of these shapes that somebody holds."""
        with self._lock:
            return [one for one in self._paths if one.held and one.path.shape in shapes]

    def find(self, path: str) -> tuple[Handler, Mapping[str, str]] | None:
        """Return who answers a request's path, and what its parameters stand for."""
        for entry in self._paths:
            found = entry.path.match(path)
            if found is not None:
                return entry.handler, found
        for expected in self._expected:
            found = expected.match(path)
            if found is not None:
                return _not_yet, found
        return None

    def listed(self) -> dict[str, str]:
        """Return the paths with what they are for."""
        return {entry.path.text: entry.about for entry in self._paths}
