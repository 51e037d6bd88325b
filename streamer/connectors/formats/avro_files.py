"""Avro's object container files: a header with the schema, and blocks of values, bit by bit."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import cramjam

from streamer.bloblang.limits import check_elements
from streamer.core import zstd
from streamer.core.limits import current_limits
from streamer.sdk.input.scanning import BLOCK_BYTES, ByteStream, ScanError

_MAGIC: Final = b"Obj\x01"
_SYNC_BYTES: Final = 16
_MAX_HEADER_BYTES: Final = 16 << 20
_MAX_LONG_BYTES: Final = 10
_CHECKSUM_BYTES: Final = 4


class _Decompressor:
    """Unpacks a block whole, and refuses one that is larger than `limits.bytes`."""

    def __init__(self, unpack: Callable[[bytes, int], bytes]) -> None:
        self._unpack = unpack

    def __call__(self, data: bytes) -> bytes:
        most = current_limits().bytes
        made = self._unpack(data, most + 1)
        if len(made) > most:
            raise ScanError(f"a block has more than {most:,} bytes, which limits.bytes allows")
        return made


def _unpack_snappy(data: bytes, most: int) -> bytes:
    raw = data[:-_CHECKSUM_BYTES]
    if cramjam.snappy.decompress_raw_len(raw) > most:
        return bytes(most)
    made = bytes(cramjam.snappy.decompress_raw(raw))
    if zlib.crc32(made).to_bytes(_CHECKSUM_BYTES) != data[-_CHECKSUM_BYTES:]:
        raise ValueError("the check sum of a block is wrong")
    return made


_CODECS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "null": _Decompressor(lambda data, most: data),
    "deflate": _Decompressor(lambda data, most: zlib.decompressobj(-15).decompress(data, most)),
    "snappy": _Decompressor(_unpack_snappy),
    "bzip2": _Decompressor(lambda data, most: bz2.BZ2Decompressor().decompress(data, most)),
    "xz": _Decompressor(lambda data, most: lzma.LZMADecompressor().decompress(data, most)),
    "zstandard": _Decompressor(lambda data, most: zstd.ZstdDecompressor().decompress(data, most)),
}


@dataclass(frozen=True, slots=True)
class AvroBlock:
    """Values of a container file.

    Attributes:
        begin: bytes of the file before it.
        end: bytes of the file up to its end.
        count: its values.
        data: the values, one behind the other.
    """

    begin: int
    end: int
    count: int
    data: bytes


class AvroFileReader:
    """Reads a container file from its beginning, a block at a time.

    Attributes:
        schema: the text of the schema.
    """

    def __init__(self, stream: ByteStream) -> None:
        """Read the header.

        Raises:
            ScanError: it is none, or a codec that is not known packs the blocks.
        """
        self._stream = stream
        self._data = b""
        self._position = 0
        if self._take(len(_MAGIC)) != _MAGIC:
            raise ScanError("not an Avro container file: it does not begin with Obj and 1")
        header = self._read_metadata()
        self.schema = header.get("avro.schema", b"").decode(errors="replace")
        codec = header.get("avro.codec", b"null").decode(errors="replace") or "null"
        if codec not in _CODECS:
            raise ScanError(f"codec {codec!r} is not known; known are {', '.join(_CODECS)}")
        self._decompress = _CODECS[codec]
        self._sync = self._take(_SYNC_BYTES)

    def read_blocks(self, since: int = 0) -> Iterator[AvroBlock]:
        """Return the blocks from a position on.

        Args:
            since: where a block begins; 0 for the first one.

        Raises:
            ScanError: the file is damaged or cut short from here on.
        """
        while self._position < since:
            self._skip(since - self._position)
        while self._fill(1):
            begin = self._position
            count, size = self._read_long(), self._read_long()
            if count < 0 or size < 0 or size > current_limits().bytes:
                raise ScanError(
                    f"byte {begin}: a block of {size:,} bytes; limits.bytes allows "
                    f"{current_limits().bytes:,}"
                )
            packed = self._take(size)
            if self._take(_SYNC_BYTES) != self._sync:
                raise ScanError(f"byte {begin}: the mark at the end of a block is another one")
            try:
                data = self._decompress(packed)
            except ScanError:
                raise
            except Exception as e:  # the libraries raise all kinds
                raise ScanError(f"byte {begin}: a block cannot be unpacked: {e}") from None
            if count > len(data):
                # Values without bytes, of which any number may be claimed.
                check_elements(count, "a block")
            yield AvroBlock(begin, self._position, count, data)

    def _read_metadata(self) -> dict[str, bytes]:
        metadata: dict[str, bytes] = {}
        while count := self._read_long():
            if count < 0:
                count = -count
                self._read_long()
            for _ in range(count):
                name = self._read_bytes().decode(errors="replace")
                metadata[name] = self._read_bytes()
                if self._position > _MAX_HEADER_BYTES:
                    raise ScanError(f"the header has more than {_MAX_HEADER_BYTES:,} bytes")
        return metadata

    def _read_bytes(self) -> bytes:
        size = self._read_long()
        if not 0 <= size <= _MAX_HEADER_BYTES:
            raise ScanError(f"the header has {size:,} bytes at once; expected fewer")
        return self._take(size)

    def _read_long(self) -> int:
        value = 0
        for number in range(_MAX_LONG_BYTES):
            (byte,) = self._take(1)
            value |= (byte & 0x7F) << (7 * number)
            if not byte & 0x80:
                return (value >> 1) ^ -(value & 1)
        raise ScanError(f"byte {self._position}: a number has no end")

    def _fill(self, size: int) -> bool:
        """Read until so many bytes are there; return whether they are."""
        if len(self._data) >= size:
            return True
        parts, there = [self._data], len(self._data)
        while there < size:
            part = self._stream.read(max(BLOCK_BYTES, size - there))
            if not part:
                break
            parts.append(part)
            there += len(part)
        self._data = b"".join(parts)
        return there >= size

    def _take(self, size: int) -> bytes:
        if not self._fill(size):
            raise ScanError("unexpected EOF")
        taken, self._data = self._data[:size], self._data[size:]
        self._position += size
        return taken

    def _skip(self, size: int) -> None:
        self._take(min(size, BLOCK_BYTES))
