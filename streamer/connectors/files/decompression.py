"""Streams of bytes unpacked while they are read, without holding more than a little of them.

What each format takes and refuses is what Go's libraries do in Benthos: gzip files, bzip2 streams
and LZ4 and zstd frames may follow one another; what stands behind a zlib or DEFLATE stream is not
looked at; snappy is the framed format.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from streamer.sdk.input.scanning import BLOCK_BYTES, ByteStream, PrefixedStream, ScanError

_UNEXPECTED_EOF: Final = "unexpected EOF"


class _Decompressor(Protocol):
    """One stream of a format; as in `bz2`, `lz4.frame` and `compression.zstd`."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    @property
    def needs_input(self) -> bool: ...

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _ZlibDecompressor:
    """`zlib` with the same methods."""

    def __init__(self, wbits: int) -> None:
        self._stream = zlib.decompressobj(wbits)
        self._is_full = False

    @property
    def eof(self) -> bool:
        return self._stream.eof

    @property
    def unused_data(self) -> bytes:
        return self._stream.unused_data

    @property
    def needs_input(self) -> bool:
        return not self._is_full and not self._stream.unconsumed_tail

    def decompress(self, data: bytes, max_length: int) -> bytes:
        data_out = self._stream.decompress(self._stream.unconsumed_tail + data, max_length)
        self._is_full = len(data_out) == max_length
        return data_out


class _DecompressedStream:
    """The content of packed streams, one after another."""

    def __init__(
        self, stream: ByteStream, make: Callable[[], _Decompressor], is_multi_stream: bool
    ) -> None:
        self._stream = stream
        self._make = make
        self._is_multi_stream = is_multi_stream
        self._unpacker: _Decompressor | None = make()
        self._has_begun = False

    def read(self, size: int, /) -> bytes:
        while self._unpacker is not None:
            unpacker, data = self._unpacker, b""
            if unpacker.needs_input and not unpacker.eof:
                data = self._stream.read(BLOCK_BYTES)
                if not data:
                    raise ScanError(_UNEXPECTED_EOF if self._has_begun else "EOF")
                self._has_begun = True
            data_out = b"" if unpacker.eof else unpacker.decompress(data, size)
            if unpacker.eof:
                self._next(unpacker)
            if data_out:
                return data_out
        return b""

    def _next(self, unpacker: _Decompressor) -> None:
        """Begin the stream that follows, if one does."""
        self._unpacker = None
        if not self._is_multi_stream:
            return
        rest = unpacker.unused_data or self._stream.read(BLOCK_BYTES)
        if rest:
            self._unpacker = self._make()
            self._stream = PrefixedStream(rest, self._stream)


class _SnappyFrames:
    """Framed snappy: each chunk is unpacked, and its checksum looked at, by itself."""

    _HEAD: Final = b"\xff\x06\x00\x00sNaPpY"

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._buffer = b""
        self._has_begun = False

    def read(self, size: int, /) -> bytes:
        while not self._buffer:
            head = self._read_exactly(4, at_end=True)
            if not head:
                return b""
            body = self._read_exactly(int.from_bytes(head[1:], "little"))
            if not self._has_begun and head + body != self._HEAD:
                raise ScanError("snappy: corrupt input")
            self._has_begun = True
            if head[0] in (0, 1):
                self._buffer = _decompress_chunk(self._HEAD + head + body)
            elif head[0] < 0x80:
                raise ScanError("snappy: unsupported input")
        block, self._buffer = self._buffer[:size], self._buffer[size:]
        return block

    def _read_exactly(self, size: int, at_end: bool = False) -> bytes:
        data = b""
        while len(data) < size:
            more = self._stream.read(size - len(data))
            if not more:
                if at_end and not data:
                    return b""
                raise ScanError("snappy: corrupt input")
            data += more
        return data


def _decompress_chunk(framed: bytes) -> bytes:
    import cramjam

    try:
        return bytes(cramjam.snappy.decompress(framed))
    except cramjam.DecompressionError:
        raise ScanError("snappy: corrupt input") from None


class _ErrorMappingStream:
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


def _open_zlib(wbits: int, several: bool = False) -> Callable[[ByteStream], ByteStream]:
    return lambda stream: _ErrorMappingStream(
        _DecompressedStream(stream, lambda: _ZlibDecompressor(wbits), several),
        {-15: "flate", 15: "zlib", 31: "gzip"}[wbits],
        (zlib.error,),
    )


def _open_bzip2(stream: ByteStream) -> ByteStream:
    import bz2

    return _ErrorMappingStream(
        _DecompressedStream(stream, bz2.BZ2Decompressor, True), "bzip2", (OSError, ValueError)
    )


def _open_lz4(stream: ByteStream) -> ByteStream:
    import lz4.frame

    made = _DecompressedStream(stream, lz4.frame.LZ4FrameDecompressor, True)
    return _ErrorMappingStream(made, "lz4", (RuntimeError,))


def _open_zstd(stream: ByteStream) -> ByteStream:
    from streamer.core import zstd

    made = _DecompressedStream(stream, zstd.ZstdDecompressor, True)
    return _ErrorMappingStream(made, "zstd", (zstd.ZstdError,), zstd.error_text)


_FORMATS: Final[Mapping[str, Callable[[ByteStream], ByteStream]]] = {
    "bzip2": _open_bzip2,
    "flate": _open_zlib(-15),
    "gzip": _open_zlib(31, several=True),
    "lz4": _open_lz4,
    "pgzip": _open_zlib(31, several=True),
    "snappy": _SnappyFrames,
    "zlib": _open_zlib(15),
    "zstd": _open_zstd,
}

ALGORITHMS: Final = tuple(_FORMATS)
"""The names of the formats."""


def decompress_stream(algorithm: str, stream: ByteStream) -> ByteStream:
    """Return what a packed stream holds, as a stream.

    Args:
        algorithm: one of `ALGORITHMS`.
        stream: is read piece by piece.

    Returns:
        A stream whose `read` raises a ScanError when the bytes are not of the format.
    """
    return _FORMATS[algorithm](stream)
