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
    """A path, and who serves it; `held` until that one lets go of it.

    Attributes:
        of_resource: whether it belongs to a resource that the streams share, and stands on the
            server without their ids.
    """

    path: Path
    who: str
    about: str
    handler: Handler
    of_resource: bool
    held: bool = True


# Streams that share a server must not be given one path at the same moment.
_adding = threading.Lock()


class Endpoints:
    """Paths of components. They are added and asked for in several threads.

    Attributes:
        served: whether a server listens that asks here.
        beside: gives those of other streams, by their names, that are on the same server.
        prefixed: whether the server puts the stream's id before the paths of components that stand
            in the stream's own file. As in Benthos, those of resources are as they are written.
    """

    def __init__(self, file: str = "") -> None:
        """Begin with none; `file` names the stream's config, as components say theirs."""
        self.served = False
        self.prefixed = False
        self._file = file
        self.beside: Callable[[], Iterable[tuple[str, Endpoints]]] = lambda: ()
        self._lock = threading.Lock()
        self._paths: list[_Entry] = []
        self._expected: list[Path] = []

    def expect(self, paths: Iterable[str]) -> None:
        """Take paths that components will add: until they do, requests are asked to come again."""
        self._expected = [Path(path) for path in paths]

    def add(
        self,
        who: str,
        served: Mapping[str, tuple[str, Handler]],
        change: str = _ELSEWHERE,
        file: str = "",
    ) -> Callable[[], None]:
        """Serve paths.

        Args:
            who: the component that serves them, for messages.
            served: what each path is for, and who answers there.
            change: what to do where another component has one of them.
            file: the file that the component stands in; empty for the stream's own.

        Returns:
            What lets go of the paths: they are answered as before until another wants them.

        Raises:
            StreamerError: another component has one of them; none is added.
        """
        of_resource = self.prefixed and file not in ("", self._file)
        entries = [
            _Entry(Path(path), who, about, handler, of_resource)
            for path, (about, handler) in served.items()
        ]
        shapes = {entry.path.shape: entry.path.text for entry in entries}
        with _adding:
            # Behind their ids streams have nothing in common.
            apart = self.prefixed and not of_resource
            for stream, other in () if apart else self.beside():
                for entry in other._held(shapes, of_resource):
                    raise StreamerError(
                        f"{who} wants the path {shapes[entry.path.shape]}, which {entry.who} of "
                        f"the stream {stream} serves on the same server: {change}"
                    )
            for entry in self._held(shapes, of_resource):
                raise StreamerError(
                    f"{who} wants the path {shapes[entry.path.shape]}, which {entry.who} "
                    f"serves on the same server: {change}"
                )
            with self._lock:
                kept = [
                    entry
                    for entry in self._paths
                    if entry.path.shape not in shapes or entry.of_resource != of_resource
                ]
                self._paths = kept + entries

        def let_go() -> None:
            for entry in entries:
                entry.held = False

        return let_go

    def _held(self, shapes: Mapping[str, str], of_resource: bool) -> list[_Entry]:
        """Return the paths of these shapes that somebody holds."""
        with self._lock:
            return [
                one
                for one in self._paths
                if one.held and one.path.shape in shapes and one.of_resource == of_resource
            ]

    def find(
        self, path: str, of_resource: bool = False
    ) -> tuple[Handler, Mapping[str, str]] | None:
        """Return who answers a request's path, and what its parameters stand for.

        Args:
            path: the path, without the stream's id.
            of_resource: look among those of resources that streams share, with `prefixed`.
        """
        for entry in self._paths:
            if entry.of_resource == of_resource:
                found = entry.path.match(path)
                if found is not None:
                    return entry.handler, found
        for expected in () if of_resource else self._expected:
            found = expected.match(path)
            if found is not None:
                return _not_yet, found
        return None

    def listed(self, of_resource: bool = False) -> dict[str, str]:
        """Return the paths with what they are for."""
        return {
            entry.path.text: entry.about
            for entry in self._paths
            if entry.of_resource == of_resource
        }
