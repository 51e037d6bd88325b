"""The wire format of a schema registry: a zero byte, the schema's id, and what it describes.

In front of a Protobuf message stands the path of its type in the schema: numbers of messages, each
within the one before, as zigzag varints after their count; `[0]` is a single zero byte. Source:
Confluent's documentation of the wire format.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_MAGIC: Final = b"\0"
_HEADER_BYTES: Final = 5
_MAX_INDEXES: Final = 1_000
_MAX_VARINT_BYTES: Final = 10

BAD_HEADER: Final = "5 byte header for value is missing or does not have 0 magic byte"
"""Why a message has no header, in the words of Connect's client."""


def split_header(raw: bytes) -> tuple[int, bytes] | None:
    """Return the id of a message's schema and the rest of the message; None without a header."""
    if len(raw) < _HEADER_BYTES or raw[:1] != _MAGIC:
        return None
    return int.from_bytes(raw[1:_HEADER_BYTES], "big"), raw[_HEADER_BYTES:]


def add_header(schema_id: int, raw: bytes) -> bytes:
    """Return a message with the header of its schema."""
    return _MAGIC + schema_id.to_bytes(4, "big") + raw


def read_message_indexes(raw: bytes) -> tuple[list[int], bytes]:
    """Return the path of a Protobuf message's type, and the message.

    Raises:
        ValueError: the bytes begin with no such path.
    """
    count, at = _read_varint(raw, 0)
    if count == 0:
        return [0], raw[at:]
    if not 0 < count <= _MAX_INDEXES:
        raise ValueError("unable to read message indexes")
    indexes = []
    for _ in range(count):
        index, at = _read_varint(raw, at)
        indexes.append(index)
    return indexes, raw[at:]


def write_message_indexes(indexes: Sequence[int]) -> bytes:
    """Return the path of a Protobuf message's type as bytes."""
    if list(indexes) == [0]:
        return b"\0"
    return b"".join(map(_write_varint, (len(indexes), *indexes)))


def _read_varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    for byte in raw[at : at + _MAX_VARINT_BYTES]:
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
    raise ValueError("unable to read message indexes")


def _write_varint(number: int) -> bytes:
    value = number << 1 if number >= 0 else (-number << 1) - 1
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)
