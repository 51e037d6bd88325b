"""A store of blocks: append-only segments, synced before anybody hears that they are safe.

A pointer file tells readers how far the segments are safe. It is written after the sync and is not
synced itself: after a crash the last segment is read again, and what is whole in it is kept.
"""

from __future__ import annotations

import os
import struct
import threading
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from streamer.disk import make_private_directory, sync_data, sync_directory
from streamer.errors import StreamerError
from streamer.landing.blocks import Record, blocks, bodies, mark_of, pack
from streamer.source.spool import SEGMENT, held_bytes, segment_path, segment_size

CAPACITY: Final = 1 << 30
"""Bytes of segments that the checkpoint does not have yet, above which nothing more is taken."""

_SHORT: Final = 64 << 10
"""Bytes of a segment that are not worth one more, when the disk is full."""

_POINTER: Final = struct.Struct("<QQB")
_SUM: Final = struct.Struct("<I")
NAME: Final = "safe"
"""The pointer's file."""


class StoreFullError(StreamerError):
    """What has landed waits to be read and fills the room that there is; try again later."""


class Safe(NamedTuple):
    """How far a store is safe: segments before `segment` are whole, and `size` bytes of it.

    Attributes:
        segment: number of the newest segment, from 1; 0 before the first.
        size: bytes of it that are on disk.
        closed: nothing more comes.
    """

    segment: int = 0
    size: int = 0
    closed: bool = False


def read_safe(directory: Path) -> Safe:
    """Return how far a store may be read; nothing when there is none, or while it is opened."""
    for _ in range(3):
        try:
            data = (directory / NAME).read_bytes()
        except FileNotFoundError:
            return Safe()
        body = data[: _POINTER.size]
        if len(data) == _POINTER.size + _SUM.size and data[_POINTER.size :] == _sum(body):
            segment, size, closed = _POINTER.unpack(body)
            return Safe(segment, size, bool(closed))
    return Safe()


def _sum(body: bytes) -> bytes:
    return _SUM.pack(zlib.crc32(body))


class Store:
    """The writer of a store. One at a time; the checkpoint's lock sees to that.

    Attributes:
        mark: the newest mark, of this start or an earlier one; None when there is none.
        was_closed: whether an earlier start has closed it.
    """

    def __init__(
        self, directory: Path, capacity: int = CAPACITY, segment_bytes: int = SEGMENT
    ) -> None:
        """Open a store and cut off what an earlier crash left half written.

        Args:
            directory: where it is.
            capacity: bytes of segments above which nothing is taken.
            segment_bytes: after which a new one is begun; less where little may be held.
        """
        self._directory = directory
        self._capacity = capacity
        self._segment_size = min(segment_bytes, segment_size(capacity))
        self._lock = threading.Lock()
        self._closed = False
        self.mark: Any = None
        self.was_closed = read_safe(directory).closed
        make_private_directory(directory)
        # The directory has to be synced too: a file that a power cut takes back keeps no promise.
        self._entries = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        self._pointer = os.open(directory / NAME, os.O_RDWR | os.O_CREAT, 0o600)
        self._number, self._size = 0, 0
        self._file = -1
        self._recover()

    def append(self, records: Sequence[Record], mark: Any = None) -> None:
        """Write records as one block; when this returns they are safe.

        Raises:
            StoreFullError: too much waits to be read.
            OSError: the disk is full or broken. Nothing was taken; it can be given again.
        """
        data = pack(records, mark)
        with self._lock:
            self._roll()
            if held_bytes(self._directory) > self._capacity:
                raise StoreFullError(
                    f"the spool {self._directory} holds more than {self._capacity:,} bytes that "
                    "are still to be read; spark.spool_limit allows no more"
                )
            try:
                self._write(data)
            except OSError:
                self._give_back()
                raise
            if mark is not None:
                self.mark = mark
            self._roll()

    def close(self) -> None:
        """Say that nothing more comes."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._publish()
                sync_data(self._pointer)

    def _give_back(self) -> None:
        """Free what there is to free on a full disk: what is half written, and soon what is read.

        A segment goes when all of it is read, unless it is the last one.
        """
        with suppress(OSError):
            os.ftruncate(self._file, self._size)
            if self._size >= _SHORT:
                self._begin()

    def _roll(self) -> None:
        """Begin a segment when the last one is long enough."""
        if self._size >= self._segment_size:
            # The data is safe; a disk that is full now only makes this segment longer.
            with suppress(OSError):
                self._begin()

    def _write(self, data: bytes) -> None:
        view, at = memoryview(data), self._size
        while view:
            written = os.pwrite(self._file, view, at)
            view, at = view[written:], at + written
        sync_data(self._file)
        self._size = at
        self._publish()

    def _publish(self) -> None:
        body = _POINTER.pack(self._number, self._size, self._closed)
        os.pwrite(self._pointer, body + _sum(body), 0)

    def _begin(self) -> None:
        """Begin a segment, with the mark, since the segments before will be gone."""
        number = self._number + 1
        file = os.open(
            segment_path(self._directory, number), os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600
        )
        before = (self._number, self._size, self._file)
        try:
            sync_directory(self._entries)
            self._number, self._size, self._file = number, 0, file
            self._write(pack((), self.mark))
        except OSError:
            self._number, self._size, self._file = before
            os.close(file)
            raise
        if before[2] >= 0:
            os.close(before[2])

    def _recover(self) -> None:
        numbers = sorted(int(path.stem) for path in self._directory.glob("*.seg"))
        if not numbers:
            self._begin()
            return
        self._number = numbers[-1]
        path = segment_path(self._directory, self._number)
        size, self.mark = _whole(path)
        if self.mark is None and len(numbers) > 1:
            # The last one was begun, and the machine went down before its first block was there.
            self.mark = _whole(segment_path(self._directory, numbers[-2]))[1]
        os.truncate(path, size)
        self._file, self._size = os.open(path, os.O_RDWR), size
        sync_data(self._file)
        self._publish()


def _whole(path: Path) -> tuple[int, Any]:
    """Return how many bytes of a segment are whole blocks, and the last mark in them."""
    data = path.read_bytes()
    mark: Any = None
    whole = 0
    for body in bodies(data):
        found = mark_of(body)
        mark = mark if found is None else found
        whole += 1
    file = os.open(path, os.O_RDONLY)
    try:
        ends = [one.end for one in blocks(file, 0, len(data))]
    finally:
        os.close(file)
    return (ends[whole - 1] if whole else 0), mark
