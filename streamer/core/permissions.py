"""Permissions of a config on this machine: the one way to files, programs and Unix sockets.

The addresses at which clouds give a machine its credentials count as the machine's own.

A config that comes by API may be a stranger's. What it names is looked at when it is read, and
again here, where it is opened: in the driver and in workers, whatever it was made of. Components
take `current_permissions()` while they are built, and open by it what their fields name.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from os import PathLike
from typing import IO, TYPE_CHECKING, Any, Final

from streamer.core.errors import StreamerError

if TYPE_CHECKING:
    import socket
    import subprocess


class NotPermittedError(StreamerError):
    """A config would open or run what configs that come by API may not."""


@dataclass(frozen=True, slots=True)
class Permissions:
    """The permissions of a config; small enough to be sent with every component to workers.

    Attributes:
        local: open files and Unix sockets, see the environment, and connect to addresses that are
            of this machine alone.
        programs: run programs.
        python: run code in Python, which may do whatever this program can.
    """

    local: bool = True
    programs: bool = True
    python: bool = True

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

    def open(self, path: str | PathLike[str], mode: str = "r", **options: Any) -> IO[Any]:
        """Open a file as `open` does; a text is UTF-8.

        Raises:
            NotPermittedError: files are out of reach.
            OSError: it cannot be opened.
        """
        if "\0" in str(path):
            # Python's `open` raises a ValueError, which nobody expects of a name.
            raise OSError(errno.EINVAL, "a name cannot have a null character", str(path))
        encoding = None if "b" in mode else "utf-8"
        return open(self.file(path), mode, encoding=encoding, **options)

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

    def address(self, address: str) -> str:
        """Return an IP address that is to be connected to, as a resolver gives it.

        Raises:
            NotPermittedError: it is one of the machine alone, and these are out of reach.
        """
        if not self.local and _is_of_machine(address):
            raise NotPermittedError(
                f"the address {address} is link-local or of a cloud's metadata, and out of reach "
                "for configs that come by API; start the service with --allow-local"
            )
        return address

    def connect(
        self, host: str, port: int, timeout: float | None = None, kind: int | None = None
    ) -> socket.socket:
        """Connect a socket (a stream by default) to the first address of a host that answers.

        Args:
            host: a name, or an address.
            port: the port.
            timeout: for each address, s; it stays the socket's. None for no end.
            kind: the kind of socket.

        Raises:
            PermissionError: see `address`.
            OSError: none answers.
        """
        import socket

        failure = OSError(f"{host} has no address")
        socket_type = socket.SOCK_STREAM if kind is None else kind
        for family, actual_type, protocol, _, place in socket.getaddrinfo(
            host, port, type=socket_type
        ):
            made: socket.socket | None = None
            try:
                self.address(str(place[0]))
                made = socket.socket(family, actual_type, protocol)
                made.settimeout(timeout)
                made.connect(place)
                return made
            except NotPermittedError as error:
                failure = PermissionError(str(error))
            except OSError as error:
                failure = error
                if made is not None:
                    made.close()
        raise failure

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

    def python_code(self, what: str) -> None:
        """Check that code in Python may run.

        Args:
            what: names the code, for the message.

        Raises:
            NotPermittedError: it may not.
        """
        if not self.python:
            raise NotPermittedError(
                f"{what} is code in Python, which is off for configs that come by API; start the "
                "service with --allow-python"
            )

    def start(self, command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        """Start a program with pipes; `more` is for `Popen`.

        Raises:
            NotPermittedError: programs are out of reach.
            OSError: it cannot be started.
        """
        import subprocess

        pipe = subprocess.PIPE
        pipes: dict[str, Any] = {"stdin": pipe, "stdout": pipe, "stderr": pipe, **options}
        return subprocess.Popen(self.command(command), **pipes)

    def run(self, command: Sequence[str], text: bytes) -> subprocess.CompletedProcess[bytes]:
        """Run a program to its end with a standard input; see `start`."""
        import subprocess

        return subprocess.run(self.command(command), input=text, capture_output=True)


_OF_MACHINE: Final = (
    # Link-local: what most clouds use, also for their containers.
    *("169.254.0.0/16", "fe80::/10"),
    # AWS by IPv6, Alibaba, Azure, Oracle.
    *("fd00:ec2::/32", "100.100.100.200", "168.63.129.16", "192.0.0.192"),
)
_TRANSLATED: Final = "64:ff9b::/96"
"""IPv6 addresses that a gateway turns into the IPv4 address in their last bits (RFC 6052)."""


@cache
def _networks() -> tuple[Any, ...]:
    from ipaddress import ip_network

    return tuple(map(ip_network, _OF_MACHINE))


def _is_of_machine(address: str) -> bool:
    from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, IPv6Address):
        if ip.ipv4_mapped is not None:
            ip = ip.ipv4_mapped
        elif ip in ip_network(_TRANSLATED):
            ip = IPv4Address(int(ip) & 0xFFFF_FFFF)
    return any(ip.version == one.version and ip in one for one in _networks())


ALL: Final = Permissions()
"""What configs of files may do, which are those of the machine's own people."""

NONE: Final = Permissions(local=False, programs=False, python=False)
"""What configs that come by API may do, unless the command line says otherwise."""

_current: ContextVar[Permissions] = ContextVar("_current", default=ALL)


def current_permissions() -> Permissions:
    """Return what the config that is read, or the component that is built, in this context may do.

    Threads do not inherit it: whoever opens something later takes it while it is built.
    """
    return _current.get()


@contextmanager
def limit_permissions(permissions: Permissions) -> Iterator[None]:
    """Read configs, or build components, by these permissions in this very context meanwhile."""
    before = _current.set(permissions)
    try:
        yield
    finally:
        _current.reset(before)
