"""Replies of Redis within bounds of bytes and time, whatever the server says and however slowly.

A server that announces `$999999999999` and sends would be taken at its word by the library, and
its timeout is for each read of the socket.
"""

from __future__ import annotations

import socket
import time
from typing import Any, Final

from redis import ConnectionPool
from redis._parsers.resp2 import _RESP2Parser
from redis._parsers.socket import SocketBuffer
from redis.exceptions import InvalidResponse
from redis.utils import SENTINEL

MAX_REPLY_BYTES: Final = 256 << 20
MAX_REPLY_ELEMENTS: Final = 10_000_000
_MAX_LINE_BYTES: Final = 1 << 20
_MIN_BYTES_PER_S: Final = 1 << 20
"""Bytes a second; a reply that has begun has its timeout, and a second more for so many bytes."""


class _TimedSocket:
    """A connection whose replies have a time for all of them."""

    def __init__(self, connection: socket.socket, timeout: float | None) -> None:
        self._connection = connection
        self._timeout = timeout
        self.began_at: float | None = None
        self.size = 0

    def recv(self, size: int) -> bytes:
        if self.began_at is not None and self._timeout is not None:
            took = time.monotonic() - self.began_at
            if took > self._timeout + self.size / _MIN_BYTES_PER_S:
                raise TimeoutError
        data = self._connection.recv(size)
        if self.began_at is None:
            self.began_at = time.monotonic()
        self.size += len(data)
        return data

    def settimeout(self, timeout: Any) -> None:
        self._connection.settimeout(timeout)


class _BoundedBuffer(SocketBuffer):
    """The bytes of replies that have come, which have a bound for each reply."""

    def __init__(self, connection: socket.socket, size: int, timeout: float | None) -> None:
        self._timed = _TimedSocket(connection, timeout)
        super().__init__(self._timed, size, timeout)  # type: ignore[arg-type]
        self._read_bytes = self._elements = 0

    def read(self, length: int, timeout: Any = SENTINEL) -> bytes:
        self._read_bytes += length
        if self._read_bytes > MAX_REPLY_BYTES:
            raise InvalidResponse(
                f"the reply has {self._read_bytes} bytes or more; expected {MAX_REPLY_BYTES} at "
                "most"
            )
        return super().read(length, timeout)

    def readline(self, timeout: Any = SENTINEL) -> bytes:
        data = bytearray(self._buffer.readline())
        while not data.endswith(b"\r\n"):
            if len(data) > _MAX_LINE_BYTES:
                raise InvalidResponse("the reply is no Redis's: a line without an end")
            self._read_from_socket(timeout=timeout)
            data += self._buffer.readline()
        line = bytes(data[:-2])
        self._elements += 1
        if line[:1] == b"*" and line[1:].isdigit():
            self._elements += int(line[1:])
        if self._elements > 2 * MAX_REPLY_ELEMENTS:
            raise InvalidResponse(
                f"the reply has more than the {MAX_REPLY_ELEMENTS} elements that it may have"
            )
        return line

    def purge(self) -> None:
        super().purge()
        self._read_bytes = self._elements = 0
        self._timed.began_at, self._timed.size = None, 0


class BoundedParser(_RESP2Parser):
    """Reads replies within bounds."""

    def read_response(self, *given: Any, **named: Any) -> Any:
        """Read one reply; see the library's parser."""
        try:
            return super().read_response(*given, **named)
        except RecursionError:
            text = "the reply is no Redis's: it has arrays in each other without an end"
            raise InvalidResponse(text) from None

    def on_connect(self, connection: Any) -> None:
        """Begin to read from a connection."""
        super().on_connect(connection)  # type: ignore[no-untyped-call]
        self._buffer = _BoundedBuffer(
            connection._sock, self.socket_read_size, connection.socket_timeout
        )


class BoundedPool(ConnectionPool):
    """Connections whose replies are read within bounds."""

    def __init__(self, **options: Any) -> None:
        """Take what `redis.ConnectionPool` takes."""
        super().__init__(parser_class=BoundedParser, **options)
