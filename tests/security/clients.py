"""Clients that are hostile."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

HALF_A_HEAD = b"GET /x HTTP/1.1\r\n"


def connected(url: str) -> socket.socket:
    """Return a connection to the server of a URL."""
    at = urlsplit(url)
    return socket.create_connection((at.hostname or "", at.port or 0), 10)


@contextmanager
def half_open(url: str, number: int, begin: bytes = HALF_A_HEAD) -> Iterator[list[socket.socket]]:
    """Open so many connections that begin a request and never end it."""
    held: list[socket.socket] = []
    try:
        for _ in range(number):
            one = connected(url)
            held.append(one)
            with suppress(OSError):
                one.sendall(begin)
        yield held
    finally:
        for one in held:
            one.close()


def is_closed(connection: socket.socket, patience: float) -> bool:
    """Tell whether the other side ends a connection within so many seconds."""
    connection.settimeout(patience)
    try:
        while connection.recv(1 << 16):
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


def raw_answer(url: str, request: bytes, patience: float = 10.0) -> bytes:
    """Send bytes; return what comes until the connection ends or nothing comes any more."""
    found = b""
    with connected(url) as connection:
        connection.settimeout(patience)
        with suppress(OSError):
            connection.sendall(request)
            while block := connection.recv(1 << 16):
                found += block
    return found
