"""The bytes of an object as a stream that may skip, and that goes on after a broken connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from streamer.connectors.objects.store import (
    ClosableStream,
    ObjectInfo,
    ObjectStore,
    StoreUnavailableError,
)
from streamer.core.durations import SECOND
from streamer.core.execution import Execution
from streamer.sdk.backoff import Backoff

T = TypeVar("T")

_RETRY: Final = Backoff(SECOND // 2, 5 * SECOND, 20 * SECOND)
"""The pauses before a read is repeated; afterwards the task fails, and is repeated as a whole."""


class ObjectStream:
    """A part of an object: opened at the first read, and again where a connection breaks.

    All bytes are of one version of the object: that which is given, else that which the first
    request has opened.
    """

    def __init__(
        self,
        store: ObjectStore,
        key: str,
        ex: Execution,
        *,
        start: int = 0,
        end: int | None = None,
        version: str = "",
    ) -> None:
        """Take the object, and the range of its bytes; see `ObjectStore.open`."""
        self._store = store
        self._key = key
        self._ex = ex
        self._position = start
        self._end = end
        self._version = version
        self._stream: ClosableStream | None = None
        self._info: ObjectInfo | None = None

    @property
    def info(self) -> ObjectInfo:
        """The object; it is opened for that."""
        if self._info is None:
            self._repeat(self._connect)
        assert self._info is not None
        return self._info

    def seekable(self) -> bool:
        """Return that bytes can be skipped without reading them."""
        return True

    def seek(self, offset: int, whence: int = 1) -> int:
        """Skip bytes, so many from here on; return the place of the next byte."""
        if whence != 1 or offset < 0:
            raise OSError("a stream of an object goes forward only")
        if offset:
            self.close()
            self._position += offset
        return self._position

    def read(self, size: int, /) -> bytes:
        """Return at most so many bytes, none at the end; see `ByteStream`.

        Raises:
            StoreError: the object cannot be read.
        """
        if size <= 0 or (self._end is not None and self._position >= self._end):
            return b""
        data = self._repeat(lambda: self._connect().read(size))
        self._position += len(data)
        return data

    def _connect(self) -> ClosableStream:
        if self._stream is None:
            opened = self._store.open(self._key, self._position, self._end, self._version)
            self._info, self._stream = opened.info, opened.stream
            self._version = self._version or opened.info.version
        return self._stream

    def _repeat(self, attempt: Callable[[], T]) -> T:
        pauses: Iterator[int] | None = None
        while True:
            try:
                return attempt()
            except StoreUnavailableError:
                self.close()
                pauses = pauses or _RETRY.pauses(self._ex.elapsed)
                pause = next(pauses, None)
                if pause is None:
                    raise
                self._ex.sleep(pause)

    def close(self) -> None:
        """Free the connection; the next read makes another one."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()
