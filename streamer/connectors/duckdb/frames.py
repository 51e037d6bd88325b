"""Frames between a worker and the process of its query: a header in JSON, and bytes."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Mapping
from typing import Any, Final

_LENGTHS: Final = struct.Struct(">IQ")
_MAX_HEADER_BYTES: Final = 64 << 20


def send_frame(connection: socket.socket, header: Mapping[str, Any], body: Any = b"") -> None:
    """Send a frame.

    Args:
        connection: where to.
        header: what JSON has.
        body: bytes, or what has a buffer of them.

    Raises:
        OSError: the other side is gone, or takes too long.
    """
    text = json.dumps(header).encode()
    view = memoryview(body).cast("B")
    connection.sendall(_LENGTHS.pack(len(text), len(view)) + text)
    if view:
        connection.sendall(view)


def receive_frame(
    connection: socket.socket, max_bytes: int | None = None
) -> tuple[dict[str, Any], bytearray]:
    """Return the header and the bytes of the next frame.

    Args:
        connection: where from.
        max_bytes: bytes that the frame has at most; None for any number.

    Raises:
        EOFError: the other side is gone, or its frame is larger.
        OSError: it takes too long.
    """
    header_length, body_length = _LENGTHS.unpack(_receive(connection, _LENGTHS.size))
    if header_length > _MAX_HEADER_BYTES:
        raise EOFError(f"a header of {header_length:,} bytes")
    if max_bytes is not None and body_length > max_bytes:
        raise EOFError(f"a body of {body_length:,} bytes")
    header: dict[str, Any] = json.loads(_receive(connection, header_length))
    return header, _receive(connection, body_length)


def _receive(connection: socket.socket, count: int) -> bytearray:
    buffer = bytearray(count)
    view, at = memoryview(buffer), 0
    while at < count:
        received = connection.recv_into(view[at:])
        if not received:
            raise EOFError("the connection was closed")
        at += received
    return buffer
