"""The stream's HTTP server as its components see it: they add paths while it runs."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamer.connectors.http_server.paths import PathPattern
from streamer.core.errors import StreamerError

if TYPE_CHECKING:
    from aiohttp import web

_CLASH_HINT = "give one of them another path, or an address of its own"

Handler = Callable[["web.BaseRequest", Mapping[str, str]], Awaitable["web.StreamResponse"]]
"""Answers a request; its second argument is what the path's parameters stand for."""


async def _starting_reply(
    request: web.BaseRequest, parameters: Mapping[str, str]
) -> web.StreamResponse:
    # aiohttp comes along with it, which only those need that serve.
    from streamer.connectors.http_server.replies import retry_later_reply

    return retry_later_reply("the stream is starting")


@dataclass
class _Entry:
    """A path, and who serves it; `held` until that one releases it.

    Attributes:
        of_resource: whether it belongs to a resource that the streams share, and stands on the
            server without their ids.
    """

    path: PathPattern
    owner: str
    description: str
    handler: Handler
    of_resource: bool
    is_active: bool = True


# Streams that share a server must not be given one path at the same moment.
_add_lock = threading.Lock()


class EndpointRegistry:
    """Paths of components. They are added and asked for in several threads.

    Attributes:
        served: whether a server listens that asks here.
        fallback: gives those of other streams, by their names, that are on the same server.
        prefixed: whether the server puts the stream's id before the paths of components that stand
            in the stream's own file. As in Benthos, those of resources are as they are written.
    """

    def __init__(self, file: str = "") -> None:
        """Begin with none; `file` names the stream's config, as components say theirs."""
        self.served = False
        self.prefixed = False
        self._file = file
        self.fallback: Callable[[], Iterable[tuple[str, EndpointRegistry]]] = lambda: ()
        self._lock = threading.Lock()
        self._paths: list[_Entry] = []
        self._expected: list[PathPattern] = []

    @property
    def has_expected_paths(self) -> bool:
        """Whether components will add paths."""
        return bool(self._expected)

    def expect(self, paths: Iterable[str]) -> None:
        """Take paths that components will add: until they do, requests are asked to come again."""
        self._expected = [PathPattern(path) for path in paths]

    def add(
        self,
        owner: str,
        served: Mapping[str, tuple[str, Handler]],
        change: str = _CLASH_HINT,
        file: str = "",
    ) -> Callable[[], None]:
        """Serve paths.

        Args:
            owner: the component that serves them, for messages.
            served: what each path is for, and who answers there.
            change: what to do where another component has one of them.
            file: the file that the component stands in; empty for the stream's own.

        Returns:
            The function that releases the paths: they are answered as before until another takes
            them.

        Raises:
            StreamerError: another component has one of them; none is added.
        """
        of_resource = self.prefixed and file not in ("", self._file)
        entries = [
            _Entry(PathPattern(path), owner, about, handler, of_resource)
            for path, (about, handler) in served.items()
        ]
        shapes = {entry.path.shape: entry.path.text for entry in entries}
        with _add_lock:
            # Behind their ids streams have nothing in common.
            apart = self.prefixed and not of_resource
            for stream, other in () if apart else self.fallback():
                for entry in other._active_entries(shapes, of_resource):
                    raise StreamerError(
                        f"{owner} wants the path {shapes[entry.path.shape]}, which {entry.owner} "
                        f"of the stream {stream} serves on the same server: {change}"
                    )
            for entry in self._active_entries(shapes, of_resource):
                raise StreamerError(
                    f"{owner} wants the path {shapes[entry.path.shape]}, which {entry.owner} "
                    f"serves on the same server: {change}"
                )
            with self._lock:
                kept = [
                    entry
                    for entry in self._paths
                    if entry.path.shape not in shapes or entry.of_resource != of_resource
                ]
                self._paths = kept + entries

        def release() -> None:
            for entry in entries:
                entry.is_active = False

        return release

    def _active_entries(self, shapes: Mapping[str, str], of_resource: bool) -> list[_Entry]:
        """Return the paths of these shapes that somebody holds."""
        with self._lock:
            return [
                one
                for one in self._paths
                if one.is_active and one.path.shape in shapes and one.of_resource == of_resource
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
                parameters = entry.path.match(path)
                if parameters is not None:
                    return entry.handler, parameters
        for expected in () if of_resource else self._expected:
            parameters = expected.match(path)
            if parameters is not None:
                return _starting_reply, parameters
        return None

    def list_paths(self, of_resource: bool = False) -> dict[str, str]:
        """Return the paths with what they are for."""
        return {
            entry.path.text: entry.description
            for entry in self._paths
            if entry.of_resource == of_resource
        }
