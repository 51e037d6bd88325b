"""LZ4 frames as Benthos's library writes them: independent blocks, a checksum of the content.

Source: the LZ4 frame and block formats; pierrec/lz4 for the choice of matches in small payloads,
which come out byte for byte as from Benthos. Larger ones are left to liblz4.
"""

from __future__ import annotations

import struct
from typing import Final

from streamer.bloblang.errors import QueryError
from streamer.bloblang.limits import unpacked

_MAGIC: Final = b"\x04\x22\x4d\x18"
_HEAD: Final = _MAGIC + b"\x64\x70\xb9"
_SMALL: Final = 4096
_LAST_LITERALS: Final = 14
_UNCOMPRESSED: Final = 1 << 31


def compress(data: bytes, level: int) -> bytes:
    """Return data as an LZ4 frame.

    Args:
        data: what to compress.
        level: 1 to 9 search longer; anything below is fast.

    Raises:
        QueryError: there is no such level.
    """
    import lz4.frame

    if level > 9:
        raise QueryError(f"lz4: invalid compression level: {1 << (8 + level)}")
    whole: bytes = lz4.frame.compress(
        data,
        compression_level=level + 2 if level > 0 else -1,
        block_size=lz4.frame.BLOCKSIZE_MAX4MB,
        block_linked=False,
        content_checksum=True,
        store_size=False,
    )
    if level > 0 or not 0 < len(data) <= _SMALL:
        return whole if data else _HEAD + whole[-8:]
    block = _block(data)
    size = len(block)
    if not 0 < size < len(data):
        block, size = data, len(data) | _UNCOMPRESSED
    return _HEAD + struct.pack("<I", size) + block + whole[-8:]


def _block(data: bytes) -> bytes:
    """Return a payload as one LZ4 block: matches of at least 4 bytes, found by 6 bytes each."""
    out = bytearray()
    seen: dict[bytes, int] = {}
    end = len(data) - _LAST_LITERALS
    at = anchor = 0
    while at < end:
        found = _match(data, seen, at)
        if found is None:
            at += 2 + 2 + (at + 2 - anchor >> 7)
            continue
        at, back = found
        while at > anchor and at - back > 0 and data[at - 1] == data[at - back - 1]:
            at -= 1
        stop = _end_of_match(data, at + 4, back, end)
        _sequence(out, data[anchor:at], stop - at - 4, back)
        at = anchor = stop
        if at < end:
            seen[data[at - 2 : at + 4]] = at - 2
    _sequence(out, data[anchor:], None, 0)
    return bytes(out)


def _end_of_match(data: bytes, at: int, back: int, end: int) -> int:
    """Return where a match ends; it is followed by whole words only, as the library does."""
    while at + 8 <= end:
        for i in range(at, at + 8):
            if data[i] != data[i - back]:
                return i
        at += 8
    return at


def _match(data: bytes, seen: dict[bytes, int], at: int) -> tuple[int, int] | None:
    """Return where a match begins at or within two bytes behind a place, and how far back it is."""
    keys = [data[i : i + 6] for i in range(at, at + 3)]
    places = [seen.get(keys[0], 0), seen.get(keys[1], 0)]
    seen[keys[0]], seen[keys[1]] = at, at + 1
    for shift in range(3):
        here = at + shift
        if shift == 2:
            places.append(seen.get(keys[2], 0))
            seen[keys[2]] = here
        place = places[shift]
        if 0 <= place < here and data[place : place + 4] == data[here : here + 4]:
            return here, here - place
    return None


def _sequence(out: bytearray, literals: bytes, more: int | None, back: int) -> None:
    """Add literals, and a match of `more` + 4 bytes from `back` bytes ago unless it is the end."""
    count = len(literals)
    out.append(min(count, 15) << 4 | min(more or 0, 15))
    if count >= 15:
        _length(out, count - 15)
    out += literals
    if more is not None:
        out += struct.pack("<H", back)
        if more >= 15:
            _length(out, more - 15)


def _length(out: bytearray, rest: int) -> None:
    out += b"\xff" * (rest // 255)
    out.append(rest % 255)


def decompress(data: bytes) -> bytes:
    """Return what one LZ4 frame after another holds.

    Raises:
        QueryError: the data are no such frames.
    """
    import lz4.frame

    found: list[bytes] = []
    at = size = 0
    while at < len(data):
        if len(data) - at < 4:
            raise QueryError("unexpected EOF")
        if not data.startswith(_MAGIC, at):
            raise QueryError("lz4: bad magic number")
        stream = lz4.frame.LZ4FrameDecompressor()
        try:
            more, at = unpacked(stream, data, at, size)
        except RuntimeError as e:
            text = str(e).rpartition("ERROR_")[2]
            known = {"contentChecksum_invalid": "invalid frame checksum"}
            raise QueryError(f"lz4: {known.get(text, text)}") from None
        if not stream.eof:
            raise QueryError("unexpected EOF")
        found.append(more)
        size += len(more)
        at -= len(stream.unused_data or b"")
    return b"".join(found)
