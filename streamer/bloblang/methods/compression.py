"""Methods that compress and decompress."""

from __future__ import annotations

import bz2
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

from streamer.bloblang.declare import Example, Param, declare
from streamer.bloblang.errors import ArgumentError, QueryError
from streamer.bloblang.golib import deflate, lz4_frames
from streamer.bloblang.golib.convert import bytes_of, text_of
from streamer.bloblang.limits import check_decompressed_size

_CHUNK_BYTES: Final = 1 << 16
_CATEGORY = "Encoding and Encryption"


def _require_bytes(value: Any) -> bytes:
    return value if type(value) is bytes else bytes_of(text_of(value, "bytes"))


def _compress_snappy(data: bytes, level: int) -> bytes:
    import cramjam

    return bytes(cramjam.snappy.compress_raw(data))


def _decompress_snappy(data: bytes) -> bytes:
    import cramjam

    try:
        check_decompressed_size(cramjam.snappy.decompress_raw_len(data))
        return bytes(cramjam.snappy.decompress_raw(data))
    except cramjam.DecompressionError:
        raise QueryError("s2: corrupt input") from None


# The library that Benthos uses knows four strengths; these are what it says they come to.
_ZSTD_LEVELS: Final = ((3, 1), (6, 3), (10, 7), (1 << 62, 11))


def _compress_zstd(data: bytes, level: int) -> bytes:
    from streamer.core import zstd

    strength = next(real for below, real in _ZSTD_LEVELS if level < below)
    return zstd.compress(data, level=strength)


_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"


def _decompress_zstd(data: bytes) -> bytes:
    from streamer.core import zstd

    if not data:
        return b""
    if data[:4] != _ZSTD_MAGIC and not (0x50 <= data[0] <= 0x5F and data[1:4] == b"\x2a\x4d\x18"):
        raise QueryError("magic number mismatch" if len(data) > 3 else "unexpected EOF")
    chunks: list[bytes] = []
    try:
        for chunk in _decompress_chunks(data, zstd.ZstdDecompressor):
            chunks.append(chunk)
    except EOFError:
        raise QueryError("unexpected EOF") from None
    except zstd.ZstdError as e:
        raise QueryError(f"zstd: {zstd.error_text(e)}") from None
    return b"".join(chunks)


class _Decompressor(Protocol):
    """A decompressor of one stream that gives no more at once than it is asked for."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    @property
    def needs_input(self) -> bool: ...

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


def _decompress_chunks(data: bytes, make: Callable[[], _Decompressor]) -> Iterator[bytes]:
    """Return what one stream after another holds, in pieces of at most `_CHUNK_BYTES` bytes.

    Raises:
        EOFError: a stream is cut off.
        QueryError: there is too much of it; what the decompressor raises goes on.
    """
    at = size = 0
    while at < len(data):
        stream = make()
        while not stream.eof:
            compressed = data[at : at + _CHUNK_BYTES] if stream.needs_input else b""
            if stream.needs_input and not compressed:
                raise EOFError
            at += len(compressed)
            chunk = stream.decompress(compressed, _CHUNK_BYTES)
            size += len(chunk)
            check_decompressed_size(size)
            yield chunk
        at -= len(stream.unused_data)


def _decompress_bzip2_streams(data: bytes) -> bytes:
    chunks: list[bytes] = []
    stream_start = 0

    def make() -> bz2.BZ2Decompressor:
        nonlocal stream_start
        stream_start = len(chunks)
        return bz2.BZ2Decompressor()

    try:
        for chunk in _decompress_chunks(data, make):
            chunks.append(chunk)
    except OSError:
        # What stands behind a stream and is none is not looked at.
        if not chunks or len(chunks) > stream_start:
            raise
    return b"".join(chunks)


def _decompress_bzip2(data: bytes) -> bytes:
    if len(data) < 2:
        raise QueryError("unexpected EOF")
    if data[:2] != b"BZ":
        raise QueryError("bzip2 data invalid: bad magic value")
    try:
        return _decompress_bzip2_streams(data)
    except EOFError:
        raise QueryError("unexpected EOF") from None
    except OSError:
        raise QueryError("bzip2 data invalid: corrupt block") from None


_COMPRESSORS: Final[dict[str, Callable[[bytes, int], bytes]]] = {
    "flate": deflate.compress_flate,
    "gzip": deflate.compress_gzip,
    "lz4": lz4_frames.compress,
    "pgzip": deflate.compress_pgzip,
    "snappy": _compress_snappy,
    "zlib": deflate.compress_zlib,
    "zstd": _compress_zstd,
}
_DECOMPRESSORS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "bzip2": _decompress_bzip2,
    "flate": deflate.decompress_flate,
    "gzip": deflate.decompress_gzip,
    "lz4": lz4_frames.decompress,
    "pgzip": deflate.decompress_gzip,
    "snappy": _decompress_snappy,
    "zlib": deflate.decompress_zlib,
    "zstd": _decompress_zstd,
}


COMPRESSION_ALGORITHMS: Final = tuple(_COMPRESSORS)
DECOMPRESSION_ALGORITHMS: Final = tuple(_DECOMPRESSORS)


def get_compressor(algorithm: str) -> Callable[[bytes, int], bytes]:
    """Return what packs bytes, by a level; -1 is the algorithm's own.

    Raises:
        ArgumentError: there is no such algorithm. What is returned raises a QueryError.
    """
    compressor: Callable[[bytes, int], bytes] = _find_algorithm(_COMPRESSORS, algorithm)
    return compressor


def get_decompressor(algorithm: str) -> Callable[[bytes], bytes]:
    """Return what unpacks bytes.

    Raises:
        ArgumentError: there is no such algorithm. What is returned raises a QueryError.
    """
    decompressor: Callable[[bytes], bytes] = _find_algorithm(_DECOMPRESSORS, algorithm)
    return decompressor


def _find_algorithm(algorithms: dict[str, Any], name: str) -> Any:
    algorithm = algorithms.get(name)
    if algorithm is None:
        raise ArgumentError(f"compression type not recognised: {name}")
    return algorithm


@declare(
    "compress",
    _CATEGORY,
    Param("algorithm", "string"),
    Param("level", "integer", default=-1),
    examples=(
        Example(
            'root = content().compress("gzip").decompress("gzip")',
            '{"a":1}',
            '{"a":1}',
        ),
        Example(
            'root.fits = content().compress("zstd", 9).length() < content().length() / 2',
            '"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"',
            '{"fits":true}',
        ),
    ),
    binds=True,
    own_errors=True,
)
def compress(algorithm: str, level: int) -> Callable[[Any], bytes]:
    """The bytes compressed: flate, gzip, pgzip, lz4, snappy, zlib or zstd, harder by level."""
    run = _find_algorithm(_COMPRESSORS, algorithm)
    return lambda value: run(_require_bytes(value), level)


@declare(
    "decompress",
    _CATEGORY,
    Param("algorithm", "string"),
    examples=(
        Example(
            'root = this.a.decode("base64").decompress("gzip")',
            '{"a":"H4sIAAAJbogA/wACAP3/aGkDAKwqk9gCAAAA"}',
            "hi",
        ),
        Example(
            'root = this.a.compress("lz4").decompress("lz4").string()',
            '{"a":"there and back"}',
            "there and back",
        ),
    ),
    binds=True,
    own_errors=True,
)
def decompress(algorithm: str) -> Callable[[Any], bytes]:
    """The decompressed bytes: formats of `compress`, and bzip2."""
    run = _find_algorithm(_DECOMPRESSORS, algorithm)
    return lambda value: run(_require_bytes(value))
