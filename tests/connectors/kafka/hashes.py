"""The hashes by which clients choose partitions, written from their definitions."""

from __future__ import annotations

_MASK = 0xFFFFFFFF


def fnv1a(data: bytes) -> int:
    """FNV-1a of 32 bits."""
    found = 0x811C9DC5
    for byte in data:
        found = (found ^ byte) * 0x01000193 & _MASK
    return found


def murmur2(data: bytes) -> int:
    """Murmur2 of 32 bits as Kafka's clients have it."""
    m, length = 0x5BD1E995, len(data)
    found = 0x9747B28C ^ length
    for at in range(0, length - length % 4, 4):
        k = int.from_bytes(data[at : at + 4], "little") * m & _MASK
        k = (k ^ k >> 24) * m & _MASK
        found = found * m & _MASK ^ k
    rest = data[length - length % 4 :]
    if rest:
        found = (found ^ int.from_bytes(rest, "little")) * m & _MASK
    found = (found ^ found >> 13) * m & _MASK
    return found ^ found >> 15
