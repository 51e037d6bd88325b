"""DEFLATE and its two wrappings, gzip and zlib, with the headers and limits of Benthos's library.

Source: klauspost/compress, as Benthos 4.76 uses it. What comes out decompresses to the same; small
payloads, below 128 bytes, that the library stores as they are come out the same byte for byte.
"""

from __future__ import annotations

import heapq
import struct
import zlib
from collections import Counter
from typing import Final

from streamer.bloblang.errors import QueryError
from streamer.bloblang.limits import unpacked

_SMALL: Final = 128
_SURELY_STORED: Final = 32
# The library takes 70 bytes for the tables of a block before it knows them.
_TABLES_BITS: Final = 560
_END: Final = b"\x03\x00"
_FLUSH: Final = b"\x00\x00\x00\xff\xff"


def raw(data: bytes, level: int, flush: bytes = b"") -> bytes:
    """Return data as a DEFLATE stream.

    Args:
        data: what to compress.
        level: -1 for the default, -2 for Huffman codes alone, 0 to 9.
        flush: what comes before the end when the data are stored.
    """
    if level == 0 or (len(data) < _SMALL and level <= 6 and _better_stored(data)):
        blocks = (data[at : at + 0xFFFF] for at in range(0, len(data), 0xFFFF))
        return b"".join(map(_stored, blocks)) + flush + _END
    strategy = zlib.Z_HUFFMAN_ONLY if level == -2 else zlib.Z_DEFAULT_STRATEGY
    made = zlib.compressobj(max(level, -1), zlib.DEFLATED, -15, 9, strategy)
    return made.compress(data) + made.flush()


def _stored(block: bytes) -> bytes:
    return struct.pack("<BHH", 0, len(block), len(block) ^ 0xFFFF) + block


def _better_stored(data: bytes) -> bool:
    """Whether Huffman codes would, by the library's estimate, not make the data smaller."""
    if len(data) <= _SURELY_STORED:
        return True
    weights = [*Counter(data).values(), 1]
    heapq.heapify(weights)
    bits = _TABLES_BITS
    while len(weights) > 1:
        joined = heapq.heappop(weights) + heapq.heappop(weights)
        bits += joined
        heapq.heappush(weights, joined)
    return (len(data) + 5) * 8 <= bits + (bits >> 7)


def gzip(data: bytes, level: int, lowest: int = -3, flush: bytes = b"") -> bytes:
    """Return data as a gzip file without a name; its time is a constant.

    Raises:
        QueryError: there is no such level.
    """
    if not lowest <= level <= 9:
        raise QueryError(f"gzip: invalid compression level: {level}")
    extra = {9: 2, 1: 4}.get(level, 0)
    head = b"\x1f\x8b\x08\x00\x00\x09\x6e\x88" + bytes((extra, 255))
    body = raw(data, 1 if level == -3 else level, flush)
    return head + body + struct.pack("<II", zlib.crc32(data), len(data) & 0xFFFFFFFF)


def pgzip(data: bytes, level: int) -> bytes:
    """Return data as a gzip file, the way the parallel compressor ends its blocks."""
    return gzip(data, level, -2, _FLUSH)


def zlib_(data: bytes, level: int) -> bytes:
    """Return data as a zlib stream.

    Raises:
        QueryError: there is no such level.
    """
    if not -2 <= level <= 9:
        raise QueryError(f"zlib: invalid compression level: {level}")
    mark = 0xDA if level > 6 else 0x9C if level in (-1, 6) else 0x5E if level > 1 else 0x01
    return bytes((0x78, mark)) + raw(data, level) + struct.pack(">I", zlib.adler32(data))


def flate(data: bytes, level: int) -> bytes:
    """Return data as a DEFLATE stream.

    Raises:
        QueryError: there is no such level.
    """
    if not -2 <= level <= 9:
        wanted = "want value in range [-2, 9]"
        raise QueryError(f"flate: invalid compression level {level}: {wanted}")
    return raw(data, level)


_CUT: Final = "unexpected EOF"


def _inflate(data: bytes, begin: int, wbits: int, checked: str, size: int = 0) -> tuple[bytes, int]:
    """Return what the stream that begins at a place holds, and the place behind it.

    Args:
        data: the stream, and what may come before and after it.
        begin: where it begins.
        wbits: which wrapping it has.
        checked: what is said of a wrong checksum.
        size: how much came out of streams before it.
    """
    stream = zlib.decompressobj(wbits)
    try:
        found, at = unpacked(stream, data, begin, size)
    except zlib.error as e:
        failed = "data check" in str(e) or "length check" in str(e)
        raise QueryError(checked if failed else _corrupt(data[begin:], wbits)) from None
    if not stream.eof:
        raise QueryError(_CUT)
    return found, at - len(stream.unused_data)


def _corrupt(data: bytes, wbits: int) -> str:
    """Say up to where a stream that cannot be read could be read."""
    stream = zlib.decompressobj(wbits)
    at = 0
    try:
        for at in range(len(data)):
            stream.decompress(data[at : at + 1])
    except zlib.error:
        pass
    # Go counts from behind the wrapping's header.
    return f"flate: corrupt input before offset {at + 1 - {15: 2, 31: 10}.get(wbits, 0)}"


def unflate(data: bytes) -> bytes:
    """Return what a DEFLATE stream holds; what comes behind it is not looked at."""
    return _inflate(data, 0, -15, "")[0]


def unzlib(data: bytes) -> bytes:
    """Return what a zlib stream holds; what comes behind it is not looked at."""
    if len(data) < 2:
        raise QueryError(_CUT)
    if data[0] & 15 != 8 or data[0] >> 4 > 7 or int.from_bytes(data[:2], "big") % 31:
        raise QueryError("zlib: invalid header")
    return _inflate(data, 0, 15, "zlib: invalid checksum")[0]


def ungzip(data: bytes) -> bytes:
    """Return what one gzip file after another holds."""
    if not data:
        raise QueryError("EOF")
    found = []
    at = size = 0
    while at < len(data):
        if len(data) - at < 10:
            raise QueryError(_CUT)
        if not data.startswith(b"\x1f\x8b\x08", at):
            raise QueryError("gzip: invalid header")
        part, at = _inflate(data, at, 31, "gzip: invalid checksum", size)
        size += len(part)
        found.append(part)
    return b"".join(found)
