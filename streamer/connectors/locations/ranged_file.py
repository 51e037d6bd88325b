"""An object as a file that can be read anywhere, by requests for ranges."""

from __future__ import annotations

import io
from contextlib import closing
from typing import Final

from streamer.connectors.objects.object_stream import ObjectStream
from streamer.connectors.objects.store import ObjectStore
from streamer.core.execution import Execution

_BLOCK_BYTES: Final = 1 << 20
"""Bytes of a request, at least."""


class RangedFile(io.RawIOBase):
    """The bytes of one version of an object: that which the first request finds."""

    def __init__(self, store: ObjectStore, key: str, ex: Execution, version: str = "") -> None:
        """Take the object; its size is requested.

        Raises:
            StoreError: it cannot be read.
        """
        self._store, self._key, self._ex = store, key, ex
        stream = ObjectStream(store, key, ex, version=version)
        with closing(stream):
            self._size, self._version = stream.info.size, stream.info.version
        self._position = 0

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def seekable(self) -> bool:
        """Return that it can be read anywhere."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place; return it."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(start + offset, 0)
        return self._position

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Read into a buffer; return how many bytes, none at the end.

        Raises:
            StoreError: they cannot be read.
        """
        end = min(self._position + len(buffer), self._size)
        if end <= self._position:
            return 0
        stream = ObjectStream(
            self._store,
            self._key,
            self._ex,
            start=self._position,
            end=end,
            version=self._version,
        )
        with closing(stream):
            data = stream.read(end - self._position)
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)


def open_ranged(
    store: ObjectStore, key: str, ex: Execution, version: str = ""
) -> io.BufferedReader:
    """Return an object as a buffered file; see `RangedFile`."""
    return io.BufferedReader(RangedFile(store, key, ex, version), _BLOCK_BYTES)
