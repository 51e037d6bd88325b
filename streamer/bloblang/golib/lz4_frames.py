"""LZ4 frames, as liblz4 writes and reads them, with the levels and errors of Benthos's library.

Source: the LZ4 frame format; pierrec/lz4 for the levels and the texts.
"""

from __future__ import annotations

from typing import Final

from streamer.bloblang.errors import QueryError
from streamer.bloblang.limits import decompress_stream

_MAGIC: Final = b"\x04\x22\x4d\x18"


def compress(data: bytes, level: int) -> bytes:
    """Return data as an LZ4 frame of independent blocks, with a checksum of the content.

    Args:
        data: what to compress.
        level: 1 to 9 search longer; anything below is fast.

    Raises:
        QueryError: there is no such level.
    """
    import lz4.frame

    if level > 9:
        raise QueryError(f"lz4: invalid compression level: {1 << (8 + level)}")
    frame: bytes = lz4.frame.compress(
        data,
        compression_level=level + 2 if level > 0 else -1,
        block_size=lz4.frame.BLOCKSIZE_MAX4MB,
        block_linked=False,
        content_checksum=True,
        store_size=False,
    )
    return frame


def decompress(data: bytes) -> bytes:
    """Return what one LZ4 frame after another holds.

    Raises:
        QueryError: the data are no such frames.
    """
    import lz4.frame

    chunks: list[bytes] = []
    at = size = 0
    while at < len(data):
        if len(data) - at < 4:
            raise QueryError("unexpected EOF")
        if not data.startswith(_MAGIC, at):
            raise QueryError("lz4: bad magic number")
        stream = lz4.frame.LZ4FrameDecompressor()
        try:
            more, at = decompress_stream(stream, data, at, size)
        except RuntimeError as e:
            text = str(e).rpartition("ERROR_")[2]
            known = {"contentChecksum_invalid": "invalid frame checksum"}
            raise QueryError(f"lz4: {known.get(text, text)}") from None
        if not stream.eof:
            raise QueryError("unexpected EOF")
        chunks.append(more)
        size += len(more)
        at -= len(stream.unused_data or b"")
    return b"".join(chunks)
