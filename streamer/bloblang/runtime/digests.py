"""Digests by Benthos's names."""

from __future__ import annotations

import hashlib
import hmac
import zlib
from collections.abc import Callable
from typing import Final

from streamer.bloblang.errors import ArgumentError, QueryError

Digest = Callable[[bytes], bytes]
_PLAIN: Final = {
    "md5": "md5",
    "sha1": "sha1",
    "sha256": "sha256",
    "sha512": "sha512",
    "sha3_256": "sha3_256",
    "sha3_512": "sha3_512",
}
_POLYNOMIALS: Final = {"Castagnoli": 0x82F63B78, "Koopman": 0xEB31D82E}


def find(algorithm: str, key: bytes, polynomial: str) -> Digest:
    """Return a digest by its name.

    Raises:
        ArgumentError: there is none of that name, or it needs a key.
    """
    if algorithm in _PLAIN:
        name = _PLAIN[algorithm]
        return lambda raw: hashlib.new(name, raw, usedforsecurity=False).digest()
    if algorithm.replace("-", "_") in ("hmac_sha1", "hmac_sha256", "hmac_sha512"):
        if not key:
            raise ArgumentError(f"hash algorithm {algorithm} requires a key argument")
        inner = algorithm[5:]
        return lambda raw: hmac.digest(key, raw, inner)
    if algorithm == "crc32":
        return _crc32(polynomial)
    if algorithm == "fnv32":
        return lambda raw: str(_fnv32(raw)).encode()
    if algorithm == "xxhash64":
        return lambda raw: str(_xxhash64(raw)).encode()
    raise ArgumentError(f"unrecognized hash type: {algorithm}")


def _crc32(polynomial: str) -> Digest:
    if polynomial == "IEEE":
        return lambda raw: zlib.crc32(raw).to_bytes(4, "big")
    reversed_form = _POLYNOMIALS.get(polynomial)
    if reversed_form is None:

        def refuse(raw: bytes) -> bytes:
            raise QueryError(f'unsupported crc32 hash key "{polynomial}"')

        return refuse
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (reversed_form if value & 1 else 0)
        table.append(value)

    def digest(raw: bytes) -> bytes:
        crc = 0xFFFFFFFF
        for byte in raw:
            crc = crc >> 8 ^ table[(crc ^ byte) & 255]
        return (crc ^ 0xFFFFFFFF).to_bytes(4, "big")

    return digest


def _fnv32(raw: bytes) -> int:
    value = 0x811C9DC5
    for byte in raw:
        value = value * 0x01000193 & 0xFFFFFFFF ^ byte
    return value


_MASK: Final = (1 << 64) - 1
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> 64 - bits) & _MASK


def _round(value: int, lane: int) -> int:
    return _rotate(value + lane * _P2 & _MASK, 31) * _P1 & _MASK


def _xxhash64(raw: bytes) -> int:
    """XXH64 with seed 0, as its specification has it."""
    at, size = 0, len(raw)
    if size >= 32:
        lanes = [_P1 + _P2 & _MASK, _P2, 0, -_P1 & _MASK]
        while at + 32 <= size:
            for i in range(4):
                word = int.from_bytes(raw[at + 8 * i : at + 8 * i + 8], "little")
                lanes[i] = _round(lanes[i], word)
            at += 32
        value = sum(map(_rotate, lanes, (1, 7, 12, 18))) & _MASK
        for lane in lanes:
            value = (value ^ _round(0, lane)) * _P1 + _P4 & _MASK
    else:
        value = _P5
    value = value + size & _MASK
    while at + 8 <= size:
        value ^= _round(0, int.from_bytes(raw[at : at + 8], "little"))
        value = _rotate(value, 27) * _P1 + _P4 & _MASK
        at += 8
    if at + 4 <= size:
        value ^= int.from_bytes(raw[at : at + 4], "little") * _P1 & _MASK
        value = _rotate(value, 23) * _P2 + _P3 & _MASK
        at += 4
    for byte in raw[at:]:
        value = _rotate(value ^ byte * _P5 & _MASK, 11) * _P1 & _MASK
    value = (value ^ value >> 33) * _P2 & _MASK
    value = (value ^ value >> 29) * _P3 & _MASK
    return value ^ value >> 32
