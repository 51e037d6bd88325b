"""Bytes as text and back: base64, hex, ascii85, z85, with the errors of Go's decoders."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Final

from streamer.bloblang.errors import QueryError

Codec = Callable[[bytes], bytes]

_COMMON_ALPHABET: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


def _corrupt_error(at: int) -> QueryError:
    return QueryError(f"illegal base64 data at input byte {at}")


def _find_base64_fault(raw: bytes, alphabet: bytes, padded: bool) -> QueryError | None:
    """Return what Go's decoder of a stream has against a text, or None."""
    whole = len(raw) // 4 * 4
    for at in range(whole):
        c = raw[at : at + 1]
        if c in alphabet:
            continue
        place = at % 4
        if c != b"=" or not padded or place < 2:
            return _corrupt_error(at)
        if place == 2 and raw[at + 1 : at + 2] != b"=":
            return _corrupt_error(at)
        if at + 4 - place < whole:
            return _corrupt_error(at + 4 - place)
        break
    rest = raw[whole:]
    if not padded:
        bad = next((i for i in range(len(rest)) if rest[i : i + 1] not in alphabet), -1)
        return _corrupt_error(bad) if bad >= 0 else _corrupt_error(0) if len(rest) == 1 else None
    return QueryError("unexpected EOF") if rest else None


def _make_base64_decoder(extra: bytes, padded: bool) -> Codec:
    alphabet = _COMMON_ALPHABET + extra
    # With an alphabet of its own, Python's decoder still takes the letters of the standard one.
    foreign = bytes(set(b"+/") - set(extra))

    def decode(raw: bytes) -> bytes:
        raw = raw.replace(b"\n", b"").replace(b"\r", b"")
        try:
            filled = raw if padded else raw + b"=" * (-len(raw) % 4)
            strange = b"=" in (raw.rstrip(b"=") if padded else raw)
            if not strange and not any(letter in raw for letter in foreign):
                return base64.b64decode(filled, extra, validate=True)
        except binascii.Error:
            pass
        fault = _find_base64_fault(raw, alphabet, padded)
        if fault is not None:
            raise fault
        ended = raw if padded else raw + b"=" * (-len(raw) % 4)
        return base64.b64decode(ended[: len(ended) // 4 * 4], extra)

    return decode


def _describe_byte(byte: int) -> str:
    letter = chr(byte)
    return f"U+{byte:04X}" + (f" '{letter}'" if letter.isprintable() else "")


def _decode_hex(raw: bytes) -> bytes:
    try:
        return binascii.unhexlify(raw)
    except binascii.Error:
        bad = next((byte for byte in raw if byte not in b"0123456789abcdefABCDEF"), None)
    if bad is None:
        raise QueryError("unexpected EOF")
    raise QueryError(f"encoding/hex: invalid byte: {_describe_byte(bad)}")


def _decode_ascii85(raw: bytes) -> bytes:
    try:
        if sum(1 + 4 * (byte == 122) for byte in raw if byte > 32) % 5 == 1:
            return _decode_ascii85_slowly(raw)
        return base64.a85decode(raw, ignorechars=bytes(range(33)))
    except ValueError:
        return _decode_ascii85_slowly(raw)


def _decode_ascii85_slowly(raw: bytes) -> bytes:
    """Decode as Go does, where a group beyond 32 bits wraps; find the fault if there is one."""
    out, value, group_size = bytearray(), 0, 0
    for at, byte in enumerate(raw):
        if byte <= 32:
            continue
        if byte == 122 and not group_size:
            out += b"\0\0\0\0"
            continue
        if not 33 <= byte <= 117:
            raise QueryError(f"illegal ascii85 data at input byte {at}")
        value = value * 85 + byte - 33
        group_size += 1
        if group_size == 5:
            out += (value & 0xFFFFFFFF).to_bytes(4, "big")
            value = group_size = 0
    if group_size == 1:
        raise QueryError("illegal ascii85 data at input byte 1")
    if group_size:
        for _ in range(5 - group_size):
            value = value * 85 + 84
        out += (value & 0xFFFFFFFF).to_bytes(4, "big")[: group_size - 1]
    return bytes(out)


_Z85: Final = (
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
)
_B85: Final = (
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
)
_TO_Z85: Final = bytes.maketrans(_B85, _Z85)


def _encode_z85(raw: bytes) -> bytes:
    if len(raw) % 4:
        raise QueryError("z85: wrongly aligned input data")
    return base64.b85encode(raw).translate(_TO_Z85)


def _decode_z85(raw: bytes) -> bytes:
    if len(raw) % 5:
        raise QueryError("z85: wrongly aligned input data")
    bad = next((byte for byte in raw if byte not in _Z85), None)
    if bad is not None:
        raise QueryError(f"z85: invalid input byte: {_describe_byte(bad)}")
    out = bytearray()
    for at in range(0, len(raw), 5):
        value = 0
        for byte in raw[at : at + 5]:
            value = value * 85 + _Z85.index(byte)
        out += (value & 0xFFFFFFFF).to_bytes(4, "big")
    return bytes(out)


ENCODERS: Final[dict[str, Codec]] = {
    "base64": base64.b64encode,
    "base64url": base64.urlsafe_b64encode,
    "base64rawurl": lambda raw: base64.urlsafe_b64encode(raw).rstrip(b"="),
    "hex": binascii.hexlify,
    "ascii85": base64.a85encode,
    "z85": _encode_z85,
}
DECODERS: Final[dict[str, Codec]] = {
    "base64": _make_base64_decoder(b"+/", True),
    "base64url": _make_base64_decoder(b"-_", True),
    "base64rawurl": _make_base64_decoder(b"-_", False),
    "hex": _decode_hex,
    "ascii85": _decode_ascii85,
    "z85": _decode_z85,
}
