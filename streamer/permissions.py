"""What a config may do on this machine, and the one door to files, programs and Unix sockets.

A config that comes by API may be a stranger's. What it names is looked at when it is read, and
again here, where it is opened: in the driver and in workers, whatever it was made of. Components
take `current_permissions()` while they are built, and open by it what their fields name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from os import PathLike
from typing import IO, TYPE_CHECKING, Any, Final

from streamer.errors import StreamerError

if TYPE_CHECKING:
    import socket
    import subprocess


class NotPermittedError(StreamerError):
    """A config would open or run what configs that come by API may not."""


@dataclass(frozen=True, slots=True)
class Permissions:
    """What is permitted; small enough to be sent with every component to workers.

    Attributes:
        local: open files and Unix sockets, and see the environment.
        programs: run programs.
    """

    local: bool = True
    programs: bool = True

    def file(self, path: str | PathLike[str]) -> str:
        """Return the path of a file or directory, for a library that opens it; "" names nothing.

        Raises:
            NotPermittedError: files are out of reach.
        """
        if path and not self.local:
            raise NotPermittedError(
                f"the file {str(path)!r} is out of reach for configs that come by API; start the "
                "service with --allow-local"
            )
        return str(path)

    def open(self, path: str | PathLike[str], mode: str = "r", **more: Any) -> IO[Any]:
        """Open a file as `open` does; a text is UTF-8.

        Raises:
            NotPermittedError: files are out of reach.
            OSError: it cannot be opened.
        """
        encoding = None if "b" in mode else "utf-8"
        return open(self.file(path), mode, encoding=encoding, **more)

    def read(self, path: str | PathLike[str]) -> bytes:
        """Return what is in a file; see `open`."""
        with self.open(path, "rb") as file:
            content: bytes = file.read()
        return content

    def unix_path(self, path: str) -> str:
        """Return the path of a Unix socket, for a library that opens it.

        Raises:
            NotPermittedError: Unix sockets are out of reach.
        """
        if not self.local:
            raise NotPermittedError(
                f"the Unix socket {path!r} is out of reach for configs that come by API; start "
                "the service with --allow-local"
            )
        return path

    def unix_socket(self, path: str, kind: int | None = None) -> socket.socket:
        """Make a socket (a stream by default) to connect or bind to a path; see `unix_path`."""
        import socket  # Here, as below: parsing a config should not wait for it.

        self.unix_path(path)
        return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM if kind is None else kind)

    def command(self, command: Sequence[str]) -> Sequence[str]:
        """Return a command that is to be run.

        Raises:
            NotPermittedError: programs are out of reach.
        """
        if not self.programs:
            raise NotPermittedError(
                f"the program {command[0]!r} is out of reach for configs that come by API; start "
                "the service with --allow-programs"
            )
        return command

    def start(self, command: Sequence[str], **more: Any) -> subprocess.Popen[bytes]:
        """Start a program with pipes; `more` is for `Popen`.

        Raises:
            NotPermittedError: programs are out of reach.
            OSError: it cannot be started.
        """
        import subprocess

        pipe = subprocess.PIPE
        pipes: dict[str, Any] = {"stdin": pipe, "stdout": pipe, "stderr": pipe, **more}
        return subprocess.Popen(self.command(command), **pipes)

    def run(self, command: Sequence[str], text: bytes) -> subprocess.CompletedProcess[bytes]:
        """Run a program to its end with a standard input; see `start`."""
        import subprocess

        return subprocess.run(self.command(command), input=text, capture_output=True)


ALL: Final = Permissions()
"""What configs of files may do, which are those of the machine's own people."""

NONE: Final = Permissions(local=False, programs=False)
"""What configs that come by API may do, unless the command line says otherwise."""

_current: ContextVar[Permissions] = ContextVar("_current", default=ALL)


def current_permissions() -> Permissions:
    """Return what the config that is read, or the component that is built, in this context may do.

    Threads do not inherit it: whoever opens something later takes it while it is built.
    """
    return _current.get()


@contextmanager
def limited(permissions: Permissions) -> Iterator[None]:
    """Read configs, or build components, by these permissions in this very context meanwhile."""
    before = _current.set(permissions)
    try:
        yield
    finally:
        _current.reset(before)
