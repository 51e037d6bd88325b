"""The small files beside the segments of a store: how far they are safe, and how far they are read.

Each is written over in place and carries a check sum. None is synced: after a crash of the machine
an older one may stand there, or none.
"""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path
from typing import Final, NamedTuple

_SUM: Final = struct.Struct("<I")
_SAFE_V1: Final = struct.Struct("<QQB")
"""What version 0.1 has written: nothing of the messages, nothing of the store's identity."""

_SAFE: Final = struct.Struct("<QQBQq")
_READ: Final = struct.Struct("<QQqQ")
SAFE_FILE: Final = "safe"
"""The file that says how far a store is safe."""

_READ_FILE: Final = "read"

UNKNOWN_TOTAL: Final = -1
"""In the place of a number of messages that nobody has counted."""


class SafePosition(NamedTuple):
    """The durable end of a store: segments before `segment` are whole, and `size` bytes of it.

    Attributes:
        segment: number of the newest segment, from 1; 0 before the first.
        size: bytes of it that are on disk.
        closed: nothing more comes.
        store: what no other store has in its blocks; 0 when it is not known.
        total: messages that the store has taken since it was made; `UNKNOWN` when nobody counted.
    """

    segment: int = 0
    size: int = 0
    closed: bool = False
    store: int = 0
    total: int = UNKNOWN_TOTAL


class Position(NamedTuple):
    """A position in a store.

    Attributes:
        segment: number of the segment.
        pos: bytes of it that are before.
        total: messages before it, since the store was made; `UNKNOWN` when nobody counted.
        store: the store's identity; 0 when it is not known.
    """

    segment: int
    pos: int
    total: int = UNKNOWN_TOTAL
    store: int = 0


def pack_safe(safe: SafePosition) -> bytes:
    """Return what stands in the file `NAME`."""
    return _add_checksum(_SAFE.pack(*safe))


def read_safe(directory: Path) -> SafePosition:
    """Return how far a store may be read; nothing when there is none, or while it is opened."""
    for _ in range(3):
        try:
            data = (directory / SAFE_FILE).read_bytes()
        except FileNotFoundError:
            return SafePosition()
        for form in (_SAFE, _SAFE_V1):
            if (body := _verify_checksum(data, form)) is not None:
                segment, size, closed, *more = form.unpack(body)
                return SafePosition(segment, size, bool(closed), *more)
    return SafePosition()


def write_read_position(directory: Path, position: Position) -> None:
    """Note that the checkpoint has what is before a position."""
    file = os.open(directory / _READ_FILE, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.pwrite(file, _add_checksum(_READ.pack(*position)), 0)
    finally:
        os.close(file)


def read_read_position(directory: Path) -> Position | None:
    """Return up to where the checkpoint has a store, at least; None when that was not noted."""
    try:
        body = _verify_checksum((directory / _READ_FILE).read_bytes(), _READ)
    except FileNotFoundError:
        return None
    return None if body is None else Position(*_READ.unpack(body))


def _add_checksum(body: bytes) -> bytes:
    return body + _SUM.pack(zlib.crc32(body))


def _verify_checksum(data: bytes, layout: struct.Struct) -> bytes | None:
    """Return the body of a file that has this form; None when it has another, or is damaged."""
    body = data[: layout.size]
    return body if data == _add_checksum(body) and len(body) == layout.size else None
