"""Digests by Benthos's names."""

from __future__ import annotations

import hashlib
import hmac
import zlib
from collections.abc import Callable
from typing import Final

from streamer.bloblang.errors import ArgumentError, QueryError

Digest = Callable[[bytes], bytes]
_HASHLIB_NAMES: Final = {
    "md5": "md5",
    "sha1": "sha1",
    "sha256": "sha256",
    "sha512": "sha512",
    "sha3_256": "sha3_256",
    "sha3_512": "sha3_512",
}
# Reversed; no library has it.
_KOOPMAN_POLYNOMIAL: Final = 0xEB31D82E


def find_digest(algorithm: str, key: bytes, polynomial: str) -> Digest:
    """Return a digest by its name.

    Raises:
        ArgumentError: there is none of that name, or it needs a key.
    """
    if algorithm in _HASHLIB_NAMES:
        name = _HASHLIB_NAMES[algorithm]
        return lambda raw: hashlib.new(name, raw, usedforsecurity=False).digest()
    if algorithm.replace("-", "_") in ("hmac_sha1", "hmac_sha256", "hmac_sha512"):
        if not key:
            raise ArgumentError(f"hash algorithm {algorithm} requires a key argument")
        inner = algorithm[5:]
        return lambda raw: hmac.digest(key, raw, inner)
    if algorithm == "crc32":
        return _make_crc32(polynomial)
    if algorithm == "fnv32":
        return lambda raw: b"%d" % _hash_fnv32(raw)
    if algorithm == "xxhash64":
        from xxhash import xxh64_intdigest

        return lambda raw: b"%d" % xxh64_intdigest(raw)
    raise ArgumentError(f"unrecognized hash type: {algorithm}")


def _make_crc32(polynomial: str) -> Digest:
    if polynomial == "IEEE":
        return lambda raw: zlib.crc32(raw).to_bytes(4, "big")
    if polynomial == "Castagnoli":
        from crc32c import crc32c

        return lambda raw: crc32c(raw).to_bytes(4, "big")
    if polynomial == "Koopman":
        return _make_koopman()

    def refuse(raw: bytes) -> bytes:
        raise QueryError(f'unsupported crc32 hash key "{polynomial}"')

    return refuse


def _make_koopman() -> Digest:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (_KOOPMAN_POLYNOMIAL if value & 1 else 0)
        table.append(value)

    def digest(raw: bytes) -> bytes:
        crc = 0xFFFFFFFF
        for byte in raw:
            crc = crc >> 8 ^ table[(crc ^ byte) & 255]
        return (crc ^ 0xFFFFFFFF).to_bytes(4, "big")

    return digest


def _hash_fnv32(raw: bytes) -> int:
    value = 0x811C9DC5
    for byte in raw:
        value = value * 0x01000193 & 0xFFFFFFFF ^ byte
    return value
