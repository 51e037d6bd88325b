"""Methods that compress and decompress."""

from __future__ import annotations

import bz2
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

from streamer.bloblang.declare import Example, Param, declare
from streamer.bloblang.errors import ArgumentError, QueryError, TypeMismatch
from streamer.bloblang.limits import check_unpacked
from streamer.bloblang.runtime import deflate, lz4_frames
from streamer.timestamps import Timestamp

_PIECE: Final = 1 << 16
_CATEGORY = "Encoding and Encryption"


def _bytes(value: Any) -> bytes:
    if type(value) is bytes:
        return value
    if type(value) is str:
        return value.encode("utf-8", "surrogateescape")
    if type(value) is Timestamp:
        return str(value).encode()
    raise TypeMismatch(value, "bytes")


def _snappy(data: bytes, level: int) -> bytes:
    import cramjam

    return bytes(cramjam.snappy.compress_raw(data))


def _unsnappy(data: bytes) -> bytes:
    import cramjam

    try:
        check_unpacked(cramjam.snappy.decompress_raw_len(data))
        return bytes(cramjam.snappy.decompress_raw(data))
    except cramjam.DecompressionError:
        raise QueryError("s2: corrupt input") from None


# The library that Benthos uses knows four strengths; these are what it says they come to.
_ZSTD: Final = ((3, 1), (6, 3), (10, 7), (1 << 62, 11))


def _zstd(data: bytes, level: int) -> bytes:
    from streamer import zstd

    strength = next(real for below, real in _ZSTD if level < below)
    return zstd.compress(data, level=strength)


_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"


def _unzstd(data: bytes) -> bytes:
    from streamer import zstd

    if not data:
        return b""
    if data[:4] != _ZSTD_MAGIC and not (0x50 <= data[0] <= 0x5F and data[1:4] == b"\x2a\x4d\x18"):
        raise QueryError("magic number mismatch" if len(data) > 3 else "unexpected EOF")
    found: list[bytes] = []
    try:
        for piece in _unpacked(data, zstd.ZstdDecompressor):
            found.append(piece)
    except EOFError:
        raise QueryError("unexpected EOF") from None
    except zstd.ZstdError as e:
        raise QueryError(f"zstd: {zstd.reason(e)}") from None
    return b"".join(found)


class _Unpacker(Protocol):
    """A decompressor of one stream that gives no more at once than it is asked for."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    @property
    def needs_input(self) -> bool: ...

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


def _unpacked(data: bytes, make: Callable[[], _Unpacker]) -> Iterator[bytes]:
    """Return what one stream after another holds, in pieces of at most `_PIECE` bytes.

    Raises:
        EOFError: a stream is cut off.
        QueryError: there is too much of it; what the decompressor raises goes on.
    """
    at = size = 0
    while at < len(data):
        stream = make()
        while not stream.eof:
            given = data[at : at + _PIECE] if stream.needs_input else b""
            if stream.needs_input and not given:
                raise EOFError
            at += len(given)
            piece = stream.decompress(given, _PIECE)
            size += len(piece)
            check_unpacked(size)
            yield piece
        at -= len(stream.unused_data)


def _bunzip(data: bytes) -> bytes:
    found: list[bytes] = []
    begun = 0

    def make() -> bz2.BZ2Decompressor:
        nonlocal begun
        begun = len(found)
        return bz2.BZ2Decompressor()

    try:
        for piece in _unpacked(data, make):
            found.append(piece)
    except OSError:
        # What stands behind a stream and is none is not looked at.
        if not found or len(found) > begun:
            raise
    return b"".join(found)


def _unbzip2(data: bytes) -> bytes:
    if len(data) < 2:
        raise QueryError("unexpected EOF")
    if data[:2] != b"BZ":
        raise QueryError("bzip2 data invalid: bad magic value")
    try:
        return _bunzip(data)
    except EOFError:
        raise QueryError("unexpected EOF") from None
    except OSError:
        raise QueryError("bzip2 data invalid: corrupt block") from None


_COMPRESS: Final[dict[str, Callable[[bytes, int], bytes]]] = {
    "flate": deflate.flate,
    "gzip": deflate.gzip,
    "lz4": lz4_frames.compress,
    "pgzip": deflate.pgzip,
    "snappy": _snappy,
    "zlib": deflate.zlib_,
    "zstd": _zstd,
}
_DECOMPRESS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "bzip2": _unbzip2,
    "flate": deflate.unflate,
    "gzip": deflate.ungzip,
    "lz4": lz4_frames.decompress,
    "pgzip": deflate.ungzip,
    "snappy": _unsnappy,
    "zlib": deflate.unzlib,
    "zstd": _unzstd,
}


COMPRESSIONS: Final = tuple(_COMPRESS)
DECOMPRESSIONS: Final = tuple(_DECOMPRESS)


def packer(algorithm: str) -> Callable[[bytes, int], bytes]:
    """Return what packs bytes, by a level; -1 is the algorithm's own.

    Raises:
        ArgumentError: there is no such algorithm. What is returned raises a QueryError.
    """
    found: Callable[[bytes, int], bytes] = _find(_COMPRESS, algorithm)
    return found


def unpacker(algorithm: str) -> Callable[[bytes], bytes]:
    """Return what unpacks bytes.

    Raises:
        ArgumentError: there is no such algorithm. What is returned raises a QueryError.
    """
    found: Callable[[bytes], bytes] = _find(_DECOMPRESS, algorithm)
    return found


def _find(algorithms: dict[str, Any], name: str) -> Any:
    found = algorithms.get(name)
    if found is None:
        raise ArgumentError(f"compression type not recognised: {name}")
    return found


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
    run = _find(_COMPRESS, algorithm)
    return lambda value: run(_bytes(value), level)


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
    """The bytes that were compressed: as `compress`, and bzip2."""
    run = _find(_DECOMPRESS, algorithm)
    return lambda value: run(_bytes(value))
