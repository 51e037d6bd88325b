"""DEFLATE and its two wrappings, gzip and zlib, with the levels and errors of Benthos's library.

Source: klauspost/compress, as Benthos 4.76 uses it, for the levels and the texts. The bytes are
zlib's, and differ from Benthos's; what they decompress to does not.
"""

from __future__ import annotations

import zlib
from typing import Final

from streamer.bloblang.errors import QueryError
from streamer.bloblang.limits import decompress_stream

_RAW, _ZLIB, _GZIP = -zlib.MAX_WBITS, zlib.MAX_WBITS, zlib.MAX_WBITS + 16
# zlib gets and clears 384 KB of tables for each stream, which can take twenty times as long as a
# small one itself; with 48 KB small ones come out as long.
_SMALL_BYTES: Final = 4096
_SMALL_WINDOW: Final = {_RAW: -12, _ZLIB: 12, _GZIP: 12 + 16}


def _deflate(data: bytes, level: int, wbits: int) -> bytes:
    """Return data as one stream.

    Args:
        data: what to compress.
        level: -1 for the default, -2 for Huffman codes alone, 0 to 9.
        wbits: which wrapping it has.
    """
    strategy = zlib.Z_HUFFMAN_ONLY if level == -2 else zlib.Z_DEFAULT_STRATEGY
    memory = 9
    if len(data) <= _SMALL_BYTES:
        wbits, memory = _SMALL_WINDOW[wbits], 6
    compressor = zlib.compressobj(max(level, -1), zlib.DEFLATED, wbits, memory, strategy)
    return compressor.compress(data) + compressor.flush()


def compress_gzip(data: bytes, level: int, lowest: int = -3) -> bytes:
    """Return data as a gzip file without a name and a time.

    Args:
        data: what to compress.
        level: `lowest` to 9; -3 is as quick as can be.
        lowest: the lowest level that there is.

    Raises:
        QueryError: there is no such level.
    """
    if not lowest <= level <= 9:
        raise QueryError(f"gzip: invalid compression level: {level}")
    return _deflate(data, 1 if level == -3 else level, _GZIP)


def compress_pgzip(data: bytes, level: int) -> bytes:
    """Return data as a gzip file; Benthos's parallel compressor has no level -3."""
    return compress_gzip(data, level, -2)


def compress_zlib(data: bytes, level: int) -> bytes:
    """Return data as a zlib stream.

    Raises:
        QueryError: there is no such level.
    """
    if not -2 <= level <= 9:
        raise QueryError(f"zlib: invalid compression level: {level}")
    return _deflate(data, level, _ZLIB)


def compress_flate(data: bytes, level: int) -> bytes:
    """Return data as a DEFLATE stream.

    Raises:
        QueryError: there is no such level.
    """
    if not -2 <= level <= 9:
        expected = "want value in range [-2, 9]"
        raise QueryError(f"flate: invalid compression level {level}: {expected}")
    return _deflate(data, level, _RAW)


_TRUNCATED: Final = "unexpected EOF"


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
        output, at = decompress_stream(stream, data, begin, size)
    except zlib.error as e:
        failed = "data check" in str(e) or "length check" in str(e)
        raise QueryError(checked if failed else _corrupt_text(data[begin:], wbits)) from None
    if not stream.eof:
        raise QueryError(_TRUNCATED)
    return output, at - len(stream.unused_data)


def _corrupt_text(data: bytes, wbits: int) -> str:
    """Return how far a stream could be read that ends in an error."""
    stream = zlib.decompressobj(wbits)
    at = 0
    try:
        for at in range(len(data)):
            stream.decompress(data[at : at + 1])
    except zlib.error:
        pass
    # Go counts from behind the wrapping's header.
    return f"flate: corrupt input before offset {at + 1 - {_ZLIB: 2, _GZIP: 10}.get(wbits, 0)}"


def decompress_flate(data: bytes) -> bytes:
    """Return what a DEFLATE stream holds; what comes behind it is not looked at."""
    return _inflate(data, 0, _RAW, "")[0]


def decompress_zlib(data: bytes) -> bytes:
    """Return what a zlib stream holds; what comes behind it is not looked at."""
    if len(data) < 2:
        raise QueryError(_TRUNCATED)
    if data[0] & 15 != 8 or data[0] >> 4 > 7 or int.from_bytes(data[:2], "big") % 31:
        raise QueryError("zlib: invalid header")
    return _inflate(data, 0, _ZLIB, "zlib: invalid checksum")[0]


def decompress_gzip(data: bytes) -> bytes:
    """Return what one gzip file after another holds."""
    if not data:
        raise QueryError("EOF")
    parts = []
    at = size = 0
    while at < len(data):
        if len(data) - at < 10:
            raise QueryError(_TRUNCATED)
        if not data.startswith(b"\x1f\x8b\x08", at):
            raise QueryError("gzip: invalid header")
        part, at = _inflate(data, at, _GZIP, "gzip: invalid checksum", size)
        size += len(part)
        parts.append(part)
    return b"".join(parts)
