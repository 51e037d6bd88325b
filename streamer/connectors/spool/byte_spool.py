"""A durable spool: bytes that cannot be asked for again are on disk before they count as taken.

Append-only segments hold the bytes as they came. What is safe is published in one small file that
is replaced at once, so that a reader never sees bytes that a crash could take back. Beside each
segment are the check sums of what was appended (`sums`), by which damage is found.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from streamer.connectors.spool.checksums import (
    checksums_path,
    pack_checksum,
    read_checksums,
    truncate_checksums,
)
from streamer.core.disk import make_private_directory, sync_data, sync_directory
from streamer.core.errors import StreamerError

SEGMENT_BYTES = 64 << 20
"""Bytes after which a new segment is begun."""


class DurablePosition(NamedTuple):
    """The durable part: segments before `segment` are whole, and `size` bytes of it.

    Attributes:
        segment: number of the newest segment, from 1; 0 before the first.
        size: bytes of it that are on disk and end at the end of a line.
        is_closed: the writer's input has ended; nothing more comes.
    """

    segment: int = 0
    size: int = 0
    is_closed: bool = False


DURABLE_FILE = "durable.json"
"""The file that says what is safe."""


def segment_size(capacity: int) -> int:
    """Return the bytes of a segment where a spool may hold so many.

    The segment that is written stays when it is read, so it must be a small part of the whole.
    """
    return min(SEGMENT_BYTES, max(capacity // 16, 1))


def segment_path(directory: Path, number: int) -> Path:
    """Return the path of a segment."""
    return directory / f"{number:010d}.seg"


def read_durable(directory: Path) -> DurablePosition:
    """Return what is safe in a spool; nothing when there is none yet.

    Raises:
        ValueError: it is damaged.
    """
    try:
        document = json.loads((directory / DURABLE_FILE).read_bytes())
    except FileNotFoundError:
        return DurablePosition()
    # Version 0.1 has written no check sum.
    known = isinstance(document, list) and len(document) in (3, 4)
    if not known or document[3:] not in ([], _checksum(document)):
        raise ValueError(f"{directory / DURABLE_FILE} is damaged")
    return DurablePosition(*document[:3])


def _checksum(durable: Sequence[Any]) -> list[int]:
    return [zlib.crc32(json.dumps(durable[:3]).encode())]


def recover_durable(directory: Path) -> DurablePosition:
    """Return what is safe in a spool whose file that says so may be damaged, or gone.

    What was appended is published after its check sum is written, so the sums say it too.

    Raises:
        StreamerError: nothing says it.
    """
    numbers = sorted(int(path.stem) for path in directory.glob("*.seg"))
    try:
        durable = read_durable(directory)
        if durable.segment or not numbers:
            return durable
    except ValueError:
        pass
    newest = max(numbers, default=0)
    sums = read_checksums(directory, newest)
    if sums or not newest or segment_path(directory, newest).stat().st_size == 0:
        return DurablePosition(newest, sums[-1].end if sums else 0)
    raise StreamerError(
        f"the spool is damaged: {directory / DURABLE_FILE} is gone or cannot be read, and no check "
        "sums are there that would say what is safe; restore it from a backup, or delete "
        f"{directory} to go on without what has come in and was not read"
    )


def segment_bytes(directory: Path) -> int:
    """Return how many bytes the segments take on disk."""
    return sum(path.stat().st_size for path in directory.glob("*.seg"))


def delete_segments(directory: Path, before: int) -> None:
    """Delete the segments before the numbered one: the checkpoint has what was in them."""
    for path in (*directory.glob("*.seg"), *directory.glob("*.sum")):
        if int(path.stem) < before:
            path.unlink(missing_ok=True)


class ByteSpoolWriter:
    """Appends bytes to a spool. One writer at a time; the checkpoint's lock sees to that."""

    def __init__(
        self,
        directory: Path,
        delimiter: bytes = b"\n",
        segment_size: int = SEGMENT_BYTES,
        on_append: Callable[[], None] = lambda: None,
    ):
        """Open a spool, cut off what an earlier crash left half written, begin a new segment.

        Args:
            directory: where it is.
            delimiter: ends a line.
            segment_size: bytes after which a new segment is begun.
            on_append: called when there is more to read, or the end, and readers can see it.
        """
        self._directory = directory
        self._on_append = on_append
        self._delimiter = delimiter
        self._segment_size = segment_size
        make_private_directory(directory)
        before = recover_durable(directory)
        last = segment_path(directory, before.segment)
        # One that is shorter is damaged. Whoever reads it finds that.
        if before.segment and last.exists() and last.stat().st_size > before.size:
            os.truncate(last, before.size)
        truncate_checksums(directory, before.segment, before.size)
        for path in (*directory.glob("*.seg"), *directory.glob("*.sum")):
            if int(path.stem) > before.segment:
                path.unlink()
        # The directory has to be synced too: a rename that a power cut undoes is no promise kept.
        self._entries = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        self._number = before.segment
        self._file: BinaryIO | None = None
        self._sums: BinaryIO | None = None
        self._size = 0
        self._tail = b""
        self._unpublished = 0  # Bytes of sums that are not published.
        self._begin_segment()

    def _begin_segment(self) -> None:
        """Begin a segment; on failure the one before goes on."""
        number = self._number + 1
        file = segment_path(self._directory, number).open("wb", buffering=0)
        sums: BinaryIO | None = None
        try:
            sums = checksums_path(self._directory, number).open("wb", buffering=0)
            self._publish(DurablePosition(number, 0, False))
        except OSError:
            file.close()
            if sums is not None:
                sums.close()
            raise
        self._close_files()
        self._number, self._file, self._sums, self._size = number, file, sums, 0

    def _close_files(self) -> None:
        for file in (self._file, self._sums):
            if file is not None:
                file.close()

    def append(self, data: bytes) -> None:
        """Write bytes and publish the whole lines among them, after they are on disk.

        Raises:
            OSError: the disk is full or broken; nothing of `data` was published or is held, so
                that it can be given again.
        """
        data = self._tail + data
        end = data.rfind(self._delimiter)
        end = end + len(self._delimiter) if end >= 0 else 0
        if end:
            self._write(data[:end])
        self._tail = data[end:]
        if self._size >= self._segment_size:
            # The data is safe; a disk that is full now only makes this segment longer.
            with suppress(OSError):
                self._begin_segment()

    def close(self) -> None:
        """Publish the rest, a last line without its end too, and that nothing more comes."""
        if self._tail:
            self._write(self._tail)
            self._tail = b""
        self._publish(DurablePosition(self._number, self._size, True))
        self._close_files()
        os.close(self._entries)

    def _write(self, data: bytes) -> None:
        assert self._file is not None and self._sums is not None
        self._file.seek(self._size)
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) :]
        sync_data(self._file.fileno())
        # Not synced: after a power cut, what has no check sum is taken as it is.
        end, lines = self._size + len(data), data.count(self._delimiter)
        self._sums.seek(self._sums.tell() - self._unpublished)
        self._unpublished = self._sums.write(pack_checksum(end, data, lines))
        self._publish(DurablePosition(self._number, end, False))
        self._size, self._unpublished = end, 0

    def _publish(self, durable: DurablePosition) -> None:
        draft = self._directory / f"{DURABLE_FILE}.tmp"
        with open(draft, "wb") as file:
            file.write(json.dumps([*durable, *_checksum(durable)]).encode())
            file.flush()
            sync_data(file.fileno())
        os.replace(draft, self._directory / DURABLE_FILE)
        sync_directory(self._entries)
        self._on_append()


def pump_into_spool(
    read: Callable[[int], bytes],
    spool: ByteSpoolWriter,
    directory: Path,
    on_error: Callable[[str], None],
    capacity: int = 1 << 30,
    wait: float = 0.2,
) -> None:
    """Move bytes from a pipe into a spool until the pipe ends.

    Args:
        read: returns up to so many bytes, b"" at the end.
        spool: where they go.
        directory: the spool's directory.
        on_error: called with a text when the disk refuses bytes; they are tried again.
        capacity: bytes on disk above which reading pauses, so that the sender feels it.
        wait: seconds between looks while it pauses.
    """

    def retry_until_written(write: Callable[[], None]) -> None:
        while True:
            try:
                return write()
            except OSError as e:
                on_error(f"cannot write to the spool {directory}: {e}; trying again")
                time.sleep(max(wait, 1.0))

    while data := read(1 << 20):
        while segment_bytes(directory) > capacity:
            time.sleep(wait)
        retry_until_written(partial(spool.append, data))
    retry_until_written(spool.close)
