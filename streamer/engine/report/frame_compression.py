"""Compression of large frames on their way from a worker through Spark's JVM to the driver.

The JVM holds all frames of a micro-batch, several times over, until they are delivered. Lines of
JSON that a window of many keys becomes take a quarter of their size or less.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from streamer.engine.report.result_frame import Frame

_MIN_BYTES: Final = 128 << 10
_COMPRESSED_MARK: Final = 100
"""Is added to the kind of a compressed frame; all kinds are below it."""

_SIZE_BYTES: Final = 8


def compress_frames(made: Iterable[Any]) -> Iterator[Any]:
    """Compress frames that are large; pass on all else, such as rows for other shards."""
    for one in made:
        if isinstance(one, Frame) and len(one.body) >= _MIN_BYTES:
            body = _make_codec().compress(one.body, asbytes=True)
            size = len(one.body).to_bytes(_SIZE_BYTES, "little")
            yield one._replace(kind=one.kind + _COMPRESSED_MARK, body=size + body)
        else:
            yield one


def expand_frame(frame: Frame) -> Frame:
    """Return a frame as it was before it was compressed, if it was."""
    if frame.kind < _COMPRESSED_MARK:
        return frame
    size = int.from_bytes(frame.body[:_SIZE_BYTES], "little")
    body = _make_codec().decompress(memoryview(frame.body)[_SIZE_BYTES:], size, asbytes=True)
    return frame._replace(kind=frame.kind - _COMPRESSED_MARK, body=body)


def _make_codec() -> Any:
    # Imported here: not every command that knows frames has workers.
    import pyarrow as pa

    return pa.Codec("zstd", compression_level=1)
