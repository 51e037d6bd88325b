"""Streams of bytes unpacked while they are read, without holding more than a little of them.

What each format takes and refuses is what Go's libraries do in Benthos: gzip files, bzip2 streams
and LZ4 and zstd frames may follow one another; what stands behind a zlib or DEFLATE stream is not
looked at; snappy is the framed format.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from streamer.source.scanning import BLOCK, ByteStream, ScanError

_CUT: Final = "unexpected EOF"


class _Unpacker(Protocol):
    """One stream of a format; as in `bz2`, `lz4.frame` and `compression.zstd`."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    @property
    def needs_input(self) -> bool: ...

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Inflating:
    """`zlib` with the same methods."""

    def __init__(self, wbits: int) -> None:
        self._stream = zlib.decompressobj(wbits)
        self._full = False

    @property
    def eof(self) -> bool:
        return self._stream.eof

    @property
    def unused_data(self) -> bytes:
        return self._stream.unused_data

    @property
    def needs_input(self) -> bool:
        return not self._full and not self._stream.unconsumed_tail

    def decompress(self, data: bytes, max_length: int) -> bytes:
        found = self._stream.decompress(self._stream.unconsumed_tail + data, max_length)
        self._full = len(found) == max_length
        return found


class _Unpacked:
    """What comes out of one packed stream after another."""

    def __init__(self, stream: ByteStream, make: Callable[[], _Unpacker], several: bool) -> None:
        self._stream = stream
        self._make = make
        self._several = several
        self._unpacker: _Unpacker | None = make()
        self._begun = False

    def read(self, size: int, /) -> bytes:
        while self._unpacker is not None:
            unpacker, data = self._unpacker, b""
            if unpacker.needs_input and not unpacker.eof:
                data = self._stream.read(BLOCK)
                if not data:
                    raise ScanError(_CUT if self._begun else "EOF")
                self._begun = True
            found = b"" if unpacker.eof else unpacker.decompress(data, size)
            if unpacker.eof:
                self._next(unpacker)
            if found:
                return found
        return b""

    def _next(self, unpacker: _Unpacker) -> None:
        """Begin the stream that follows, if one does."""
        self._unpacker = None
        if not self._several:
            return
        rest = unpacker.unused_data or self._stream.read(BLOCK)
        if rest:
            self._unpacker = self._make()
            self._stream = _Before(rest, self._stream)


class _Before:
    """Bytes that have been read too early, and the stream behind them."""

    def __init__(self, data: bytes, stream: ByteStream) -> None:
        self._data = data
        self._stream = stream

    def read(self, size: int, /) -> bytes:
        if not self._data:
            return self._stream.read(size)
        found, self._data = self._data[:size], self._data[size:]
        return found


class _Unframed:
    """Framed snappy: each chunk is unpacked, and its checksum looked at, by itself."""

    _HEAD: Final = b"\xff\x06\x00\x00sNaPpY"

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._found = b""
        self._begun = False

    def read(self, size: int, /) -> bytes:
        while not self._found:
            head = self._exactly(4, at_end=True)
            if not head:
                return b""
            body = self._exactly(int.from_bytes(head[1:], "little"))
            if not self._begun and head + body != self._HEAD:
                raise ScanError("snappy: corrupt input")
            self._begun = True
            if head[0] in (0, 1):
                self._found = _chunk(self._HEAD + head + body)
            elif head[0] < 0x80:
                raise ScanError("snappy: unsupported input")
        found, self._found = self._found[:size], self._found[size:]
        return found

    def _exactly(self, size: int, at_end: bool = False) -> bytes:
        held = b""
        while len(held) < size:
            more = self._stream.read(size - len(held))
            if not more:
                if at_end and not held:
                    return b""
                raise ScanError("snappy: corrupt input")
            held += more
        return held


def _chunk(framed: bytes) -> bytes:
    import cramjam

    try:
        return bytes(cramjam.snappy.decompress(framed))
    except cramjam.DecompressionError:
        raise ScanError("snappy: corrupt input") from None


class _Failing:
    """A stream whose errors are those of the format's library."""

    def __init__(
        self,
        stream: ByteStream,
        algorithm: str,
        errors: tuple[type[Exception], ...],
        reason: Callable[[Exception], str] = str,
    ) -> None:
        self._stream = stream
        self._algorithm = algorithm
        self._errors = errors
        self._reason = reason

    def read(self, size: int, /) -> bytes:
        try:
            return self._stream.read(size)
        except self._errors as error:
            raise ScanError(f"{self._algorithm}: corrupt input: {self._reason(error)}") from None


def _inflated(wbits: int, several: bool = False) -> Callable[[ByteStream], ByteStream]:
    return lambda stream: _Failing(
        _Unpacked(stream, lambda: _Inflating(wbits), several),
        {-15: "flate", 15: "zlib", 31: "gzip"}[wbits],
        (zlib.error,),
    )


def _bzip2(stream: ByteStream) -> ByteStream:
    import bz2

    return _Failing(_Unpacked(stream, bz2.BZ2Decompressor, True), "bzip2", (OSError, ValueError))


def _lz4(stream: ByteStream) -> ByteStream:
    import lz4.frame

    made = _Unpacked(stream, lz4.frame.LZ4FrameDecompressor, True)
    return _Failing(made, "lz4", (RuntimeError,))


def _zstd(stream: ByteStream) -> ByteStream:
    from streamer import zstd

    made = _Unpacked(stream, zstd.ZstdDecompressor, True)
    return _Failing(made, "zstd", (zstd.ZstdError,), zstd.reason)


_FORMATS: Final[Mapping[str, Callable[[ByteStream], ByteStream]]] = {
    "bzip2": _bzip2,
    "flate": _inflated(-15),
    "gzip": _inflated(31, several=True),
    "lz4": _lz4,
    "pgzip": _inflated(31, several=True),
    "snappy": _Unframed,
    "zlib": _inflated(15),
    "zstd": _zstd,
}

ALGORITHMS: Final = tuple(_FORMATS)
"""The names of the formats."""


def unpacked(algorithm: str, stream: ByteStream) -> ByteStream:
    """Return what a packed stream holds, as a stream.

    Args:
        algorithm: one of `ALGORITHMS`.
        stream: is read piece by piece.

    Returns:
        A stream whose `read` raises a ScanError when the bytes are not of the format.
    """
    return _FORMATS[algorithm](stream)
