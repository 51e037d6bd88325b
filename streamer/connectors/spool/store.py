"""A store of blocks: append-only segments, synced before they are reported as safe.

A pointer file tells readers how far the segments are safe. It is written after the sync and is not
synced itself: after a crash the last segment is read again, and what is whole in it is kept.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from streamer.connectors.spool.blocks import (
    HEADER_BYTES,
    Body,
    Header,
    Place,
    Record,
    find_next_header,
    is_whole,
    make_block,
    pack_records,
    read_header,
    read_mark,
)
from streamer.connectors.spool.byte_spool import (
    SEGMENT_BYTES,
    segment_bytes,
    segment_path,
    segment_size,
)
from streamer.connectors.spool.damage import DAMAGE_PREFIX, SKIP_MARKS_FILE, SKIP_OPTION
from streamer.connectors.spool.pointer import (
    SAFE_FILE,
    UNKNOWN_TOTAL,
    SafePosition,
    pack_safe,
    read_read_position,
    read_safe,
)
from streamer.core.disk import make_private_directory, sync_data, sync_directory
from streamer.core.errors import StreamerError
from streamer.sdk.input.input_context import InputContext

CAPACITY_BYTES: Final = 1 << 30
"""Bytes of segments that the checkpoint does not have yet, above which nothing more is taken."""

_MIN_FREE_BYTES: Final = 64 << 10
"""Bytes of a segment that are not worth one more, when the disk is full."""


class StoreFullError(StreamerError):
    """Raised when unread messages fill the store; try again later."""


class SpoolStore:
    """The writer of a store. One at a time; the checkpoint's lock sees to that.

    Attributes:
        mark: the newest mark, of this start or an earlier one; None when there is none.
        was_ended: whether an earlier start has closed it.
    """

    def __init__(
        self,
        directory: Path,
        capacity: int = CAPACITY_BYTES,
        segment_bytes: int = SEGMENT_BYTES,
        on_append: Callable[[], None] = lambda: None,
    ) -> None:
        """Open a store and cut off what an earlier crash left half written.

        Args:
            directory: where it is.
            capacity: bytes of segments above which nothing is taken.
            segment_bytes: after which a new one is begun; less where little may be held.
            on_append: called when there is more to read, or the end, and readers can see it.
        """
        self._directory = directory
        self._on_append = on_append
        self._capacity = capacity
        self._segment_size = min(segment_bytes, segment_size(capacity))
        self._lock = threading.Lock()
        self._closed = False
        self.mark: Any = None
        safe = read_safe(directory)
        self.was_ended = safe.closed
        make_private_directory(directory)
        # The directory has to be synced too: a file that a power cut takes back keeps no promise.
        self._entries = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        self._pointer = os.open(directory / SAFE_FILE, os.O_RDWR | os.O_CREAT, 0o600)
        self._number, self._size, self._id, self._total = 0, 0, 0, 0
        self._file = -1
        self._recover(safe)

    @classmethod
    def for_input(cls, context: InputContext) -> Self:
        """Open the store of an input; what is appended wakes the planner."""
        return cls(context.directory, context.spool_limit, on_append=context.wake_planner)

    def append(self, records: Sequence[Record], mark: Any = None) -> None:
        """Write records as one block; when this returns they are safe.

        Raises:
            StoreFullError: too much waits to be read.
            OSError: the disk is full or broken. Nothing was taken; it can be given again.
        """
        body = pack_records(records, mark)
        with self._lock:
            self._roll_segment()
            if segment_bytes(self._directory) > self._capacity:
                raise StoreFullError(
                    f"the spool {self._directory} holds more than {self._capacity:,} bytes that "
                    "are still to be read; spark.spool_limit allows no more"
                )
            try:
                self._write(body)
            except OSError:
                self._free_space()
                raise
            if mark is not None:
                self.mark = mark
            self._roll_segment()
        self._on_append()

    def close(self) -> None:
        """End the store: nothing more comes."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._publish()
                sync_data(self._pointer)
        self._on_append()

    def _free_space(self) -> None:
        """Free what there is to free on a full disk: what is half written, and soon what is read.

        A segment goes when all of it is read, unless it is the last one.
        """
        with suppress(OSError):
            os.ftruncate(self._file, self._size)
            if self._size >= _MIN_FREE_BYTES:
                self._begin_segment()

    def _roll_segment(self) -> None:
        """Begin a segment when the last one is long enough."""
        if self._size >= self._segment_size:
            # The data is safe; a disk that is full now only makes this segment longer.
            with suppress(OSError):
                self._begin_segment()

    def _write(self, body: Body) -> None:
        data = make_block(body, Place(self._id, self._number, self._size, self._total))
        view, at = memoryview(data), self._size
        while view:
            written = os.pwrite(self._file, view, at)
            view, at = view[written:], at + written
        sync_data(self._file)
        self._size, self._total = at, self._total + body.messages
        self._publish()

    def _publish(self) -> None:
        safe = SafePosition(self._number, self._size, self._closed, self._id, self._total)
        os.pwrite(self._pointer, pack_safe(safe), 0)

    def _begin_segment(self) -> None:
        """Begin a segment, with the mark, since the segments before will be gone."""
        number = self._number + 1
        file = os.open(
            segment_path(self._directory, number), os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600
        )
        before = (self._number, self._size, self._file)
        try:
            sync_directory(self._entries)
            self._number, self._size, self._file = number, 0, file
            self._write(pack_records((), self.mark))
        except OSError:
            self._number, self._size, self._file = before
            os.close(file)
            raise
        if before[2] >= 0:
            os.close(before[2])

    def _recover(self, safe: SafePosition) -> None:
        """Go on behind what an earlier start has written.

        What was said to be safe stays as it is, whatever is wrong with it: who reads it finds that.
        Behind it, what a crash has left half written is cut off.
        """
        numbers = sorted(int(path.stem) for path in self._directory.glob("*.seg"))
        ends = [_read_end(self._directory, number, safe) for number in numbers[-2:]]
        last = ends[-1] if ends else _StoreEnd()
        counted = [one.total for one in ends if one.total != UNKNOWN_TOTAL]
        read = read_read_position(self._directory)
        known = safe.store or last.store or (read.store if read is not None else 0)
        self._id = known or secrets.randbits(63) + 1
        self._total = max([0, safe.total, *counted])
        if last.former:
            # Version 0.1 did not count: any number says that there were some.
            self._total = 1
        self._number = max([safe.segment, *numbers[-1:]])
        if read is not None and read[:2] > (self._number, last.size):
            # An older copy of the directory was put here. What comes now must not stand where
            # something else has been read.
            self._number = max(self._number, read.segment) + 1
            self._total = max(self._total, read.total)
            last = last._replace(whole=False)
        self.mark = self._newest_mark(ends)
        path = segment_path(self._directory, self._number)
        goes_on = numbers[-1:] == [self._number] and last.whole and not last.former
        if not goes_on:
            self._begin_segment()
            return
        os.truncate(path, last.size)
        self._file, self._size = os.open(path, os.O_RDWR), last.size
        sync_data(self._file)
        if self._size:
            self._publish()
        else:
            # The machine went down before the segment's first block was there.
            self._write(pack_records((), self.mark))

    def _newest_mark(self, ends: Sequence[_StoreEnd]) -> Any:
        """Return the newest mark, which the last segment has, or the one before.

        Raises:
            StreamerError: it may be in a block that cannot be read.
        """
        if any(one.unread for one in ends) and any(one.mark is not None for one in ends):
            unread = next(one for one in ends if one.unread)
            if not (self._directory / SKIP_MARKS_FILE).exists():
                raise StreamerError(
                    f"{DAMAGE_PREFIX}{unread.path} cannot be read at byte {unread.unread_at:,}, "
                    "where the newest note of how far the input has come may be; restore it from a "
                    f"backup, or start once with {SKIP_OPTION} to go on from the note before: some "
                    "messages may come twice"
                )
        return next((one.mark for one in reversed(ends) if one.mark is not None), None)


class _StoreEnd(NamedTuple):
    """The position of a store, by its last segments.

    Attributes:
        path: of the segment.
        size: bytes of it that stay.
        whole: whether all is there that was said to be safe.
        former: whether version 0.1 has written its last block.
        store: the store's identity; 0 for unknown.
        total: messages of the store up to its end; `UNKNOWN` when it cannot be told.
        mark: the last one that can be read; None for none.
        unread: whether blocks behind that mark cannot be read.
        unread_at: where the first of them is.
    """

    path: Path = Path()
    size: int = 0
    whole: bool = False
    former: bool = False
    store: int = 0
    total: int = UNKNOWN_TOTAL
    mark: Any = None
    unread: bool = False
    unread_at: int = 0


def _read_end(directory: Path, number: int, safe: SafePosition) -> _StoreEnd:
    """Read one of the last segments.

    Raises:
        StreamerError: its last block is damaged, and nothing says that it was half written.
    """
    path = segment_path(directory, number)
    data = path.read_bytes()
    size, kept = len(data), safe.size if number == safe.segment else 0
    end = _StoreEnd(path, whole=size >= kept)
    at = 0
    torn: Header | None = None
    while at < size:
        header = read_header(data[at : at + HEADER_BYTES], at, size, safe.store, number)
        if header is None or not is_whole(data[header.body : header.end], header):
            torn = torn or header
            if not end.unread:
                end = end._replace(unread=True, unread_at=at)
            after = at + 1 if header is None else header.end
            at = find_next_header(data[after:], after, size, safe.store, number)
            continue
        body = memoryview(data)[header.body : header.end]
        mark, at = read_mark(body), header.end
        place = header.place
        end = end._replace(size=at, former=place is None)
        if place is not None:
            end = end._replace(store=place.store, total=place.before + header.messages)
        if mark is not None:
            end = end._replace(mark=mark, unread=False)
    if end.unread and end.unread_at >= max(end.size, kept):
        # Behind all that can be read, and all that was safe: it was half written.
        if torn is not None and torn.place is not None and not safe.segment:
            raise StreamerError(
                f"{DAMAGE_PREFIX}{path} is damaged at byte {end.unread_at:,}, and "
                f"{directory / SAFE_FILE} cannot be read, which says whether the {torn.messages:,} "
                "messages there were half written or safe; restore one of them from a backup, or "
                "delete what is behind this byte to go on without these messages"
            )
        end = end._replace(unread=False)
    return end._replace(size=max(end.size, min(kept, size)))
