"""Sockets as streams of bytes, and the addresses that configs give them."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Final

from streamer.core.errors import StreamerError
from streamer.core.permissions import ALL, Permissions
from streamer.sdk.spec import Field

_MAX_DATAGRAM_BYTES: Final = 1 << 16

TCP: Final = "tcp"
TCP_FIELD: Final = Field(
    TCP,
    "object",
    "Settings of the listening socket.",
    optional=True,
    advanced=True,
    children=(
        Field("reuse_addr", "bool", "SO_REUSEADDR, which is always set.", default=False),
        Field(
            "reuse_port",
            "bool",
            "SO_REUSEPORT: others may listen on the port as well.",
            default=False,
        ),
    ),
)


class SocketStream:
    """A connection as a stream of bytes."""

    def __init__(self, connection: socket.socket) -> None:
        """Take a connection."""
        self._connection = connection

    def read(self, size: int, /) -> bytes:
        """Return what there is; nothing at the end."""
        return self._connection.recv(size)


class DatagramStream:
    """Datagrams one after another as a stream of bytes, which ends when the socket is closed."""

    def __init__(self, receiver: socket.socket) -> None:
        """Take a socket that is bound."""
        self._receiver = receiver
        self._rest = b""

    def read(self, size: int, /) -> bytes:
        """Return the next datagram, or what was left of the last one."""
        while not self._rest:
            try:
                self._rest = self._receiver.recv(_MAX_DATAGRAM_BYTES)
            except OSError:
                if self._receiver.fileno() < 0:
                    return b""
                raise
        data, self._rest = self._rest[:size], self._rest[size:]
        return data


def split_host(address: str) -> tuple[str, int]:
    """Return host and port of an address as Go's `net` takes it; no host stands for this machine.

    Raises:
        StreamerError: it is none.
    """
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65_535:
        raise StreamerError(f"the address {address!r} has no port; expected host:port")
    return host.strip("[]"), int(port)


def address_problem(network: str, address: str) -> str | None:
    """Return what is wrong with the address of a network."""
    if network in ("unix", "unixgram"):
        if "\0" in address:
            return "has a NUL, which no path has"
        return None if address else "is empty; expected the path of a socket"
    try:
        split_host(address)
    except StreamerError as e:
        return f"is {address!r}; {str(e).partition('; ')[2]}"
    return None


def bind_socket(
    network: str, address: str, *, reuse_port: bool = False, permissions: Permissions = ALL
) -> socket.socket:
    """Return a socket that listens, or one that datagrams are sent to.

    Raises:
        StreamerError: the address is taken, or there is no such address.
        NotPermittedError: it is a Unix socket, and these are out of reach.
    """
    packets = network in ("udp", "unixgram")
    kind = socket.SOCK_DGRAM if packets else socket.SOCK_STREAM
    try:
        if network in ("unix", "unixgram"):
            made = _bind_path(kind, address, permissions)
        else:
            made = _bind_port(kind, address, reuse_port)
        if not packets:
            made.listen(socket.SOMAXCONN)
    except OSError as e:
        reason = os.strerror(e.errno) if e.errno and e.errno > 0 else e.strerror or str(e)
        raise StreamerError(
            f"cannot listen on {address}: {reason.lower()}; set address to another one"
        ) from None
    return made


def _bind_path(kind: int, path: str, permissions: Permissions) -> socket.socket:
    # What a killed program has left is in nobody's way.
    if Path(path).is_socket():
        with permissions.unix_socket(path, kind) as probe:
            try:
                probe.connect(path)
            except ConnectionRefusedError:
                Path(path).unlink(missing_ok=True)
    made = permissions.unix_socket(path, kind)
    try:
        made.bind(path)
    except OSError:
        made.close()
        raise
    return made


def _bind_port(kind: int, address: str, reuse_port: bool) -> socket.socket:
    host, port = split_host(address)
    addresses = socket.getaddrinfo(host or None, port, type=kind, flags=socket.AI_PASSIVE)
    # Without a host both kinds of addresses are listened on, where the machine has them.
    both = not host and socket.has_dualstack_ipv6()
    family, _, _, _, where = addresses[0]
    made = socket.socket(socket.AF_INET6 if both else family, kind)
    try:
        if both:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        if kind == socket.SOCK_STREAM:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if reuse_port:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        made.bind(("::", port) if both else where)
    except OSError:
        made.close()
        raise
    return made


def bound_address(receiver: socket.socket, network: str) -> str:
    """Return the address that a socket is bound to, as Go writes it."""
    if network in ("unix", "unixgram"):
        return str(receiver.getsockname())
    host, port = receiver.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
