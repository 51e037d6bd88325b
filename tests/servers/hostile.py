"""Servers that are slow on purpose, or that accept and say nothing."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Serve = Callable[[socket.socket, threading.Event], None]


@contextmanager
def raw_server(serve: Serve) -> Iterator[str]:
    """Run a server of bytes on this machine; give its `host:port`.

    Args:
        serve: is given each connection, in a thread of its own, and an event that is set at the
            end.
    """
    over = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))
    taken: list[socket.socket] = []

    def serve_one(connection: socket.socket) -> None:
        with suppress(OSError):
            serve(connection, over)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                taken.append(connection)
                threading.Thread(target=serve_one, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        over.set()
        for one in (listener, *taken):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


def dripping(text: bytes, interval: float, at_once: int = 0) -> Serve:
    """Return what sends a text byte by byte, after its first bytes in one piece.

    Args:
        text: all of it.
        interval: seconds between two bytes.
        at_once: so many bytes are sent together first.
    """

    def serve(connection: socket.socket, over: threading.Event) -> None:
        connection.recv(1 << 16)
        connection.sendall(text[:at_once])
        for byte in text[at_once:]:
            connection.sendall(bytes([byte]))
            if over.wait(interval):
                return

    return serve


def silent(connection: socket.socket, over: threading.Event) -> None:
    """Say nothing, read nothing."""
    over.wait()
